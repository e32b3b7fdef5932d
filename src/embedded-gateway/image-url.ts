import { BlockList, isIP } from "node:net";

/** Pictures of a message, decoded. */
export interface DataUri {
  readonly mediaType: string;
  readonly bytes: Buffer;
}

const blocked = new BlockList();
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
] as const) {
  blocked.addSubnet(network, prefix, "ipv4");
}
for (const [network, prefix] of [
  ["::", 96],
  ["64:ff9b::", 96],
  ["2002::", 16],
  ["fc00::", 7],
  ["fe80::", 10],
  ["ff00::", 8],
] as const) {
  blocked.addSubnet(network, prefix, "ipv6");
}

/**
 * What is wrong with an image address, as the end of a sentence; `undefined`: nothing that can be seen without a
 * connection. Names are resolved, and checked again, only where the picture is fetched.
 */
export function checkImageUrl(text: string): string | undefined {
  if (text.startsWith("data:")) {
    const [head = "", ...rest] = text.slice(0, 200).split(",");
    if (!/^data:[a-z0-9.+-]+\/[a-z0-9.+-]+;base64$/i.test(head) || rest.length === 0) {
      return "must be a data URI of the form data:<media_type>;base64,<base64_data>";
    }
    if (!/^data:image\//i.test(head)) return "must be a data URI of an image";
    return isBase64(text, head.length + 1) ? undefined : "holds a data URI whose base64 is broken or empty";
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    return "must be an http(s) address or a data URI";
  }
  if (url.username !== "" || url.password !== "") return "must not hold a user name or password";
  return isPublicHost(url.hostname) ? undefined : "names a blocked address: only public hosts are fetched";
}

/** The parts of a data URI that {@link checkImageUrl} has passed. */
export function parseDataUri(text: string): DataUri {
  const comma = text.indexOf(",");
  const mediaType = text.slice("data:".length, text.indexOf(";")).toLowerCase();
  return { mediaType, bytes: Buffer.from(text.slice(comma + 1), "base64") };
}

/** Also the spellings of an address that URL has normalised already: 0x7f.1, 2130706433, ::ffff:127.0.0.1. */
function isPublicHost(hostname: string): boolean {
  const host = hostname.replaceAll(/^\[|\]$/g, "").replace(/\.$/, "");
  const family = isIP(host);
  if (family === 4) return !blocked.check(host, "ipv4");
  if (family === 6) return !blocked.check(host, "ipv6");
  return !/(^|\.)(localhost|local|internal|lan|home\.arpa)$/i.test(host) && host.includes(".");
}

function isBase64(text: string, start: number): boolean {
  if (start >= text.length) return false;
  const alphabet = /[A-Za-z0-9+/]+={0,2}$/y;
  alphabet.lastIndex = start;
  return alphabet.test(text) && (text.length - start) % 4 !== 1;
}
