/** An instance's address: scheme, host and port, in one form. */

const PARTS = /^(https?):\/\/(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::([1-9][0-9]{0,4}))?$/;
const LABEL = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/;
const IPV4 = /^(?:(?:0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])(?:\.(?!$)|$)){4}$/;

/**
 * `http(s)://host[:port]` in its one form: the host in lower case, the scheme's own port left out. Undefined for everything that one
 * client could read like this and another like that: a path, a trailing dot, an IPv4 address that is not four plain numbers.
 */
export function instanceOf(text: string): string | undefined {
  const parts = PARTS.exec(text);
  if (!parts) return undefined;
  const [, scheme = "", address, name = "", port] = parts;
  const host = address === undefined ? named(name.toLowerCase()) : ipv6(address);
  if (host === undefined || Number(port ?? 1) > 65535) return undefined;
  const own = port === undefined || port === (scheme === "https" ? "443" : "80");
  return `${scheme}://${host}${own ? "" : `:${port}`}`;
}

/** Whether an instance is among the trusted, however either is spelled; an empty list accepts any. */
export function isTrusted(instance: string, trusted: readonly string[]): boolean {
  const at = instanceOf(instance);
  return trusted.length === 0 || (at !== undefined && trusted.some((entry) => instanceOf(entry) === at));
}

function named(host: string): string | undefined {
  const labels = host.split(".");
  if (host.length > 253 || !labels.every((label) => LABEL.test(label))) return undefined;
  // Clients read a host that ends in a number as an IPv4 address, some of them in octal.
  const number = /^(?:0x[0-9a-f]*|[0-9]+)$/.test(labels.at(-1) ?? "");
  return number && !IPV4.test(host) ? undefined : host;
}

function ipv6(address: string): string | undefined {
  const last = address.slice(address.lastIndexOf(":") + 1);
  // Chromium reads an octal number here.
  if (last.includes(".") && !IPV4.test(last)) return undefined;
  try {
    return new URL(`http://[${address}]`).hostname;
  } catch {
    return undefined;
  }
}
