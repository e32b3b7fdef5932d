import { createHash } from "node:crypto";
import { isParleyError, ParleyError } from "../core/errors.ts";
import type { GeneratedImage } from "../core/gateway.ts";
import { sniff } from "../media/sniff.ts";
import { bytesOfDataUri, isDataUri, notInDataUri, pictureUriMark } from "../wire/pictures.ts";
import { translate } from "../words/translate.ts";

/** Loads the images of an answer. */
export interface ImageLoader {
  /**
   * Loads the image at an http(s) URL or a path of the gateway, in a data URI or in bare base64. Returns
   * `undefined` for one that was loaded before.
   * @throws ParleyError `attachment-…` when it cannot be loaded, with the `host` of an address, or the
   *   signal's reason when it aborts
   */
  load(source: string, signal: AbortSignal, link?: LinkKind): Promise<GeneratedImage | undefined>;
}

/** Where an answer names an image: in a field of its own, or as Markdown in the text. Default `field`. */
export type LinkKind = "field" | "markdown";

/** The limits and the downloader of {@link createImageLoader}. */
export interface ImageLoaderOptions {
  downloadImage(url: string, signal: AbortSignal, link: LinkKind): Promise<Uint8Array>;
  readonly maxImageBytes: number;
  /** Paths are below it. */
  readonly baseUrl: URL;
  /** The most downloads in one answer. Default 10. */
  readonly maxDownloads?: number;
  /** Whether identical images are returned only once. Default true. */
  readonly dedupes?: boolean;
}

/** Creates a loader for one answer. Identical images are recognised by SHA-256. */
export function createImageLoader(options: ImageLoaderOptions): ImageLoader {
  const { maxImageBytes, maxDownloads = 10, dedupes = true } = options;
  const base = `${options.baseUrl.href.replace(/\/$/, "")}/`;
  const seen = new Set<string>();
  let downloads = 0;

  const bytesOf = async (source: string, signal: AbortSignal, link: LinkKind) => {
    const isData = isDataUri(source);
    if (isData || isBase64(source)) {
      // This is a loose limit, since line breaks and padding add characters. The bytes are checked again.
      if (source.length > maxImageBytes * 1.5 + 1024) throw tooLarge(maxImageBytes);
      const bytes = isData ? bytesOfDataUri(source) : Buffer.from(source, "base64");
      if (bytes !== undefined) return { bytes };
      throw new ParleyError("attachment-unreadable", "a data URI without base64");
    }
    if (/^(?:file:|[a-z]:[\\/])/i.test(source))
      throw new ParleyError("attachment-gone", "an image on the server's own disk", {
        detail: { isOnDisk: 1 },
      });
    const url = URL.canParse(source, base) ? new URL(source, base) : undefined;
    if (url === undefined || !/^https?:$/.test(url.protocol))
      throw new ParleyError("attachment-blocked", "image URL with a forbidden scheme");
    if (++downloads > maxDownloads)
      throw new ParleyError("attachment-blocked", `more than ${maxDownloads} linked images in one answer`);
    const bytes = await options.downloadImage(url.href, signal, link).catch((error: unknown) => {
      throw isParleyError(error) ? ofHost(url.host, error) : error;
    });
    return { bytes, host: url.host };
  };

  return {
    async load(source, signal, link = "field") {
      const isLink = /^https?:/i.test(source.slice(0, 6));
      if (dedupes && isLink && seen.has(source)) return undefined;
      const { bytes, host } = await bytesOf(source, signal, link);
      signal.throwIfAborted();
      if (bytes.length > maxImageBytes) throw tooLarge(maxImageBytes);
      const sniffed = sniff(bytes);
      if (sniffed.kind !== "image") {
        const mediaType = sniffed.kind === "empty" ? "empty" : sniffed.mediaType;
        throw new ParleyError("attachment-unreadable", "the gateway sent an image of unknown format", {
          detail: { mediaType, ...(host === undefined ? {} : { host }) },
        });
      }
      if (isLink) seen.add(source);
      const hash = createHash("sha256").update(bytes).digest("hex");
      if (dedupes && seen.has(hash)) return undefined;
      seen.add(hash);
      return { bytes, mediaType: sniffed.mediaType };
    },
  };
}

