/** GET with a limit on size and time; no redirect is followed, no cookie sent. */

import { Failure } from "./failure.js";

export interface Network {
  fetch: typeof globalThis.fetch;
  /** Milliseconds for one request, its body included. */
  timeout: number;
  /** How often a request is made again. */
  retries: number;
  /** Milliseconds before the first of these; each further one waits twice as long. */
  retryDelay: number;
}

/** An answer that asking again does not change. */
class Final extends Error {}

/**
 * The body, or "gone" for 410. Everything else is a {@link Failure} `network_error`; no answer and 5xx are tried again as often as told.
 */
export async function get(url: string, limit: number, network: Network): Promise<Uint8Array | "gone"> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await once(url, limit, network);
    } catch (error) {
      if (error instanceof Final || attempt >= network.retries) throw failure(url, error);
      await new Promise((resume) => setTimeout(resume, network.retryDelay * 2 ** attempt));
    }
  }
}

async function once(url: string, limit: number, network: Network): Promise<Uint8Array | "gone"> {
  const abort = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`no answer within ${network.timeout} ms`));
      abort.abort();
    }, network.timeout);
  });
  try {
    // A `fetch` that was handed in may not heed the signal, so the clock runs beside it.
    return await Promise.race([answer(url, limit, network, abort.signal), late]);
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
}

async function answer(url: string, limit: number, network: Network, signal: AbortSignal): Promise<Uint8Array | "gone"> {
  // A browser's own `fetch` must not be called as a method of something else.
  const { fetch } = network;
  const response = await fetch(url, {
    signal,
    redirect: "manual",
    credentials: "omit",
    cache: "no-store",
    referrerPolicy: "no-referrer",
    headers: { accept: "application/json" },
  });
  // A browser does not tell the status of a redirect that it did not follow.
  if (response.redirected || response.type === "opaqueredirect") throw new Final("redirected");
  if (response.status === 410) return "gone";
  if (response.status >= 500) throw new Error(`status ${response.status}`);
  if (response.status !== 200) throw new Final(`status ${response.status}`);
  return body(response, limit);
}

async function body(response: Response, limit: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = response.body?.getReader();
  while (reader) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > limit) throw new Final(`more than ${limit} bytes`);
    chunks.push(value);
  }
  const out = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    out.set(chunk, at);
    at += chunk.length;
  }
  return out;
}

function failure(url: string, error: unknown): Failure {
  const cause = error instanceof Error ? error : new Error(String(error));
  const inner = cause.cause instanceof Error ? `: ${cause.cause.message}` : "";
  return new Failure("network_error", `${url}: ${cause.message}${inner}`);
}
