// Modes, the registry's cache, cross-checks, nonces, the network: with a clock and a `fetch` of our own.

import assert from "node:assert/strict";
import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto";
import { test } from "node:test";

import { MemoryCache, MemoryNonces, Verifier, canonical } from "../dist/index.js";

const INSTANCE = "https://writ.example";
const REGISTRY = `${INSTANCE}/.well-known/recourse-keys.json`;
const START = Date.parse("2026-06-01T12:00:00Z");
const DAY = 86_400_000;

// RFC 8032, section 7.1, tests 1 and 2.
const [ONE, TWO] = [
  "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
  "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
].map((secret) => {
  const der = Buffer.from(`302e020100300506032b657004220420${secret}`, "hex");
  return createPrivateKey({ key: der, format: "der", type: "pkcs8" });
});

const rawKey = (key) => createPublicKey(key).export({ format: "der", type: "spki" }).subarray(-32).toString("base64url");

function entry(state = "active", key = ONE, id = "writ-1") {
  const dates = { valid_from: "2026-01-01T00:00:00Z", deprecated_at: "2026-03-01T00:00:00Z" };
  return { key_id: id, algorithm: "Ed25519", public_key: rawKey(key), state, ...dates };
}

function registry(version = 1, keys = [entry()]) {
  return JSON.stringify({ instance_id: "writ", keys, registry_version: version, updated_at: "2026-05-01T00:00:00Z" });
}

function attest(more = {}, key = ONE) {
  const five = {
    input: { source: "shell" }, output: { riskAssessment: "block" }, evaluator: "writ", timestamp: "2026-05-01T14:30:00Z", key_id: "writ-1",
  };
  for (const name of Object.keys(five)) five[name] = more[name] ?? five[name];
  const id = createHash("sha256").update(canonical(five)).digest("hex").slice(0, 32);
  const document = { ...five, attestation_uri: `${INSTANCE}/.well-known/attestations/${id}.json`, ...more };
  return { ...document, signature: sign(null, Buffer.from(canonical(document)), key).toString("base64url") };
}

/** A verifier in a world of pages; `world.calls` holds what was fetched, `world.events` what was logged. */
function world(options = {}, pages = {}) {
  const world = { now: START, calls: [], events: [], pages: { [REGISTRY]: registry(), ...pages } };
  const fetch = async (url, request) => {
    world.calls.push(url);
    assert.equal(request.redirect, "manual");
    const page = world.pages[url];
    if (page instanceof Error) throw page;
    if (page instanceof Response) return page.clone();
    return page === undefined ? new Response("", { status: 404 }) : new Response(page);
  };
  const log = (event) => void world.events.push(event);
  world.verifier = new Verifier({ mode: "verify", fetch, log, now: () => world.now, retries: 0, retryDelay: 1, ...options });
  world.code = async (attestation) => (await world.verifier.verify(attestation)).code ?? "valid";
  return world;
}

test("ignore: nothing is verified, nothing fetched, nothing read", async () => {
  const it = world({ mode: "ignore" });
  for (const attestation of [undefined, null, "{", attest()]) {
    assert.deepEqual(await it.verifier.verify(attestation), { proceed: true, status: "ignored" });
    assert.deepEqual(await it.verifier.verifyReport(attestation ?? {}), { proceed: true, status: "ignored" });
  }
  await assert.rejects(it.verifier.check(attest()), TypeError);
  assert.deepEqual([it.calls, it.events], [[], []]);
});

test("log: kept before anything goes on, never blocked", async () => {
  const kept = [];
  const it = world({ mode: "log", record: async (recorded) => void kept.push(recorded) });
  const good = attest();
  const digest = createHash("sha256").update(canonical(good)).digest("hex");
  for (const attestation of [good, { ...good, signature: attest({}, TWO).signature }, { nonsense: 1 }, null]) {
    assert.deepEqual(await it.verifier.verify(attestation), { proceed: true, status: "logged" });
  }
  assert.deepEqual([kept.length, kept[0].digest, kept[0].uri], [4, digest, good.attestation_uri]);
  assert.equal(kept[2].uri, undefined);
  assert.deepEqual(await it.verifier.verifyReport('{"attestation":1,"attestation":2}'), { proceed: true, status: "logged" });
  assert.equal(kept.length, 5);
  assert.deepEqual(await it.verifier.verify(undefined), { proceed: true, status: "absent" });
  assert.deepEqual(it.calls, []);
  // It may verify afterwards.
  assert.equal((await it.verifier.check(good)).keyState, "active");
  assert.throws(() => new Verifier({ mode: "log" }), TypeError);
  const full = world({ mode: "log", record: () => { throw new Error("disk full"); } });
  await assert.rejects(full.verifier.verify(good), /disk full/);
});