/** A longer text without a scheme is no path. */
const maxPathChars = 8192;

/** Tells bare base64 from a path: it begins like a picture. */
function isBase64(source: string): boolean {
  if (/^[a-z][a-z\d+.-]*:/i.test(source.slice(0, 32))) return false;
  const isPicture = sniff(Buffer.from(source.slice(0, 64), "base64")).kind === "image";
  return isPicture || source.length > maxPathChars;
}

function ofHost(host: string, { code, message, detail, cause }: ParleyError): ParleyError {
  return new ParleyError(code, message, { detail: { host, ...detail }, cause });
}

function tooLarge(maxBytes: number): ParleyError {
  return new ParleyError("attachment-too-large", `image over ${maxBytes} bytes`, {
    detail: { maxBytes },
  });
}

/** Returns the notice for an image that could not be loaded. Of its URL it names only the host. */
export function imageNotice(error: unknown): string {
  const code = isParleyError(error) ? error.code : undefined;
  const detail = isParleyError(error) ? error.detail : {};
  if (detail["isOnDisk"] !== undefined) return translate("lost-picture.on-disk");
  if (detail["host"] !== undefined)
    return translate("lost-picture.from", { host: detail["host"], reason: reasonOf(code, detail) });
  switch (code) {
    case "attachment-too-large":
      return translate("lost-picture.too-large");
    case "attachment-blocked":
      return translate("lost-picture.blocked");
    case "attachment-unreadable":
      return translate("lost-picture.unreadable");
    default:
      return translate("lost-picture.unloaded");
  }
}

function reasonOf(code: string | undefined, { status, mediaType }: ParleyError["detail"]): string {
  if (code === "attachment-blocked") return translate("lost-picture.because.blocked");
  if (code === "attachment-too-large") return translate("lost-picture.because.too-large");
  if (status !== undefined) return translate("lost-picture.because.status", { status });
  return translate(
    mediaType === undefined ? "lost-picture.because.unreached" : "lost-picture.because.unreadable",
  );
}

/** A piece of an answer's text: text to show, or an image written as Markdown or as a bare data URI. */
export type InlinePiece =
  | { readonly kind: "text"; readonly text: string }
  /** `source` is the original Markdown, shown when the image cannot be loaded. It is empty for data URIs. */
  | { readonly kind: "image"; readonly url: string; readonly source: string }
  /** A data URI over the limit, or without an end. */
  | { readonly kind: "lost-image"; readonly why: "too-large" | "unfinished" };

type State = "text" | "alt" | "start" | "address" | "data" | "bare" | "skip-data" | "skip-bare";

const maxAltChars = 500;
const maxAddressChars = 4096;
const partChars = 2048;
/** A path is one of the gateway's. */
const addressHeads = ["data:", "http://", "https://", "/"];

/**
 * Extracts images from text that arrives in parts. Buffers text from `![` to `)`, and from a bare
 * `data:image/` to its end, so that no base64 is shown. Text that turns out to be no image is released
 * unchanged. So are images with http URLs or paths inside code or of hosts that are not trusted, since a
 * download would tell the host whatever the model wrote into the URL. The time is linear in the text, however
 * it is split.
 * @param maxDataChars longer data URIs are dropped and reported as `lost-image`
 */
