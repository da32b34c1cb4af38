/**
 * Strict JSON and its canonical form (RFC 8785).
 *
 * `JSON.parse` keeps the last of two members of one name, takes half a surrogate pair and rounds large integers in silence; each of
 * these lets two documents have one canonical form. This parser refuses them.
 */

export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [name: string]: Json;
}

export interface Limits {
  /** Largest document, in bytes of UTF-8. */
  bytes: number;
  /** Deepest nesting of arrays and objects. */
  depth: number;
  /** Integers beyond ±(2^53 − 1): none however it is written (`1e20`), or those written as RFC 8785 writes them. */
  integers: "exact" | "canonical";
}

export const REGISTRY_LIMITS: Limits = { bytes: 4 << 20, depth: 64, integers: "exact" };
export const ATTESTATION_LIMITS: Limits = { bytes: 64 << 20, depth: 256, integers: "canonical" };

export class JsonError extends Error {
  override name = "JsonError";
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
// What a string holds before an escape or its end.
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const HEX = /[0-9a-fA-F]{4}/y;
const SPACE = /[ \t\n\r]*/y;
const LONE_SURROGATE = /\p{Surrogate}/u;
const ESCAPES: { [letter: string]: string } = {
  '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t",
};

/** Parses one document. Objects come without a prototype, so no member's name is special. */
export function parse(document: string | Uint8Array, limits: Limits): Json {
  const text = typeof document === "string" ? checked(document, limits) : decoded(document, limits);
  const parser = new Parser(text, limits);
  const value = parser.value(0);
  parser.end();
  return value;
}

function decoded(bytes: Uint8Array, limits: Limits): string {
  if (bytes.length > limits.bytes) throw new JsonError(`more than ${limits.bytes} bytes`);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new JsonError("not UTF-8");
  }
}

function checked(text: string, limits: Limits): string {
  // A UTF-16 unit is at least one byte of UTF-8 and at most three.
  const long = text.length > limits.bytes / 3 && utf8(text).length > limits.bytes;
  if (long) throw new JsonError(`more than ${limits.bytes} bytes`);
  if (LONE_SURROGATE.test(text)) throw new JsonError("lone surrogate");
  return text;
}

class Parser {
  private at = 0;

  constructor(private readonly text: string, private readonly limits: Limits) {}

  value(depth: number): Json {
    this.space();
    switch (this.text[this.at]) {
      case '"': return this.string();
      case "{": return this.object(depth);
      case "[": return this.array(depth);
      case "t": return this.word("true", true);
      case "f": return this.word("false", false);
      case "n": return this.word("null", null);
      default: return this.number();
    }
  }

  end(): void {
    this.space();
    if (this.at < this.text.length) throw this.wrong("text after the document");
  }

  private wrong(what: string): JsonError {
    return new JsonError(`${what} at character ${this.at}`);
  }

  private match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    this.at += found?.length ?? 0;
    return found;
  }

  private space(): void {
    this.match(SPACE);
  }

  private take(letter: string): boolean {
    if (this.text[this.at] !== letter) return false;
    this.at += 1;
    return true;
  }

  private word(word: string, value: Json): Json {
    if (!this.text.startsWith(word, this.at)) throw this.wrong("no JSON value");
    this.at += word.length;
    return value;
  }

  private number(): number {
    const start = this.at;
    NUMBER.lastIndex = start;
    const found = NUMBER.exec(this.text);
    if (!found) throw this.wrong("no JSON value");
    const [text, fraction, exponent] = found;
    const number = Number(text);
    const integer = fraction === undefined && exponent === undefined;
    // Below 1e21 the canonical form is an integer, however this one is written.
    const taken =
      Math.abs(number) <= Number.MAX_SAFE_INTEGER ||
      (this.limits.integers === "exact"
        ? !integer && Math.abs(number) >= 1e21
        : !integer || String(number) === text);
    if (!Number.isFinite(number) || !taken) throw this.wrong("number out of range");
    this.at += text.length;
    return number;
  }

  private string(): string {
    this.at += 1;
    let out = "";
    for (;;) {
      out += this.match(PLAIN) ?? "";
      if (this.take('"')) return out;
      if (!this.take("\\")) throw this.wrong("a string without end, or a control character in it");
      out += this.escape();
    }
  }

  private escape(): string {
    if (!this.take("u")) {
      const plain = ESCAPES[this.text[this.at] ?? ""];
      if (plain === undefined) throw this.wrong("no such escape");
      this.at += 1;
      return plain;
    }
    const first = this.hex();
    if (first < 0xd800 || first > 0xdfff) return String.fromCharCode(first);
    const pair = first < 0xdc00 && this.take("\\") && this.take("u");
    const second = pair ? this.hex() : 0;
    if (second < 0xdc00 || second > 0xdfff) throw this.wrong("lone surrogate");
    return String.fromCharCode(first, second);
  }

  private hex(): number {
    const digits = this.match(HEX);
    if (digits === undefined) throw this.wrong("not four hexadecimal digits");
    return Number.parseInt(digits, 16);
  }

  private deeper(depth: number): number {
    if (depth >= this.limits.depth) throw this.wrong(`deeper than ${this.limits.depth} levels`);
    this.at += 1;
    return depth + 1;
  }

  private array(outside: number): Json[] {
    const depth = this.deeper(outside);
    const items: Json[] = [];
    this.space();
    if (this.take("]")) return items;
    for (;;) {
      items.push(this.value(depth));
      this.space();
      if (this.take("]")) return items;
      if (!this.take(",")) throw this.wrong("neither `,` nor `]`");
    }
  }

  private object(outside: number): JsonObject {
    const depth = this.deeper(outside);
    const members = Object.create(null) as JsonObject;
    this.space();
    if (this.take("}")) return members;
    for (;;) {
      this.space();
      if (this.text[this.at] !== '"') throw this.wrong("no member name");
      const name = this.string();
      if (name in members) throw this.wrong("duplicate member");
      this.space();
      if (!this.take(":")) throw this.wrong("no `:`");
      members[name] = this.value(depth);
      this.space();
      if (this.take("}")) return members;
      if (!this.take(",")) throw this.wrong("neither `,` nor `}`");
    }
  }
}

/** The form of RFC 8785. ECMAScript's own number form, string escapes and string order are those of the RFC. */
export function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name] as Json)}`);
  return `{${members.join(",")}}`;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function utf8(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text) as Uint8Array<ArrayBuffer>;
}
