/** Verifying as the operator configured it: the four modes, the registry's cache, the cross-check, nonces. */

import { Attestation, type Document } from "./attestation.js";
import { sha256 } from "./ed25519.js";
import { Failure, type FailureCode } from "./failure.js";
import { instanceOf, isTrusted } from "./instance.js";
import { ATTESTATION_LIMITS, canonical, isObject, parse, utf8 } from "./json.js";
import { type ForceRefresh, Keys, type Kept, type RegistryCache } from "./keys.js";
import { type Network, get } from "./network.js";
import { type GoodState, Registry } from "./registry.js";

export type Mode = "ignore" | "log" | "verify" | "require";

/** Nonces that were used up. */
export interface Nonces {
  /** Notes a nonce; false when it was noted before. `expiresAt` (ms) is when it may be forgotten. Noting must be atomic. */
  use(nonce: string, expiresAt: number | undefined): boolean | Promise<boolean>;
}

/** What mode `log` keeps of an attestation. */
export interface Recorded {
  timestamp: string;
  /** SHA-256 of the canonical document, or of the bytes that are none. */
  digest: string;
  uri?: string;
  attestation: Document;
}

export type LogEvent =
  | { event: "attestation_absent"; level: "warning" | "security"; mode: Mode; timestamp: string }
  | { event: "attestation_failed"; level: "security"; mode: Mode; timestamp: string; code: FailureCode; detail: string; uri?: string }
  | ForceRefresh;

export interface Options {
  /** Setting `attestation_mode`; `ignore` unless told otherwise. */
  mode?: Mode;
  /** Setting `trusted_instances`: `http(s)://host[:port]` each; none accepts any. */
  trustedInstances?: readonly string[];
  /** Setting `key_cache_ttl`, in seconds; a day unless told otherwise. */
  keyCacheTtl?: number;
  /** Setting `cross_check`: fetch the copy behind the URL and compare. */
  crossCheck?: boolean;
  /** Where nonces are used up. Without it an attestation may be shown any number of times. */
  nonces?: Nonces;
  /** Where registries are kept; in memory unless told otherwise. */
  cache?: RegistryCache;
  /** Mode `log` demands it: keeps the attestation before anything goes on. */
  record?: (entry: Recorded) => void | Promise<void>;
  /** Warnings and security events; to the console unless told otherwise. */
  log?: (event: LogEvent) => void | Promise<void>;
  fetch?: typeof globalThis.fetch;
  /** Milliseconds for one request; 10 000 unless told otherwise. */
  timeout?: number;
  /** How often a request is made again after a network error; twice unless told otherwise. */
  retries?: number;
  /** Milliseconds before it is made again; 250 unless told otherwise. */
  retryDelay?: number;
  /** Milliseconds since 1970. */
  now?: () => number;
}

export interface Verified {
  attestation: Attestation;
  keyState: GoodState;
  /** `gone`: the copy is no longer served, which proves nothing. */
  crossCheck: "same" | "gone" | "not_asked";
}

export type Outcome =
  | ({ proceed: true; status: "verified" } & Verified)
  /** Nothing was verified: the mode does not ask for it, or there was nothing to verify. */
  | { proceed: true; status: "ignored" | "logged" | "absent" }
  | { proceed: false; status: "failed"; code: FailureCode; detail: string; mayRetry: boolean };

export class Verifier {
  private readonly mode: Mode;
  private readonly trusted: readonly string[];
  private readonly crossCheck: boolean;
  private readonly nonces: Nonces | undefined;
  private readonly record: Options["record"];
  private readonly log: NonNullable<Options["log"]>;
  private readonly network: Network;
  private readonly keys: Keys;
  private readonly now: () => number;

