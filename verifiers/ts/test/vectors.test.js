// Every case of ../../../vectors/{canonical,attestation,registry}.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { ATTESTATION_LIMITS, Registry, canonical, parse, verifyWith } from "../dist/index.js";

function cases(folder, atLeast) {
  const at = new URL(`../../../vectors/${folder}/`, import.meta.url);
  const read = readdirSync(at).map((name) => JSON.parse(readFileSync(new URL(name, at), "utf8")));
  assert.ok(read.length >= atLeast, `only ${read.length} cases in ${folder}`);
  return read;
}

// A member is a text, or the base64 of what is none.
const bytes = (vector, member) =>
  vector[member] === undefined ? Buffer.from(vector[`${member}_base64`], "base64") : vector[member];

const outcome = (work) => {
  try {
    return work();
  } catch (error) {
    return error.code ?? "invalid";
  }
};

test("canonical JSON", () => {
  for (const vector of cases("canonical", 90)) {
    const said = outcome(() => canonical(parse(bytes(vector, "input"), ATTESTATION_LIMITS)));
    assert.equal(said, vector.expect === "canonical" ? vector.canonical : "invalid", vector.name);
    if (vector.canonical !== undefined) {
      assert.equal(createHash("sha256").update(said).digest("hex"), vector.sha256, vector.name);
    }
  }
});

test("text and bytes are read alike", () => {
  for (const vector of cases("canonical", 90).filter(({ input }) => input !== undefined)) {
    const [text, encoded] = [vector.input, Buffer.from(vector.input)].map((document) =>
      outcome(() => canonical(parse(document, ATTESTATION_LIMITS))),
    );
    assert.equal(text, encoded, vector.name);
  }
});

test("attestations", async () => {
  for (const vector of cases("attestation", 250)) {
    const terms = { trustedInstances: vector.trusted_instances ?? [], now: Date.parse(vector.now) };
    const said = await verifyWith(bytes(vector, "attestation"), bytes(vector, "registry"), terms).then(
      () => "valid",
      (error) => error.code ?? error,
    );
    assert.equal(said, vector.expect, vector.name);
  }
});

test("registries", () => {
  let successions = 0;
  for (const vector of cases("registry", 130)) {
    const said = outcome(() => {
      if (vector.fetched === undefined) return Registry.parse(bytes(vector, "document")) && "valid";
      successions += 1;
      return Registry.parse(vector.fetched).follow(Registry.parse(vector.known));
    });
    assert.equal(said, vector.expect, vector.name);
  }
  assert.ok(successions >= 40);
});
