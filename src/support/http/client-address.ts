import type { IncomingMessage } from "node:http";
import ipaddr from "ipaddr.js";

/** Whether a setting is an IP address or a network such as `10.0.0.0/8`. */
export function isAddressOrNetwork(entry: string): boolean {
  return entry.includes("/") ? ipaddr.isValidCIDR(entry) : isAddress(entry);
}

/**
 * Whether a network is a large part of the internet. Private networks are at most a /8, or a /7 of IPv6.
 * Providers of proxies have smaller ones. It is false for anything else.
 */
export function isVast(entry: string): boolean {
  if (!ipaddr.isValidCIDR(entry)) return false;
  const [address, bits] = ipaddr.parseCIDR(entry);
  if (address.kind() === "ipv4") return bits < 8;
  return bits < (["uniqueLocal", "linkLocal"].includes(address.range()) ? 7 : 16);
}

/** Whether a text is an IP address in its usual form. */
function isAddress(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text);
}

/**
 * Finds the address for which a request counts: the socket's or, behind a trusted proxy, the last untrusted
 * one in X-Forwarded-For. An IPv6 address counts as its /64 network, which belongs to one person.
 * @param trustedProxies addresses and networks. If it is empty, X-Forwarded-For is never read.
 */
export function createClientAddress(trustedProxies: readonly string[]): (request: IncomingMessage) => string {
  const trusted = trustedProxies.map((entry) =>
    entry.includes("/")
      ? ipaddr.parseCIDR(entry)
      : ipaddr.parseCIDR(`${entry}/${entry.includes(":") ? 128 : 32}`),
  );
  const isTrusted = (address: string): boolean => {
    if (!isAddress(address)) return false;
    const parsed = ipaddr.process(address);
    return trusted.some((network) => network[0].kind() === parsed.kind() && parsed.match(network));
  };

  return (request) => {
    let address = request.socket.remoteAddress ?? "";
    if (!isTrusted(address)) return toCounted(address);
    // Each proxy appends the address it saw, so only the addresses that trusted proxies saw are reliable.
    const forwarded = request.headersDistinct["x-forwarded-for"]?.join(",").split(",") ?? [];
    for (const hop of forwarded.toReversed()) {
      if (!isAddress(hop.trim())) break;
      address = hop.trim();
      if (!isTrusted(address)) break;
    }
    return toCounted(address);
  };
}

/** An IPv4 address in IPv6 form (`::ffff:192.0.2.1`) counts as IPv4. */
function toCounted(address: string): string {
  if (!isAddress(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed.kind() === "ipv4") return parsed.toString();
  return ipaddr.IPv6.networkAddressFromCIDR(`${address.split("%", 1)[0]}/64`).toString();
}

/** Whether a host name or IP address, with or without brackets, is reachable from this machine only. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "").toLowerCase();
  return bare === "localhost" || (isAddress(bare) && ipaddr.process(bare).range() === "loopback");
}

/**
 * Whether a host is on another machine. A name without a dot is one of the containers beside this one, and a
 * path is a socket's.
 */
export function isOnOtherMachine(host: string): boolean {
  return !isLoopback(host) && !host.startsWith("/") && /[.:]/.test(host);
}

const forwardedHeaders = ["x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via"];

/**
 * Whether the request is from this machine and not passed on by a proxy on it, which names another host or
 * says for whom. The Host header alone grants nothing. A foreign one is refused too, since DNS rebinding lets
 * a web page reach loopback by its own name.
 */
export function isFromThisMachine({ socket, headers }: IncomingMessage): boolean {
  const address = (socket.remoteAddress ?? "").replace(/^::ffff:/i, "");
  const name = (headers.host ?? "").replace(/:\d+$/, "");
  return isLoopback(address) && isLoopback(name) && forwardedHeaders.every((each) => !(each in headers));
}

/** Whether a browser sent the request for a page of another site, by Origin and Sec-Fetch-Site. */
export function isOfOtherSite({ headers }: IncomingMessage): boolean {
  const { origin, host = "", "sec-fetch-site": site } = headers;
  const own = [`http://${host}`, `https://${host}`].map((each) => each.toLowerCase());
  if (origin !== undefined && !own.includes(origin.toLowerCase())) return true;
  return site !== undefined && site !== "same-origin" && site !== "none";
}
