/** Registries as they are fetched and kept: how long one is believed, and what may take its place. */

import { encode } from "./base64url.js";
import { Failure } from "./failure.js";
import { REGISTRY_LIMITS } from "./json.js";
import { type Network, get } from "./network.js";
import { REGISTRY_PATH, Registry } from "./registry.js";

/** A registry as it was fetched. */
export interface Kept {
  document: string;
  /** Milliseconds since 1970. */
  fetchedAt: number;
  /** Keys that were published once and are no more. A cache that drops them lets a withdrawn key come back. */
  gone?: readonly Gone[];
}

/** A key that was published and is no more: it was compromised, because all others must be published. */
export interface Gone {
  key_id: string;
  /** base64url. */
  public_key: string;
}

/** Most keys that are remembered beyond the published ones. */
const MAX_GONE = 16_384;

/** Where registries are kept. One that outlives the process keeps the protection against rollback across restarts. */
export interface RegistryCache {
  get(instance: string): Kept | undefined | Promise<Kept | undefined>;
  set(instance: string, kept: Kept): void | Promise<void>;
}

export interface ForceRefresh {
  event: "registry_force_refresh";
  level: "security";
  /** RFC 3339. */
  timestamp: string;
  instance: string;
  operator?: string;
  justification?: string;
  discarded_version: number | "none";
  accepted_version: number;
}

export class Keys {
  private readonly running = new Map<string, Promise<Registry>>();

  constructor(
    private readonly network: Network,
    private readonly cache: RegistryCache,
    private readonly ttl: number,
    private readonly now: () => number,
  ) {}

  /** The registry that is kept, and whether its time is not over. */
  async kept(instance: string): Promise<{ registry: Registry; fresh: boolean; gone: readonly Gone[] } | undefined> {
    const kept = await this.cache.get(instance);
    if (!kept) return undefined;
    const age = this.now() - kept.fetchedAt;
    return { registry: Registry.parse(kept.document), fresh: age >= 0 && age < this.ttl * 1000, gone: kept.gone ?? [] };
  }

  /** Fetches the registry and keeps it, when it may take the place of the known one. */
  refresh(instance: string): Promise<Registry> {
    const running = this.running.get(instance);
    if (running) return running;
    const work = this.fetched(instance)
      .then(async ([registry, kept]) => {
        const known = await this.kept(instance);
        if (known) registry.follow(known.registry);
        const gone = known ? withdrawn(registry, known.registry, known.gone) : [];
        await this.cache.set(instance, gone.length > 0 ? { ...kept, gone } : kept);
        return registry;
      })
      .finally(() => this.running.delete(instance));
    this.running.set(instance, work);
    return work;
  }

  /** Takes whatever the instance publishes, once `log` has noted it. */
  async force(instance: string, who: { operator?: string; justification?: string }, log: (entry: ForceRefresh) => void | Promise<void>): Promise<ForceRefresh> {
    await this.running.get(instance)?.catch(() => undefined);
    const [registry, kept] = await this.fetched(instance);
    // What is kept may be what is broken.
    const known = await this.kept(instance).catch(() => undefined);
    const entry: ForceRefresh = {
      event: "registry_force_refresh",
      level: "security",
      timestamp: new Date(this.now()).toISOString(),
      instance,
      ...who,
      discarded_version: known?.registry.version ?? "none",
      accepted_version: registry.version,
    };
    await log(entry);
    await this.cache.set(instance, kept);
    return entry;
  }

  private async fetched(instance: string): Promise<[Registry, Kept]> {
    const body = await get(instance + REGISTRY_PATH, REGISTRY_LIMITS.bytes, this.network);
    if (body === "gone") throw new Failure("network_error", `${instance}: the registry is gone`);
    try {
      const registry = Registry.parse(body);
      return [registry, { document: new TextDecoder().decode(body), fetchedAt: this.now() }];
    } catch (error) {
      throw new Failure("network_error", `${instance} serves no registry: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}

/** The keys that are published no more; throws a {@link Failure} when one of them came back otherwise than as compromised. */
function withdrawn(registry: Registry, known: Registry, gone: readonly Gone[]): Gone[] {
  const rollback = (detail: string): Failure => new Failure("registry_rollback", detail);
  const published = new Map(registry.keys.map((key) => [key.id, key]));
  for (const old of gone) {
    const now = published.get(old.key_id);
    if (now && encode(now.publicKey) !== old.public_key) throw rollback(`\`${old.key_id}\` names another key than it once did`);
    if (now && now.state !== "compromised") throw rollback(`\`${old.key_id}\` was withdrawn, which only a compromised key is`);
  }
  const all = [...gone, ...known.keys.map((key) => ({ key_id: key.id, public_key: encode(key.publicKey) }))];
  const missing = all.filter((old) => !published.has(old.key_id));
  if (missing.length > MAX_GONE) throw rollback(`more than ${MAX_GONE} keys were withdrawn: force a refresh`);
  return missing;
}
