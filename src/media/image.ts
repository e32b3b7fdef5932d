import { ParleyError } from "../core/errors.ts";
import { hasLocation } from "./exif.ts";
import { decodeInTurn, openPicture } from "./load-sharp.ts";
import { sniff } from "./sniff.ts";
import type { SniffedFile } from "./sniffed-file.ts";
import type { Metadata, Sharp } from "sharp";
import { translate } from "../words/translate.ts";

/** A picture in a format and size that models accept. */
export interface ModelImage {
  readonly bytes: Uint8Array;
  readonly mediaType: "image/png" | "image/jpeg" | "image/webp" | "image/gif";
  readonly widthPx: number;
  readonly heightPx: number;
  /** False when `bytes` are the original file. */
  readonly changed: boolean;
  /** What was left out, as a sentence for the sender. */
  readonly notice?: string;
}

/** Limits of a picture for models. */
export interface ImageLimits {
  /** Longest edge; larger pictures are scaled down. */
  readonly maxEdgePx: number;
  /** Largest result; pictures over it in every quality are refused. */
  readonly maxBytes: number;
}

/** A picture that is too large even at this size is refused. */
const minEdgePx = 64;

/**
 * Converts a picture for models. PNG, JPEG, WebP and still GIF within the limits and without a location stay
 * unchanged; other pictures are rotated upright, scaled and re-encoded without metadata. Of several frames or pages the
 * first is kept, and `notice` says so. Pictures are converted one after another.
 * @param key who waits in turn, e.g. a person
 * @throws ParleyError `attachment-unreadable` (no picture, or one that cannot be decoded), `attachment-too-large`
 * (over 50 megapixels, or fewer in formats that take much memory; over `maxBytes` in every quality)
 */
export function toModelImage(bytes: Uint8Array, limits: ImageLimits, key: string): Promise<ModelImage> {
  const file = sniff(bytes);
  if (file.kind !== "image") {
    return Promise.reject(unreadable(file.kind === "empty" ? "empty" : file.mediaType));
  }
  return decodeInTurn(key, () => convert(bytes, file, limits));
}

type Open = () => Sharp;

async function convert(bytes: Uint8Array, file: SniffedFile, limits: ImageLimits): Promise<ModelImage> {
  try {
    const original = await openPicture(bytes);
    const open: Open = () => original.clone();
    const metadata = await open().metadata();
    const frames = metadata.pages ?? 1;
    if (frames === 1 && staysUnchanged(bytes, file, metadata, limits)) {
      await assertDecodes(open);
      return {
        bytes,
        mediaType: file.mediaType as ModelImage["mediaType"],
        widthPx: metadata.width,
        heightPx: metadata.height,
        changed: false,
      };
    }
    const image = await encode(open, metadata, file, limits);
    if (frames === 1) return image;
    const what = file.mediaType === "image/tiff" ? "page" : "frame";
    return { ...image, notice: translate(`picture.first-${what}`, { count: frames }) };
  } catch (error) {
    if (error instanceof ParleyError) throw error;
    throw unreadable(file.mediaType, error);
  }
}

function staysUnchanged(
  bytes: Uint8Array,
  file: SniffedFile,
  metadata: Metadata,
  limits: ImageLimits,
): boolean {
  return (
    ["image/png", "image/jpeg", "image/webp", "image/gif"].includes(file.mediaType) &&
    bytes.length <= limits.maxBytes &&
    Math.max(metadata.width, metadata.height) <= limits.maxEdgePx &&
    (metadata.orientation ?? 1) === 1 &&
    metadata.space !== "cmyk" &&
    !hasLocation(metadata)
  );
}

/** Decodes the whole picture, since a valid header may be followed by broken data. */
async function assertDecodes(open: Open): Promise<void> {
  await open().resize(8, 8, { fit: "fill" }).raw().toBuffer();
}

/** Tries full size and quality first, then lower qualities, then smaller sizes. */
async function encode(
  open: Open,
  metadata: Metadata,
  file: SniffedFile,
  limits: ImageLimits,
): Promise<ModelImage> {
  const isDrawing = file.mediaType === "image/png" || file.mediaType === "image/gif";
  let edgePx = Math.min(limits.maxEdgePx, Math.max(metadata.width, metadata.height));
  let asPng = metadata.hasAlpha || isDrawing;
  let quality = 88;
  for (;;) {
    const upright = open()
      .autoOrient()
      .resize({ width: edgePx, height: edgePx, fit: "inside", withoutEnlargement: true });
    const encoder = asPng
      ? upright.png({ compressionLevel: 8 })
      : upright.flatten({ background: "#ffffff" }).jpeg({ quality });
    const { data, info } = await encoder.toBuffer({ resolveWithObject: true });
    if (data.length <= limits.maxBytes) {
      return {
        bytes: new Uint8Array(data.buffer, data.byteOffset, data.length),
        mediaType: asPng ? "image/png" : "image/jpeg",
        widthPx: info.width,
        heightPx: info.height,
        changed: true,
      };
    }
    if (asPng) asPng = false;
    else if (quality > 70) quality = 70;
    else edgePx = Math.floor(edgePx * 0.7);
    if (edgePx < minEdgePx) {
      throw new ParleyError("attachment-too-large", "picture too large in every quality", {
        detail: { maxBytes: limits.maxBytes },
      });
    }
  }
}

function unreadable(mediaType: string, cause?: unknown): ParleyError {
  return new ParleyError("attachment-unreadable", "picture cannot be decoded", {
    detail: { mediaType },
    cause,
  });
}