test("verify: refuses what fails, warns when there is nothing", async () => {
  const it = world();
  const outcome = await it.verifier.verifyReport({ riskAssessment: "block", attestation: attest() });
  assert.deepEqual([outcome.proceed, outcome.status, outcome.keyState, outcome.crossCheck], [true, "verified", "active", "not_asked"]);
  assert.equal(outcome.attestation.output.riskAssessment, "block");
  const bent = { ...attest(), output: { riskAssessment: "allow" } };
  assert.deepEqual((({ detail, ...rest }) => rest)(await it.verifier.verify(bent)), {
    proceed: false, status: "failed", code: "invalid_attestation", mayRetry: false,
  });
  assert.deepEqual([it.events[0].event, it.events[0].level, it.events[0].code], ["attestation_failed", "security", "invalid_attestation"]);
  assert.deepEqual(await it.verifier.verifyReport({ riskAssessment: "allow" }), { proceed: true, status: "absent" });
  assert.deepEqual([it.events[1].event, it.events[1].level], ["attestation_absent", "warning"]);
  // Null is no absence (§7.7), and neither is a report that cannot be read.
  assert.equal((await it.verifier.verifyReport({ attestation: null })).code, "invalid_attestation");
  assert.equal((await it.verifier.verifyReport('{"attestation":{},"attestation":{}}')).code, "invalid_attestation");
  assert.equal((await it.verifier.verifyReport("[]")).code, "invalid_attestation");
});

test("require: refuses when there is nothing", async () => {
  const it = world({ mode: "require" });
  const outcome = await it.verifier.verifyReport({ riskAssessment: "allow" });
  assert.deepEqual([outcome.proceed, outcome.code, outcome.mayRetry], [false, "attestation_absent", false]);
  assert.deepEqual([it.events[0].event, it.events[0].level], ["attestation_absent", "security"]);
  assert.equal((await it.verifier.verify(attest())).proceed, true);
});

test("a parsed document counts as its text does", async () => {
  const it = world();
  const document = attest({ note: [0.5, -0, 1e21, "é", null] });
  for (const form of [document, JSON.stringify(document), Buffer.from(JSON.stringify(document)), structuredClone(document)]) {
    assert.equal(await it.code(form), "valid");
  }
  assert.equal(await it.code(JSON.stringify(attest()).replace("shell", "sh\ud800ell")), "invalid_attestation");
  const round = {};
  round.self = round;
  for (const output of [{ a: undefined }, { a: Number.NaN }, { a: new Date() }, { a: 1n }, { a: () => 1 }, { a: "\ud800" }, { a: [,] }, round]) {
    assert.equal(await it.code({ ...document, output }), "invalid_attestation");
  }
});

test("trusted instances come before any request", async () => {
  const it = world({ trustedInstances: ["https://other.example"] });
  assert.equal(await it.code(attest()), "instance_not_trusted");
  assert.deepEqual(it.calls, []);
  assert.equal(await world({ trustedInstances: [`${INSTANCE}:443`] }).code(attest()), "valid");
  for (const entry of ["writ.example", "https://writ.example/", ""]) {
    assert.throws(() => new Verifier({ trustedInstances: [entry] }), TypeError);
  }
});