  constructor(options: Options = {}) {
    this.mode = options.mode ?? "ignore";
    if (!["ignore", "log", "verify", "require"].includes(this.mode)) throw new TypeError(`no such mode: ${this.mode}`);
    this.trusted = [...(options.trustedInstances ?? [])];
    for (const entry of this.trusted) {
      if (instanceOf(entry) === undefined) throw new TypeError(`a trusted instance is \`http(s)://host[:port]\`, not \`${entry}\``);
    }
    if (this.mode === "log" && !options.record) throw new TypeError("mode `log` needs `record`: it keeps what was said");
    this.crossCheck = options.crossCheck ?? false;
    this.nonces = options.nonces;
    this.record = options.record;
    this.log = options.log ?? ((event) => console.warn(JSON.stringify(event)));
    this.now = options.now ?? Date.now;
    this.network = {
      fetch: options.fetch ?? ((...request) => globalThis.fetch(...request)),
      timeout: positive("timeout", options.timeout ?? 10_000),
      retries: positive("retries", options.retries ?? 2),
      retryDelay: positive("retryDelay", options.retryDelay ?? 250),
    };
    const ttl = positive("keyCacheTtl", options.keyCacheTtl ?? 86_400);
    this.keys = new Keys(this.network, options.cache ?? new MemoryCache(), ttl, this.now);
  }

  /** Does what the mode demands with the `attestation` of a report. A report without that member is an absent attestation. */
  async verifyReport(report: Document): Promise<Outcome> {
    if (this.mode === "ignore") return { proceed: true, status: "ignored" };
    let attestation: Document | null | undefined;
    try {
      const asIs = typeof report === "string" || report instanceof Uint8Array;
      const members: unknown = asIs ? parse(report, ATTESTATION_LIMITS) : report;
      if (!isObject(members)) throw new Error("the report is not a JSON object");
      attestation = Object.hasOwn(members, "attestation") ? (members["attestation"] as Document | null) : undefined;
    } catch (error) {
      if (this.mode === "log") return this.logged(report);
      return this.failed(new Failure("invalid_attestation", error instanceof Error ? error.message : String(error)));
    }
    return this.verify(attestation);
  }

  /** Does what the mode demands with an attestation; `undefined` is an absent one. */
  async verify(attestation: Document | null | undefined): Promise<Outcome> {
    if (this.mode === "ignore") return { proceed: true, status: "ignored" };
    if (attestation === undefined) return this.absent();
    if (this.mode === "log") return this.logged(attestation);
    try {
      return { proceed: true, status: "verified", ...(await this.checked(attestation)) };
    } catch (error) {
      return this.failed(error, attestation);
    }
  }

  /** Verifies whatever the mode would do; throws a {@link Failure}. For mode `log`, which may verify after it went on. */
  async check(attestation: Document): Promise<Verified> {
    if (this.mode === "ignore") throw new TypeError("in mode `ignore` nothing is verified");
    return this.checked(attestation);
  }

  /**
   * Takes the registry that an instance publishes now, whatever was known of it: for an operator whose cache is damaged, never as an
   * answer to a failed verification. What is noted is noted before it counts.
   */
  async forceRefresh(instance: string, who: { operator?: string; justification?: string } = {}): Promise<ForceRefresh> {
    const at = instanceOf(instance);
    if (at === undefined) throw new TypeError(`\`${instance}\` is not \`http(s)://host[:port]\``);
    return this.keys.force(at, who, this.log);
  }

  private async checked(document: Document | null): Promise<Verified> {
    const attestation = await Attestation.parse(document as Document);
    trust(attestation, this.trusted);
    const keyState = await this.keyState(attestation);
    inTime(attestation, this.now());
    const crossCheck = this.crossCheck ? await this.compared(attestation) : "not_asked";
    // Last, so that an attempt that fails does not use the nonce up.
    const { nonce } = attestation;
    if (nonce !== undefined && this.nonces && !(await this.nonces.use(`${attestation.instance} ${nonce}`, attestation.expiresAt))) {
      throw new Failure("nonce_reused", "its nonce was used before");
    }
    return { attestation, keyState, crossCheck };
  }

  private async keyState(attestation: Attestation): Promise<GoodState> {
    const { instance } = attestation;
    const kept = await this.keys.kept(instance);
    if (kept?.fresh) {
      try {
        return await kept.registry.check(attestation);
      } catch (error) {
        // A key that is compromised stays so; everything else may have changed since.
        if (!(error instanceof Failure) || error.code === "key_compromised") throw error;
      }
    }
    return (await this.keys.refresh(instance)).check(attestation);
  }

  private async compared(attestation: Attestation): Promise<"same" | "gone"> {
    const body = await get(attestation.uri, ATTESTATION_LIMITS.bytes, this.network);
    if (body === "gone") return "gone";
    let copy: string;
    try {
      copy = canonical(parse(body, ATTESTATION_LIMITS));
    } catch (error) {
      throw new Failure("cross_check_mismatch", `the copy: ${error instanceof Error ? error.message : String(error)}`);
    }
    if (copy !== attestation.canonical()) throw new Failure("cross_check_mismatch", "the copy behind the URL is another");
    return "same";
  }

