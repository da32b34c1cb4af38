/** The key registry: its strict form, and which registry may take another's place. */

import { type Attestation, isKeyId } from "./attestation.js";
import { decode } from "./base64url.js";
import { isWeak } from "./ed25519.js";
import { Failure } from "./failure.js";
import { type Json, type JsonObject, REGISTRY_LIMITS, canonical, isObject, parse } from "./json.js";
import { rfc3339 } from "./time.js";

export const REGISTRY_PATH = "/.well-known/recourse-keys.json";

const STATES = ["pending", "active", "deprecated", "retired", "compromised"] as const;
export type KeyState = (typeof STATES)[number];
export type GoodState = "active" | "deprecated" | "retired";

const MAX_KEYS = 4096;

export interface Key {
  readonly id: string;
  readonly publicKey: Uint8Array<ArrayBuffer>;
  readonly state: KeyState;
  /** Milliseconds since 1970. */
  readonly validFrom: number | undefined;
  readonly validUntil: number | undefined;
  readonly deprecatedAt: number | undefined;
}

export class RegistryError extends Error {
  override name = "RegistryError";
}

export class Registry {
  private constructor(readonly instanceId: string, readonly version: number, readonly keys: readonly Key[]) {}

  /** Reads a document; throws an error that says what is wrong. */
  static parse(document: string | Uint8Array): Registry {
    const value = parse(document, REGISTRY_LIMITS);
    if (!isObject(value)) throw new RegistryError("not a JSON object");
    const { instance_id: instance, registry_version: version, updated_at: updated, keys: entries } = value;
    if (typeof instance !== "string" || instance === "") throw new RegistryError("`instance_id` is not a text");
    if (typeof version !== "number" || !Number.isSafeInteger(version) || version < 1) {
      throw new RegistryError("`registry_version` is not a whole number above 0");
    }
    if (typeof updated !== "string" || rfc3339(updated) === undefined) throw new RegistryError("`updated_at` is not RFC 3339");
    if (!Array.isArray(entries) || entries.length > MAX_KEYS) throw new RegistryError("`keys` is not a list of at most 4096 keys");
    const keys = entries.map(key);
    if (new Set(keys.map(({ id }) => id)).size < keys.length) throw new RegistryError("a key id is used twice");
    if (new Set(keys.map(({ publicKey }) => publicKey.join())).size < keys.length) throw new RegistryError("two ids name one key");
    if (keys.filter(({ state }) => state === "active").length > 1) throw new RegistryError("more than one key is active");
    return new Registry(instance, version, keys);
  }

  key(id: string): Key | undefined {
    return this.keys.find((key) => key.id === id);
  }

  /** Checks an attestation's key, its state and the signature; throws a {@link Failure}. */
  async check(attestation: Attestation): Promise<GoodState> {
    const { keyId } = attestation;
    const key = this.key(keyId);
    if (!key) throw new Failure("key_not_found", `no key \`${keyId}\` is published`);
    if (key.state === "pending") throw new Failure("key_pending", `\`${keyId}\` may not sign yet`);
    if (key.state === "compromised") throw new Failure("key_compromised", `\`${keyId}\` is compromised`);
    if (!(await attestation.isSignedBy(key.publicKey))) {
      throw new Failure("signature_invalid", "the signature does not belong to this document and this key");
    }
    return key.state;
  }

  /** What a verifier that knows `known` does with this registry, fetched now; throws a {@link Failure} `registry_rollback`. */
  follow(known: Registry): "take" | "keep" {
    const rollback = (detail: string): Failure => new Failure("registry_rollback", detail);
    if (this.version < known.version) throw rollback(`version ${this.version} was fetched, ${known.version} is known`);
    if (this.version === known.version) {
      if (listed(this.keys) !== listed(known.keys)) {
        throw rollback(`version ${this.version} was fetched with other keys than are known`);
      }
      return "keep";
    }
    const names = new Map(this.keys.map(({ id, publicKey }) => [publicKey.join(), id]));
    for (const old of known.keys) {
      const name = names.get(old.publicKey.join());
      if (name !== undefined && name !== old.id) throw rollback(`\`${name}\` names the key that \`${old.id}\` named`);
      const now = this.key(old.id);
      if (!now) continue;
      if (now.publicKey.join() !== old.publicKey.join()) throw rollback(`\`${old.id}\` names another key now`);
      if (STATES.indexOf(now.state) < STATES.indexOf(old.state)) {
        throw rollback(`\`${old.id}\` went from ${old.state} to ${now.state}`);
      }
    }
    return "take";
  }
}

/** The keys as one text, in whatever order they came: an id stands in a registry once. */
function listed(keys: readonly Key[]): string {
  return keys.map((key) => canonical(plain(key))).sort().join();
}

function plain(key: Key): Json {
  const dates = [key.validFrom, key.validUntil, key.deprecatedAt].map((moment) => moment ?? null);
  return [key.id, Array.from(key.publicKey), key.state, dates];
}

function key(entry: Json, at: number): Key {
  const wrong = (name: string, what: string): RegistryError => new RegistryError(`\`keys/${at}/${name}\` ${what}`);
  if (!isObject(entry)) throw new RegistryError(`\`keys/${at}\` is not an object`);
  const { key_id: id, algorithm, public_key: encoded, state: named } = entry;
  if (typeof id !== "string" || !isKeyId(id)) throw wrong("key_id", "is not printable ASCII");
  if (algorithm !== "Ed25519") throw wrong("algorithm", "is not `Ed25519`");
  const publicKey = typeof encoded === "string" ? decode(encoded, 32) : undefined;
  if (!publicKey) throw wrong("public_key", "is not 32 bytes in base64url without padding");
  if (isWeak(publicKey)) throw wrong("public_key", "is weak");
  const state = STATES.find((state) => state === named);
  if (!state) throw wrong("state", "is not a key's state");
  const validFrom = moment(entry, "valid_from", wrong);
  const validUntil = entry["valid_until"] === null && state === "active" ? undefined : moment(entry, "valid_until", wrong);
  const deprecatedAt = moment(entry, "deprecated_at", wrong);
  const over = state === "deprecated" || state === "retired";
  if ((over || state === "active") && validFrom === undefined) throw wrong("valid_from", "is missing");
  if (over && deprecatedAt === undefined) throw wrong("deprecated_at", "is missing");
  return { id, publicKey, state, validFrom, validUntil, deprecatedAt };
}

function moment(entry: JsonObject, name: string, wrong: (name: string, what: string) => RegistryError): number | undefined {
  if (!(name in entry)) return undefined;
  const value = entry[name];
  const parsed = typeof value === "string" ? rfc3339(value) : undefined;
  if (parsed === undefined) throw wrong(name, "is not an RFC 3339 date and time");
  return parsed;
}
