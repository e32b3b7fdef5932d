import { BlockList, isIP } from "node:net";

/** IPv4 ranges that are not public. @see https://www.iana.org/assignments/iana-ipv4-special-registry */
const blockedV4: readonly (readonly [network: string, prefix: number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
];

/**
 * IPv6 ranges inside 2000::/3 that are not public: protocol assignments with Teredo, documentation, and 6to4, which
 * embeds an IPv4 address. Everything outside 2000::/3 is not public and needs no entry.
 * @see https://www.iana.org/assignments/iana-ipv6-special-registry
 */
const blockedV6: readonly (readonly [network: string, prefix: number])[] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

const blocked = new BlockList();
for (const [network, prefix] of blockedV4) blocked.addSubnet(network, prefix, "ipv4");
for (const [network, prefix] of blockedV6) blocked.addSubnet(network, prefix, "ipv6");

const unicast = new BlockList();
unicast.addSubnet("2000::", 3, "ipv6");

/**
 * Whether an IP address is public. False for names, and for IPv6 addresses with a zone or an embedded IPv4 address.
 * Never throws.
 */
export function isPublicAddress(address: string): boolean {
  if (address.includes("%")) return false;
  const family = isIP(address);
  if (family === 4) return !blocked.check(address, "ipv4");
  return family === 6 && unicast.check(address, "ipv6") && !blocked.check(address, "ipv6");
}

/**
 * Whether a host of a URL may be public: a public address, or a name with a dot that is not one of a local network.
 * Names are not resolved. Spellings such as 0x7f.1 or 2130706433 are already normalised by `URL`.
 */
export function isPublicHost(hostname: string): boolean {
  const host = hostname.replaceAll(/^\[|\]$/g, "").replace(/\.$/, "");
  if (isIP(host) !== 0) return isPublicAddress(host);
  return (
    !/(^|\.)(localhost|localdomain|local|internal|intranet|lan|home|corp|home\.arpa)$/i.test(host) &&
    host.includes(".")
  );
}
