import { isPublicHost } from "../core/settings.ts";
import { isFields } from "./failures.ts";
import { imageAnswerSchema } from "./schemas.ts";

/** How the convention writes pictures: data URIs, parts of a message, and the items of a generation. */

/** A data URI of a picture in a text begins so. */
export const pictureUriMark = "data:image/";
/** What ends a data URI in a text. */
export const notInDataUri = /[^\w+/=;:,.-]/;

/** Writes a picture as a data URI. */
export function toDataUri(mediaType: string, bytes: Uint8Array): string {
  return `data:${mediaType};base64,${Buffer.from(bytes).toString("base64")}`;
}

/** Whether a text is a data URI, in any case of letters. */
export function isDataUri(text: string): boolean {
  return /^data:/i.test(text.slice(0, 5));
}

/** Decodes a base64 data URI, or returns `undefined` for another one. What is no base64 is skipped. */
export function bytesOfDataUri(uri: string): Buffer | undefined {
  const comma = uri.indexOf(",");
  if (comma === -1 || !/;base64$/i.test(uri.slice(0, Math.min(comma, 300)))) return undefined;
  return Buffer.from(uri.slice(comma + 1), "base64");
}

/** Servers refuse longer addresses, and parsing megabytes takes time. */
const maxUrlChars = 8192;

/**
 * Returns what is wrong with the URL of a picture in a request, as the end of a sentence, or `undefined` for
 * a valid one. Host names are resolved and checked only when the picture is downloaded.
 */
export function checkPictureUrl(text: string): string | undefined {
  if (isDataUri(text)) {
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

function isBase64(text: string, start: number): boolean {
  if (start >= text.length) return false;
  const alphabet = /[A-Za-z0-9+/]+={0,2}$/y;
  alphabet.lastIndex = start;
  return alphabet.test(text) && (text.length - start) % 4 !== 1;
}

/** A part of a message's content, or an item of `images`. */
export function toPicturePart(url: string) {
  return { type: "image_url", image_url: { url } } as const;
}

/**
 * Returns the URL or data URI in a part of an answer, in the forms that servers send: `image_url` as object
 * or text, `b64_json`, or `inline_data`.
 */
export function pictureUrlOf(part: unknown): string | undefined {
  if (typeof part === "string") return /^(?:data:|https?:)/i.test(part.slice(0, 8)) ? part : undefined;
  if (!isFields(part)) return undefined;
  const image = part["image_url"] ?? (part["type"] === "image" ? (part["image"] ?? part["url"]) : undefined);
  if (typeof image === "string" && image !== "") return image;
  if (isFields(image) && typeof image["url"] === "string" && image["url"] !== "") return image["url"];
  if (typeof part["b64_json"] === "string") return `data:;base64,${part["b64_json"]}`;
  const inline = part["inline_data"] ?? part["inlineData"] ?? part["source"];
  if (isFields(inline) && typeof inline["data"] === "string") return `data:;base64,${inline["data"]}`;
  return undefined;
}

/** Returns the usable items of a generation's answer with all their fields. Some servers send a bare list. */
export function generatedPicturesOf(answer: unknown) {
  return imageAnswerSchema.safeParse(Array.isArray(answer) ? { data: answer as unknown[] } : answer).data
    ?.data;
}

/**
 * The most bytes of a generation's answer with so many pictures in base64. Several of the largest at once
 * would be too much for memory.
 */
export function maxGenerationBytes(count: number, maxPictureBytes: number): number {
  return Math.ceil(maxPictureBytes * 1.4) * Math.min(3, count) + 1024 * 1024;
}