test("a registry is kept for its time", async () => {
  const it = world({ keyCacheTtl: 60 });
  for (const [seconds, fetches] of [[0, 1], [59.999, 1], [60, 2], [119, 2], [120, 3], [-1, 4]]) {
    it.now = START + seconds * 1000;
    assert.equal(await it.code(attest()), "valid");
    assert.equal(it.calls.length, fetches, `${seconds} s`);
  }
  const daily = world();
  await daily.code(attest());
  daily.now += DAY - 1;
  await daily.code(attest());
  assert.equal(daily.calls.length, 1);
  daily.now += 1;
  await daily.code(attest());
  assert.equal(daily.calls.length, 2);
});

test("one request for many at once", async () => {
  let calls = 0;
  const fetch = async () => {
    calls += 1;
    await new Promise((resume) => setTimeout(resume, 200));
    return new Response(registry());
  };
  const it = world({ fetch });
  assert.deepEqual(new Set(await Promise.all(Array.from({ length: 20 }, () => it.code(attest())))), new Set(["valid"]));
  assert.equal(calls, 1);
});

test("a kept registry is fetched anew when the key is unknown, not in use yet, or the signature wrong", async () => {
  const it = world();
  await it.code(attest());
  const next = attest({ key_id: "writ-2" }, TWO);
  assert.equal(await it.code(next), "key_not_found");
  assert.equal(it.calls.length, 2);
  it.pages[REGISTRY] = registry(2, [entry(), entry("pending", TWO, "writ-2")]);
  assert.equal(await it.code(next), "key_pending");
  it.pages[REGISTRY] = registry(3, [entry("deprecated"), entry("active", TWO, "writ-2")]);
  assert.equal(await it.code(next), "valid");
  assert.equal(await it.code(attest()), "valid");
  assert.equal(it.calls.length, 4);
  it.pages[REGISTRY] = registry(4, [entry("compromised"), entry("active", TWO, "writ-2")]);
  // Until the registry is fetched, the change does not hold.
  assert.equal(await it.code(attest()), "valid");
  assert.equal(await it.code({ ...attest(), signature: next.signature }), "key_compromised");
  assert.equal(await it.code(attest()), "key_compromised");
  // What is compromised stays so: nothing is fetched for it.
  assert.equal(it.calls.length, 5);
});

test("a withdrawn key comes back only as compromised", async () => {
  const cache = new MemoryCache();
  const ask = async (page) => {
    const it = world({ cache, keyCacheTtl: 0 }, { [REGISTRY]: page });
    return it.code(attest());
  };
  const other = entry("active", TWO, "writ-2");
  assert.equal(await ask(registry(5)), "valid");
  assert.equal(await ask(registry(6, [other])), "key_not_found");
  assert.equal(await ask(registry(7, [entry("deprecated"), other])), "registry_rollback");
  assert.equal(await ask(registry(7, [entry("compromised", TWO)])), "registry_rollback");
  assert.equal(await ask(registry(7, [other])), "key_not_found");
  assert.equal(await ask(registry(8, [entry("compromised"), other])), "key_compromised");
  assert.equal(await ask(registry(9, [entry("retired"), other])), "registry_rollback");
});

test("an instance has one form, and no other host is read", async () => {
  for (const host of ["127.1", "0177.0.0.1", "2130706433", "a..b", "a.", "[1:2]", "127.0.0.1:65536"]) {
    const { attestation_uri, signature, ...rest } = attest();
    assert.equal(await world().code(attest({ ...rest, attestation_uri: attestation_uri.replace("https://writ.example", `http://${host}`) })), "invalid_attestation", host);
  }
  const spelled = attest({ attestation_uri: attest().attestation_uri.replace("writ.example", "WRIT.Example:443") });
  const it = world({ trustedInstances: [INSTANCE] });
  assert.equal(await it.code(spelled), "valid");
  assert.equal(await it.code(attest()), "valid");
  assert.deepEqual(it.calls, [REGISTRY]);
  assert.throws(() => new Verifier({ trustedInstances: ["http://127.1"] }), TypeError);
});

test("an older or contradicting registry is refused, and the known one kept", async () => {
  const it = world({}, { [REGISTRY]: registry(5) });
  await it.code(attest());
  const unknown = attest({ key_id: "writ-9" });
  for (const bad of [
    registry(4),
    registry(5, [entry("deprecated")]),
    registry(6, [entry("active", TWO)]),
    registry(6, [entry("pending")]),
  ]) {
    it.pages[REGISTRY] = bad;
    assert.equal(await it.code(unknown), "registry_rollback");
    assert.equal(await it.code(attest()), "valid");
  }
  it.now += DAY;
  assert.equal(await it.code(attest()), "registry_rollback");
  it.pages[REGISTRY] = registry(5);
  assert.equal(await it.code(attest()), "valid");
});

