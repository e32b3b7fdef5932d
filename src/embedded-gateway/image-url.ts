import { isPublicHost } from "../core/public-address.ts";

/** Servers refuse longer addresses, and parsing megabytes takes time. */
const maxUrlChars = 8192;

/** A decoded data URI. */
export interface DataUri {
  readonly mediaType: string;
  readonly bytes: Buffer;
}

/**
 * What is wrong with an image URL, as the end of a sentence; `undefined` for a valid one. Host names are resolved and
 * checked only when the image is downloaded.
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
  if (text.length > maxUrlChars)
    return `must be at most ${maxUrlChars} characters long, unless it is a data URI`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    return "must be an http(s) address or a data URI";
  }
  if (url.username !== "" || url.password !== "") return "must not hold a user name or password";
  return isPublicHost(url.hostname) ? undefined : "names a blocked address: only public hosts are fetched";
}

/** Decodes a data URI that is valid by {@link checkImageUrl}. */
export function parseDataUri(text: string): DataUri {
  const comma = text.indexOf(",");
  const mediaType = text.slice("data:".length, text.indexOf(";")).toLowerCase();
  return { mediaType, bytes: Buffer.from(text.slice(comma + 1), "base64") };
}

function isBase64(text: string, start: number): boolean {
  if (start >= text.length) return false;
  const alphabet = /[A-Za-z0-9+/]+={0,2}$/y;
  alphabet.lastIndex = start;
  return alphabet.test(text) && (text.length - start) % 4 !== 1;
}