  private async absent(): Promise<Outcome> {
    const refused = this.mode === "require";
    const level = refused ? "security" : "warning";
    await this.log({ event: "attestation_absent", level, mode: this.mode, timestamp: this.stamp() });
    if (!refused) return { proceed: true, status: "absent" };
    return { proceed: false, status: "failed", code: "attestation_absent", detail: "there is no attestation", mayRetry: false };
  }

  private async logged(attestation: Document | null): Promise<Outcome> {
    const entry = await Attestation.parse(attestation as Document).then(
      async (parsed) => ({ digest: await sha256(utf8(parsed.canonical())), uri: parsed.uri }),
      async () => ({ digest: await sha256(bytes(attestation)) }),
    );
    await this.record?.({ timestamp: this.stamp(), ...entry, attestation: attestation as Document });
    return { proceed: true, status: "logged" };
  }

  private async failed(error: unknown, attestation?: Document | null): Promise<Outcome> {
    if (!(error instanceof Failure)) throw error;
    const { code, detail, mayRetry } = error;
    const uri = await Attestation.parse(attestation as Document).then((parsed) => ({ uri: parsed.uri }), () => ({}));
    const event = { event: "attestation_failed", level: "security", mode: this.mode, timestamp: this.stamp(), code, detail, ...uri } as const;
    await this.log(event);
    return { proceed: false, status: "failed", code, detail, mayRetry };
  }

  private stamp(): string {
    return new Date(this.now()).toISOString();
  }
}

/** The steps that need neither network nor memory, with the registry at hand. What is no registry counts as one that is not served. */
export async function verifyWith(
  attestation: Document,
  registry: string | Uint8Array,
  terms: { trustedInstances?: readonly string[]; now?: number } = {},
): Promise<{ attestation: Attestation; keyState: GoodState }> {
  const parsed = await Attestation.parse(attestation);
  trust(parsed, terms.trustedInstances ?? []);
  let keys: Registry;
  try {
    keys = Registry.parse(registry);
  } catch (error) {
    throw new Failure("network_error", `no registry: ${error instanceof Error ? error.message : String(error)}`);
  }
  const keyState = await keys.check(parsed);
  inTime(parsed, terms.now ?? Date.now());
  return { attestation: parsed, keyState };
}

/** Nonces in memory, forgotten when their attestation is over. */
export class MemoryNonces implements Nonces {
  private readonly used = new Map<string, number>();
  private sweepAt = 1024;

  constructor(private readonly now: () => number = Date.now) {}

  use(nonce: string, expiresAt: number | undefined): boolean {
    if (this.used.has(nonce)) return false;
    this.used.set(nonce, expiresAt ?? Number.POSITIVE_INFINITY);
    if (this.used.size >= this.sweepAt) {
      for (const [old, end] of this.used) {
        if (end <= this.now()) this.used.delete(old);
      }
      this.sweepAt = 1024 + 2 * this.used.size;
    }
    return true;
  }
}

/** Registries in memory. */
export class MemoryCache implements RegistryCache {
  private readonly kept = new Map<string, Kept>();

  get(instance: string): Kept | undefined {
    return this.kept.get(instance);
  }

  set(instance: string, kept: Kept): void {
    this.kept.set(instance, kept);
  }
}

function trust(attestation: Attestation, trusted: readonly string[]): void {
  if (!isTrusted(attestation.instance, trusted)) throw new Failure("instance_not_trusted", `\`${attestation.instance}\` is not trusted`);
}

function inTime(attestation: Attestation, now: number): void {
  if (attestation.expiresAt !== undefined && attestation.expiresAt <= now) throw new Failure("expired", "its time is over");
}

function bytes(document: Document | null): Uint8Array<ArrayBuffer> {
  if (document instanceof Uint8Array) return Uint8Array.from(document);
  return utf8(typeof document === "string" ? document : (JSON.stringify(document) ?? ""));
}

function positive(name: string, value: number): number {
  if (!(value >= 0)) throw new TypeError(`\`${name}\` is not a number from 0`);
  return value;
}