export function createInlineImages(maxDataChars: number, isTrusted: (url: string) => boolean) {
  let pieces: InlinePiece[] = [];
  let state: State = "text";
  /** The buffered text in the fragments that it arrived in. They are joined once. */
  let buffered: string[] = [];
  let bufferedChars = 0;
  let openParentheses = 0;
  const code = createCodeTracker();

  const emitText = (text: string) => {
    if (text === "") return;
    code.read(text);
    const last = pieces.at(-1);
    if (last?.kind === "text") pieces[pieces.length - 1] = { kind: "text", text: last.text + text };
    else pieces.push({ kind: "text", text });
  };
  const buffer = (text: string) => {
    buffered.push(text);
    bufferedChars += text.length;
  };
  const takeBuffered = () => {
    const text = buffered.join("");
    buffered = [];
    bufferedChars = 0;
    return text;
  };

  /** Each step reads `text` from its start. It returns the unread rest, or `undefined` when there is none. */
  const steps: Readonly<Record<State, (text: string) => string | undefined>> = {
    text(text) {
      const mark = findMark(text);
      if (mark === undefined) {
        const partialChars = partialMark(text);
        emitText(text.slice(0, text.length - partialChars));
        if (partialChars > 0) buffer(text.slice(text.length - partialChars));
        return undefined;
      }
      emitText(text.slice(0, mark.at));
      if (mark.kind === "markdown") {
        state = "alt";
        buffer("![");
        return text.slice(mark.at + 2);
      }
      state = "bare";
      buffer(pictureUriMark);
      return text.slice(mark.at + pictureUriMark.length);
    },
    alt(text) {
      // A `]` at the very end waits for the next character.
      const joined = buffered.length > 1 && buffered.at(-1) === "]" ? `${popBuffered()}${text}` : text;
      const before = bufferedChars - 2;
      const lineEnd = joined.indexOf("\n");
      const end = joined.indexOf("](");
      const isPending = joined.endsWith("]");
      const altChars = before + (end === -1 ? joined.length - (isPending ? 1 : 0) : end);
      if (altChars > maxAltChars || (lineEnd !== -1 && (end === -1 || lineEnd < end)))
        return releaseMark(joined);
      if (end === -1) {
        buffer(isPending ? joined.slice(0, -1) : joined);
        if (isPending) buffer("]");
        return undefined;
      }
      buffer(joined.slice(0, end));
      buffer("](");
      state = "start";
      openParentheses = 0;
      return joined.slice(end + 2);
    },
    start(text) {
      // This waits for enough characters to tell a data URI from a link, and both from other text.
      const joined = takeAfterBracket() + text;
      const address = joined.trimStart().replace(/^</, "");
      const head = address.slice(0, 8).toLowerCase();
      if (!addressHeads.some((known) => head.startsWith(known))) {
        const isPossible = addressHeads.some((known) => known.startsWith(head));
        if (!isPossible || joined.length > maxAddressChars) return releaseMark(joined);
        buffer(joined);
        return undefined;
      }
      state = head.startsWith("data:") ? "data" : "address";
      if (state === "data") {
        takeBuffered();
        return address;
      }
      return joined;
    },
    address(text) {
      for (let at = 0; at < text.length; at++) {
        const character = text[at];
        if (character === "(") openParentheses++;
        else if (character === "\n" || bufferedChars + at > maxAddressChars) return releaseMark(text);
        else if (character === ")" && openParentheses-- === 0) {
          buffer(text.slice(0, at + 1));
          const rest = text.slice(at + 1);
          const source = buffered.join("");
          const url = toUrl(source.slice(source.indexOf("](") + 2, -1));
          const isLink = /^(?:https?:\/)?\//i.test(url) && !source.includes(pictureUriMark);
          if (!isLink || code.isInside() || !isTrusted(url)) return releaseMark(rest);
          takeBuffered();
          state = "text";
          pieces.push({ kind: "image", url, source });
          return rest;
        }
      }
      buffer(text);
      return undefined;
    },
    data(text) {
      const end = text.indexOf(")");
      if (bufferedChars + (end === -1 ? text.length : end) > maxDataChars) return lose("skip-data", text);
      if (end === -1) {
        buffer(text);
        return undefined;
      }
      buffer(text.slice(0, end));
      state = "text";
      pieces.push({ kind: "image", url: toUrl(takeBuffered()), source: "" });
      return text.slice(end + 1);
    },
    bare(text) {
      const end = text.search(notInDataUri);
      if (bufferedChars + (end === -1 ? text.length : end) > maxDataChars) return lose("skip-bare", text);
      buffer(end === -1 ? text : text.slice(0, end));
      if (end === -1) return undefined;
      endBare();
      return text.slice(end);
    },
    "skip-data"(text) {
      const end = text.indexOf(")");
      if (end === -1) return undefined;
      state = "text";
      return text.slice(end + 1);
    },
    "skip-bare"(text) {
      const end = text.search(notInDataUri);
      if (end === -1) return undefined;
      state = "text";
      return text.slice(end);
    },
  };

  const popBuffered = () => {
    const last = buffered.pop() ?? "";
    bufferedChars -= last.length;
    return last;
  };
  /** Releases buffered text that is no image: its `![` is shown, and the rest is searched for an image. */
  const releaseMark = (text: string) => {
    const whole = takeBuffered() + text;
    emitText(whole.slice(0, 2));
    state = "text";
    return whole.slice(2);
  };
  const takeAfterBracket = () => (buffered.at(-1) === "](" ? "" : popBuffered());
  const endBare = () => {
    const url = takeBuffered();
    state = "text";
    if (/;base64,.{16}/.test(url.slice(0, 120))) pieces.push({ kind: "image", url, source: "" });
    else emitText(url);
  };
  const lose = (next: "skip-data" | "skip-bare", text: string) => {
    takeBuffered();
    pieces.push({ kind: "lost-image", why: "too-large" });
    state = next;
    return text;
  };

  const run = (text: string) => {
    let rest: string | undefined = text;
    // The possible beginning of a mark is searched again together with the next characters.
    if (state === "text" && buffered.length > 0) rest = takeBuffered() + text;
    while (rest !== undefined && rest !== "") rest = steps[state](rest);
  };
  const take = () => {
    const taken = pieces;
    pieces = [];
    return taken;
  };

  return {
    push(text: string): InlinePiece[] {
      // The text is read in parts. Released text is joined with the rest of its part and searched again.
      for (let at = 0; at < text.length; at += partChars) run(text.slice(at, at + partChars));
      return take();
    },
    end(): InlinePiece[] {
      // Each iteration shows at least two characters.
      for (;;) {
        if (state !== "alt" && state !== "start" && state !== "address") break;
        run(releaseMark(""));
      }
      if (state === "data") {
        takeBuffered();
        pieces.push({ kind: "lost-image", why: "unfinished" });
      } else if (state === "bare") endBare();
      else emitText(takeBuffered());
      state = "text";
      return take();
    },
  };
}

