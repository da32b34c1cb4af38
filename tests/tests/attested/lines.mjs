// One case a line in, one answer a line out. The library's module is the only argument.

import { createHash } from "node:crypto";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { Registry, verifyWith } = await import(pathToFileURL(process.argv[2]).href);
const bytes = (base64) => Buffer.from(base64, "base64");

async function attestation(line) {
  const terms = { trustedInstances: line.trusted, now: line.now };
  const { attestation, keyState } = await verifyWith(bytes(line.attestation), bytes(line.registry), terms);
  const digest = createHash("sha256").update(attestation.canonical()).digest("hex");
  return `valid ${keyState} ${attestation.id} ${digest}`;
}

function succession(line) {
  const [known, fetched] = [line.known, line.fetched].map((document) => {
    try {
      return Registry.parse(bytes(document));
    } catch {
      return undefined;
    }
  });
  return known && fetched ? fetched.follow(known) : "invalid";
}

for await (const text of createInterface({ input: process.stdin })) {
  const line = JSON.parse(text);
  let said;
  try {
    said = line.known === undefined ? await attestation(line) : succession(line);
  } catch (error) {
    said = error.code ?? `fault: ${error.stack}`;
  }
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
