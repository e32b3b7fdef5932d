import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";

/** Whether a setting is an IP address or a network such as `10.0.0.0/8`. */
export function isAddressOrNetwork(entry: string): boolean {
  const [address = "", bits, ...rest] = entry.split("/");
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}

/**
 * The address that a request counts for: the socket's, or, where that is a trusted proxy's, the last address in
 * X-Forwarded-For that is no trusted proxy. An IPv6 address counts as its /64 network, which one person owns whole.
 * @param trustedProxies addresses and networks. Empty: X-Forwarded-For is never read.
 */
export function createClientAddress(trustedProxies: readonly string[]): (request: IncomingMessage) => string {
  const trusted = new BlockList();
  for (const entry of trustedProxies) {
    const [address = "", bits] = entry.split("/");
    const family = isIP(address) === 4 ? "ipv4" : "ipv6";
    if (bits === undefined) trusted.addAddress(address, family);
    else trusted.addSubnet(address, Number(bits), family);
  }
  const isTrusted = (address: string): boolean =>
    isIP(address) !== 0 && trusted.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");

  return (request) => {
    let address = plain(request.socket.remoteAddress ?? "");
    if (!isTrusted(address)) return toCounted(address);
    // Each proxy appends the address it saw: only what is behind trusted ones is known.
    const forwarded = request.headersDistinct["x-forwarded-for"]?.join(",").split(",") ?? [];
    for (const hop of forwarded.toReversed()) {
      const next = plain(hop.trim());
      if (isIP(next) === 0) break;
      address = next;
      if (!isTrusted(address)) break;
    }
    return toCounted(address);
  };
}

/** IPv4 addresses in IPv6 form (`::ffff:192.0.2.1`) as IPv4. */
function plain(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  return mapped?.[1] ?? address;
}

function toCounted(address: string): string {
  if (isIP(address) !== 6) return address;
  const [head = "", tail] = address.split("%", 1)[0]!.split("::");
  const groups = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - after.length);
  const all = [...groups, ...Array.from({ length: zeros }, () => "0"), ...after];
  return all
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":");
}
