/** Verifies consequence attestations. What each step demands stands in `spec/attestation.md`. */

export { Attestation, type Document } from "./attestation.js";
export { Failure, type FailureCode } from "./failure.js";
export { ATTESTATION_LIMITS, type Json, JsonError, type JsonObject, type Limits, REGISTRY_LIMITS, canonical, parse } from "./json.js";
export type { ForceRefresh, Gone, Kept, RegistryCache } from "./keys.js";
export { type GoodState, type Key, type KeyState, REGISTRY_PATH, Registry, RegistryError } from "./registry.js";
export {
  type LogEvent, MemoryCache, MemoryNonces, type Mode, type Nonces, type Options, type Outcome, type Recorded, Verifier, type Verified,
  verifyWith,
} from "./verifier.js";
