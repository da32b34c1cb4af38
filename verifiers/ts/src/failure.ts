/** Why an attestation does not verify. */

export type FailureCode =
  | "signature_invalid"
  | "key_not_found"
  | "key_compromised"
  | "key_pending"
  | "instance_not_trusted"
  | "cross_check_mismatch"
  | "network_error"
  | "registry_rollback"
  | "attestation_absent"
  | "invalid_attestation"
  | "expired"
  | "nonce_reused";

export class Failure extends Error {
  override name = "Failure";

  constructor(readonly code: FailureCode, readonly detail: string) {
    super(`${code}: ${detail}`);
  }

  /** Only what the network did may be tried again. */
  get mayRetry(): boolean {
    return this.code === "network_error";
  }
}
