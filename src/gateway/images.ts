import { createHash } from "node:crypto";
import { ParleyError } from "../core/errors.ts";
import type { GeneratedImage } from "../core/gateway.ts";
import { sniff } from "../media/sniff.ts";
import { translate } from "../words/translate.ts";

/** Loads the images of an answer. */
export interface ImageLoader {
  /**
   * The image at an http(s) URL, in a data URI or in bare base64. `undefined` for one that was loaded before.
   * @throws ParleyError `attachment-…` when it cannot be loaded; the signal's reason when it aborts
   */
  load(source: string, signal: AbortSignal, link?: LinkKind): Promise<GeneratedImage | undefined>;
}

/** Where an answer names an image: in a field of its own, or as Markdown in the text. Default `field`. */
export type LinkKind = "field" | "markdown";

/** Limits and downloader of {@link createImageLoader}. */
export interface ImageLoaderOptions {
  downloadImage(url: string, signal: AbortSignal, link: LinkKind): Promise<Uint8Array>;
  readonly maxImageBytes: number;
  /** Downloads in one answer. Default 10. */
  readonly maxDownloads?: number;
  /** Whether identical images are returned only once. Default true. */
  readonly dedupes?: boolean;
}

/** A loader for one answer. Identical images are recognised by SHA-256. */
export function createImageLoader(options: ImageLoaderOptions): ImageLoader {
  const { maxImageBytes, maxDownloads = 10, dedupes = true } = options;
  const seen = new Set<string>();
  let downloads = 0;

  const bytesOf = async (source: string, signal: AbortSignal, link: LinkKind) => {
    if (/^data:/i.test(source.slice(0, 5))) return decodeDataUri(source, maxImageBytes);
    if (!/^[a-z][a-z\d+.-]*:/i.test(source.slice(0, 32))) return decodeBase64(source, maxImageBytes);
    if (!/^https?:/i.test(source.slice(0, 6)))
      throw new ParleyError("attachment-blocked", "image URL with a forbidden scheme");
    if (++downloads > maxDownloads)
      throw new ParleyError("attachment-blocked", `more than ${maxDownloads} linked images in one answer`);
    return options.downloadImage(source, signal, link);
  };

  return {
    async load(source, signal, link = "field") {
      const isLink = /^https?:/i.test(source.slice(0, 6));
      if (dedupes && isLink && seen.has(source)) return undefined;
      const bytes = await bytesOf(source, signal, link);
      signal.throwIfAborted();
      if (bytes.length > maxImageBytes) throw tooLarge(maxImageBytes);
      const sniffed = sniff(bytes);
      if (sniffed.kind !== "image")
        throw new ParleyError("attachment-unreadable", "the gateway sent an image of unknown format", {
          detail: { mediaType: sniffed.kind === "empty" ? "empty" : sniffed.mediaType },
        });
      if (isLink) seen.add(source);
      const hash = createHash("sha256").update(bytes).digest("hex");
      if (dedupes && seen.has(hash)) return undefined;
      seen.add(hash);
      return { bytes, mediaType: sniffed.mediaType };
    },
  };
}

function decodeDataUri(uri: string, maxBytes: number): Uint8Array {
  const comma = uri.indexOf(",");
  if (comma === -1 || !/;base64$/i.test(uri.slice(0, Math.min(comma, 300))))
    throw new ParleyError("attachment-unreadable", "a data URI without base64");
  return decodeBase64(uri.slice(comma + 1), maxBytes);
}

function decodeBase64(text: string, maxBytes: number): Uint8Array {
  // A loose bound, since line breaks and padding add characters; the bytes are checked again.
  if (text.length > maxBytes * 1.5 + 1024) throw tooLarge(maxBytes);
  return Buffer.from(text, "base64");
}

function tooLarge(maxBytes: number): ParleyError {
  return new ParleyError("attachment-too-large", `image over ${maxBytes} bytes`, {
    detail: { maxBytes },
  });
}

/** The notice for an image that could not be loaded. It does not contain the URL. */
export function imageNotice(error: unknown): string {
  const code = error instanceof ParleyError ? error.code : undefined;
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