test("protection against rollback lives as long as the cache", async () => {
  const cache = new MemoryCache();
  await world({ cache }, { [REGISTRY]: registry(5) }).code(attest());
  const later = world({ cache }, { [REGISTRY]: registry(4) });
  later.now += DAY;
  assert.equal(await later.code(attest()), "registry_rollback");
});

test("a forced refresh takes what is published and is noted first", async () => {
  const it = world({}, { [REGISTRY]: registry(5) });
  await it.code(attest());
  it.pages[REGISTRY] = registry(2);
  it.now += DAY;
  assert.equal(await it.code(attest()), "registry_rollback");
  it.events.length = 0;
  const entry = await it.verifier.forceRefresh(INSTANCE, { operator: "kim", justification: "restored from backup" });
  assert.deepEqual(entry, {
    event: "registry_force_refresh", level: "security", timestamp: "2026-06-02T12:00:00.000Z", instance: INSTANCE,
    operator: "kim", justification: "restored from backup", discarded_version: 5, accepted_version: 2,
  });
  assert.deepEqual(it.events, [entry]);
  assert.equal(await it.code(attest()), "valid");
  // The protection goes on from there.
  it.pages[REGISTRY] = registry(1);
  it.now += DAY;
  assert.equal(await it.code(attest()), "registry_rollback");
  assert.equal((await world().verifier.forceRefresh(INSTANCE)).discarded_version, "none");

  const unlogged = world({ log: () => { throw new Error("log is down"); } }, { [REGISTRY]: registry(5) });
  await unlogged.code(attest());
  unlogged.pages[REGISTRY] = registry(6, [entry_gone()]);
  await assert.rejects(unlogged.verifier.forceRefresh(INSTANCE), /log is down/);
  assert.equal(await unlogged.code(attest()), "valid");
  await assert.rejects(world({}, { [REGISTRY]: "{" }).verifier.forceRefresh(INSTANCE), { code: "network_error" });
});

const entry_gone = () => entry("compromised");

test("the copy behind the URL", async () => {
  const document = attest();
  const uri = document.attestation_uri;
  const ask = async (page, options = {}) => {
    const it = world({ crossCheck: true, ...options }, { [uri]: page });
    const outcome = await it.verifier.verify(document);
    return outcome.code ?? outcome.crossCheck;
  };
  assert.equal(await ask(JSON.stringify(document, null, 2)), "same");
  assert.equal(await ask(JSON.stringify(Object.fromEntries(Object.entries(document).reverse()))), "same");
  assert.equal(await ask(JSON.stringify({ ...document, note: 1 })), "cross_check_mismatch");
  assert.equal(await ask(JSON.stringify(attest({ output: {} }))), "cross_check_mismatch");
  assert.equal(await ask("{"), "cross_check_mismatch");
  assert.equal(await ask(`${JSON.stringify(document).slice(0, -1)},"key_id":"writ-1"}`), "cross_check_mismatch");
  assert.equal(await ask(new Response("", { status: 410 })), "gone");
  assert.equal(await ask(new Response("", { status: 503 })), "network_error");
  assert.equal(await ask(undefined), "network_error");
  const it = world();
  await it.code(document);
  assert.deepEqual(it.calls, [REGISTRY]);
});

test("a nonce is used up once, and only by what passed everything else", async () => {
  const nonces = new MemoryNonces(() => START);
  const document = attest({ nonce: "0".repeat(32) });
  const it = world({ nonces, crossCheck: true });
  assert.equal(await it.code(document), "network_error");
  it.pages[document.attestation_uri] = JSON.stringify(document);
  assert.equal(await it.code(document), "valid");
  assert.equal(await it.code(document), "nonce_reused");
  assert.equal(await it.code({ ...document, note: 1 }), "signature_invalid");
  const both = await Promise.all([1, 2].map(() => world({ nonces: new MemoryNonces() }).code(document)));
  assert.deepEqual(both, ["valid", "valid"]);
  const racing = world({ nonces: new MemoryNonces() });
  assert.deepEqual((await Promise.all([racing.code(document), racing.code(document)])).sort(), ["nonce_reused", "valid"]);
  assert.equal(await world().code(document), "valid");
});

