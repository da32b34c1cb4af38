/** The document: its strict form, its id, the bytes that are signed. */

import { decode } from "./base64url.js";
import { sha256, verify } from "./ed25519.js";
import { Failure } from "./failure.js";
import { instanceOf } from "./instance.js";
import { ATTESTATION_LIMITS, type Json, type JsonObject, canonical, isObject, parse, utf8 } from "./json.js";
import { rfc3339 } from "./time.js";

/** A document as bytes or text, or parsed by somebody else. */
export type Document = string | Uint8Array | object;

const VERSION = "recourse.attestation.v1";
const FOLDER = "/.well-known/attestations/";
const IDENTIFYING = ["input", "output", "evaluator", "timestamp", "key_id"];
const LOWER_HEX = /^[0-9a-f]{32}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

/** An attestation in the right form. Its signature is checked by {@link Attestation.isSignedBy} alone. */
export class Attestation {
  private constructor(
    readonly members: JsonObject,
    /** 32 hexadecimal digits. */
    readonly id: string,
    /** Scheme, host and port of who issued it, in their one form. */
    readonly instance: string,
    private readonly signature: Uint8Array<ArrayBuffer>,
    /** Milliseconds since 1970. */
    readonly expiresAt: number | undefined,
  ) {}

  /** Reads a document; throws a {@link Failure} `invalid_attestation`. */
  static async parse(document: Document): Promise<Attestation> {
    const members = read(document);
    if (!isObject(members)) throw invalid("not a JSON object");
    const has = (name: string): boolean => name in members;
    const text = (name: string): string => {
      const value = members[name];
      if (typeof value !== "string" || value === "") throw invalid(`\`${name}\` is not a text`);
      return value;
    };
    const moment = (name: string): number => {
      const parsed = rfc3339(text(name));
      if (parsed === undefined) throw invalid(`\`${name}\` is not an RFC 3339 date and time`);
      return parsed;
    };
    for (const name of ["input", "output"]) {
      if (!isObject(members[name])) throw invalid(`\`${name}\` is not an object`);
    }
    if (!isObject(members["evaluator"])) text("evaluator");
    if (!isKeyId(text("key_id"))) throw invalid("`key_id` is not printable ASCII without spaces");
    const signature = decode(text("signature"), 64);
    if (!signature) throw invalid("`signature` is not 64 bytes in base64url without padding");
    moment("timestamp");
    if (has("version") && text("version") !== VERSION) throw invalid(`\`version\` is not ${VERSION}`);
    if (has("nonce") && !LOWER_HEX.test(text("nonce"))) throw invalid("`nonce` is not 32 lower-case hexadecimal digits");
    const expiresAt = has("expires_at") ? moment("expires_at") : undefined;
    if (has("chain_id")) text("chain_id");
    if (has("parent_attestation") && !DIGEST.test(text("parent_attestation"))) {
      throw invalid("`parent_attestation` is not `sha256:` and 64 lower-case hexadecimal digits");
    }
    const uri = text("attestation_uri");
    const five = Object.fromEntries(IDENTIFYING.map((name) => [name, members[name] as Json]));
    const id = (await sha256(utf8(canonical(five)))).slice(0, 32);
    const tail = `${FOLDER}${id}.json`;
    const instance = uri.endsWith(tail) ? instanceOf(uri.slice(0, -tail.length)) : undefined;
    if (instance === undefined) throw invalid(`\`attestation_uri\` is not {instance}${tail}`);
    return new Attestation(members, id, instance, signature, expiresAt);
  }

  get uri(): string {
    return this.members["attestation_uri"] as string;
  }

  get keyId(): string {
    return this.members["key_id"] as string;
  }

  get nonce(): string | undefined {
    return this.members["nonce"] as string | undefined;
  }

  /** The report that was signed. Act on this one, not on what stands around the attestation. */
  get output(): JsonObject {
    return this.members["output"] as JsonObject;
  }

  /** The whole document, canonical: two copies are compared by it. */
  canonical(): string {
    return canonical(this.members);
  }

  /** The text whose bytes are signed. */
  payload(): string {
    const rest = Object.assign(Object.create(null) as JsonObject, this.members);
    delete rest["signature"];
    return canonical(rest);
  }

  isSignedBy(key: Uint8Array<ArrayBuffer>): Promise<boolean> {
    return verify(key, utf8(this.payload()), this.signature);
  }
}

function read(document: Document): Json {
  try {
    if (typeof document === "string" || document instanceof Uint8Array) return parse(document, ATTESTATION_LIMITS);
    // Written and read again: what is no plain JSON does not survive as something else.
    return parse(written(document, 0), ATTESTATION_LIMITS);
  } catch (error) {
    throw invalid(error instanceof Error ? error.message : String(error));
  }
}

/** A value that somebody else parsed, as text. */
function written(value: unknown, depth: number): string {
  if (depth > ATTESTATION_LIMITS.depth) throw new Error("nested too deeply");
  if (value === null || typeof value === "boolean" || typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number" && Number.isFinite(value)) return String(value);
  if (Array.isArray(value)) return `[${Array.from(value, (item) => written(item, depth + 1)).join(",")}]`;
  const prototype: unknown = typeof value === "object" ? Object.getPrototypeOf(value) : undefined;
  if (!isObject(value) || (prototype !== null && prototype !== Object.prototype)) throw new Error("not a JSON value");
  return `{${Object.keys(value).map((name) => `${JSON.stringify(name)}:${written(value[name], depth + 1)}`).join(",")}}`;
}

export function isKeyId(text: string): boolean {
  return /^[!-~]{1,256}$/.test(text);
}

function invalid(detail: string): Failure {
  return new Failure("invalid_attestation", detail);
}
