/**
 * Ed25519 by WebCrypto, strictly: S below the group order, neither key nor R of small order or in another than its canonical form.
 * Implementations of WebCrypto differ in these points, so they are checked here.
 */

/** The y coordinates of the eight points of small order, little-endian. */
const SMALL_ORDER = new Set([
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]);

const PRIME = 2n ** 255n - 19n;
const GROUP_ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;

/** Whether these 32 bytes encode a point of small order, or one in another than its canonical form. */
export function isWeak(point: Uint8Array): boolean {
  const y = Uint8Array.from(point);
  // The highest bit is the sign of x.
  y[31] = (y[31] ?? 0) & 0x7f;
  return SMALL_ORDER.has(hex(y)) || littleEndian(y) >= PRIME;
}

export async function verify(key: Uint8Array<ArrayBuffer>, message: Uint8Array<ArrayBuffer>, signature: Uint8Array<ArrayBuffer>): Promise<boolean> {
  if (key.length !== 32 || signature.length !== 64) return false;
  if (isWeak(key) || isWeak(signature.slice(0, 32)) || littleEndian(signature.slice(32)) >= GROUP_ORDER) return false;
  await available();
  try {
    const imported = await crypto.subtle.importKey("raw", key, { name: "Ed25519" }, false, ["verify"]);
    return await crypto.subtle.verify({ name: "Ed25519" }, imported, signature, message);
  } catch {
    // Some implementations refuse here a key that is no point.
    return false;
  }
}

let known: Promise<void> | undefined;

/** A runtime without Ed25519 is a fault of the runtime, never a wrong signature. */
function available(): Promise<void> {
  const base = Uint8Array.from({ length: 32 }, (_, at) => (at === 0 ? 0x58 : 0x66));
  known ??= Promise.resolve(globalThis.crypto?.subtle?.importKey("raw", base, { name: "Ed25519" }, false, ["verify"])).then(
    (key) => {
      if (key === undefined) throw new Error("no WebCrypto here: a browser has it on https pages and on localhost only");
    },
    (cause: unknown) => {
      throw new Error("this runtime's WebCrypto has no Ed25519: Node 20, Chromium 137, Firefox 129 and Safari 17 have it", { cause });
    },
  );
  return known;
}

export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}

function littleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x${hex(Uint8Array.from(bytes).reverse())}`);
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