test("nonces are forgotten when their time is over", () => {
  let now = 0;
  const nonces = new MemoryNonces(() => now);
  for (let n = 0; n < 5000; n += 1) {
    now = n;
    assert.equal(nonces.use(`${n}`, n + 10), true);
  }
  assert.equal(nonces.use("4999", 5009), false);
  assert.equal(nonces.use("0", 10), true);
});

test("expiry is by the verifier's clock", async () => {
  const it = world();
  const document = attest({ expires_at: "2026-06-01T12:15:00Z" });
  assert.equal(await it.code(document), "valid");
  it.now += 15 * 60_000;
  assert.equal(await it.code(document), "expired");
});

test("only network errors are tried again", async () => {
  const refused = world({ retries: 2 }, { [REGISTRY]: new Error("refused") });
  const outcome = await refused.verifier.verify(attest());
  assert.deepEqual([outcome.code, outcome.mayRetry, refused.calls.length], ["network_error", true, 3]);
  for (const [page, requests] of [
    [new Response("", { status: 302, headers: { location: REGISTRY } }), 1],
    [new Response("", { status: 404 }), 1],
    [new Response("", { status: 429 }), 1],
    [new Response("", { status: 410 }), 1],
    [" ".repeat((4 << 20) + 1), 1],
    [new Response("", { status: 500 }), 3],
    [new Response("", { status: 503 }), 3],
  ]) {
    const it = world({ retries: 2 }, { [REGISTRY]: page });
    assert.equal(await it.code(attest()), "network_error");
    assert.equal(it.calls.length, requests, `${page.status}`);
  }
  const forged = world({ retries: 2 });
  assert.equal(await forged.code({ ...attest(), note: 1 }), "signature_invalid");
  assert.equal(forged.calls.length, 1);
  let calls = 0;
  const flaky = async () => {
    calls += 1;
    if (calls < 3) throw new Error("reset");
    return new Response(registry());
  };
  assert.equal(await world({ retries: 2, fetch: flaky }).code(attest()), "valid");
});

test("a fetch that was handed in is called as a function", async () => {
  async function fetch() {
    assert.equal(this, undefined);
    return new Response(registry());
  }
  assert.equal(await world({ fetch }).code(attest()), "valid");
});

test("what is no registry is none", async () => {
  for (const page of ["", "{}", "null", `${registry()}x`, new Response("", { status: 410 }), new Response(registry(), { status: 203 })]) {
    assert.equal(await world({}, { [REGISTRY]: page }).code(attest()), "network_error");
  }
});

test("redirects, size and time have limits", async () => {
  const redirected = new Response(registry());
  Object.defineProperty(redirected, "redirected", { value: true });
  assert.equal(await world({ fetch: async () => redirected }).code(attest()), "network_error");
  let sent = 0;
  const endless = async () => new Response(new ReadableStream({
    pull(controller) {
      sent += 1;
      controller.enqueue(new Uint8Array(1 << 20).fill(32));
    },
  }));
  assert.equal(await world({ fetch: endless }).code(attest()), "network_error");
  assert.ok(sent < 8, `${sent} MiB were read`);
  const stuck = world({ fetch: () => new Promise(() => undefined), timeout: 20 });
  assert.equal(await stuck.code(attest()), "network_error");
  const slow = async () => new Response(new ReadableStream({ pull: () => new Promise(() => undefined) }));
  assert.equal(await world({ fetch: slow, timeout: 20 }).code(attest()), "network_error");
});

test("a large document is no burden", async () => {
  const it = world();
  const output = { text: "x\u00e9\"".repeat(1 << 20), list: Array.from({ length: 100_000 }, (_, n) => ({ n })) };
  assert.equal(await it.code(JSON.stringify(attest({ output }))), "valid");
});