/** Returns a URL without its angle brackets and title, and a data URI also without line breaks. */
function toUrl(address: string): string {
  const trimmed = address.trim().replace(/^<|>$/g, "");
  if (!isDataUri(trimmed)) return trimmed.split(/\s/, 1)[0] ?? "";
  const parts = trimmed.split(/\s+/);
  const title = parts.findIndex((part) => /^["']/.test(part));
  return (title === -1 ? parts : parts.slice(0, title)).join("");
}

function findMark(text: string): { at: number; kind: "markdown" | "data" } | undefined {
  const markdown = text.indexOf("![");
  const data = text.indexOf(pictureUriMark);
  if (markdown === -1 && data === -1) return undefined;
  if (data === -1 || (markdown !== -1 && markdown < data)) return { at: markdown, kind: "markdown" };
  return { at: data, kind: "data" };
}

/** Returns how many characters at the end of the text may be the beginning of a mark. */
function partialMark(text: string): number {
  if (text.endsWith("!")) return 1;
  for (let length = Math.min(pictureUriMark.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(pictureUriMark.slice(0, length))) return length;
  }
  return 0;
}

/** Tracks whether the end of the shown text is inside a code fence or inline code. */
function createCodeTracker() {
  let isFenced = false;
  let ticks = 0;
  let lineStart = "";
  return {
    read(text: string) {
      if (!isFenced && ticks === 0 && !text.includes("`")) {
        const lineEnd = text.lastIndexOf("\n");
        lineStart = (lineEnd === -1 ? lineStart + text : text.slice(lineEnd + 1)).slice(0, 8);
        return;
      }
      for (const character of text) {
        if (character === "\n") {
          lineStart = "";
          ticks = 0;
          continue;
        }
        if (lineStart.length < 8) {
          lineStart += character;
          if (character === "`" && /^\s{0,3}```$/.test(lineStart)) {
            isFenced = !isFenced;
            ticks = 0;
            continue;
          }
        }
        if (character === "`" && !isFenced) ticks++;
      }
    },
    isInside() {
      return isFenced || ticks % 2 === 1;
    },
  };
}
