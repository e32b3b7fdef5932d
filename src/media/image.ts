import { ParleyError } from "../core/errors.ts";
import { carriesPlace } from "./exif.ts";
import { sniff } from "./sniff.ts";
import type { SniffedFile } from "./sniffed-file.ts";
import type { Metadata, Sharp, SharpOptions } from "sharp";

/** A picture as models take it. */
export interface ModelImage {
  readonly bytes: Uint8Array;
  readonly mediaType: "image/png" | "image/jpeg" | "image/webp" | "image/gif";
  readonly widthPx: number;
  readonly heightPx: number;
  /** False where `bytes` are the sender's, byte for byte. */
  readonly changed: boolean;
  /** What of the picture is not in there; a plain sentence for the sender. */
  readonly notice?: string;
}

/** What a picture may measure. */
export interface ImageLimits {
  /** Longest side; larger pictures are scaled down. */
  readonly maxEdgePx: number;
  /** Largest result; pictures that stay above it in every quality are refused. */
  readonly maxBytes: number;
}

/** Refused before a pixel is decoded: 50 megapixels are 200 MB in memory. */
const maxPixels = 50_000_000;

/** Smaller is not worth a model's while; what is still too large then is refused. */
const smallestEdgePx = 64;

/**
 * Makes a picture what models take. PNG, JPEG, WebP and still GIF within the limits stay as they are; everything
 * else is turned upright, scaled and encoded again without metadata. A picture that says where it was taken is
 * always encoded again. Of several frames or pages only the first is kept, and `notice` says so.
 * @throws ParleyError `attachment-unreadable` (no picture, broken, or a format that cannot be decoded),
 * `attachment-too-large` (over 50 megapixels, or over `maxBytes` in every quality)
 */
export function toModelImage(bytes: Uint8Array, limits: ImageLimits): Promise<ModelImage> {
  const file = sniff(bytes);
  if (file.kind !== "image") {
    return Promise.reject(unreadable(file.kind === "empty" ? "empty" : file.mediaType));
  }
  const work = lastWork.then(() => convert(bytes, file, limits));
  lastWork = work.then(
    () => undefined,
    () => undefined,
  );
  return work;
}

/** One picture at a time: several large ones at once would need their memory at once. */
let lastWork: Promise<unknown> = Promise.resolve();

type Open = (options?: SharpOptions) => Sharp;

async function convert(bytes: Uint8Array, file: SniffedFile, limits: ImageLimits): Promise<ModelImage> {
  const sharp = await loadSharp();
  const open: Open = (options) => sharp(bytes, { limitInputPixels: maxPixels, failOn: "error", ...options });
  try {
    const metadata = await open().metadata();
    const frames = metadata.pages ?? 1;
    if (frames === 1 && staysAsItIs(bytes, file, metadata, limits)) {
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
    return { ...image, notice: `Only the first ${what} of the picture is read (it has ${frames}).` };
  } catch (error) {
    if (error instanceof ParleyError) throw error;
    if (error instanceof Error && error.message.includes("exceeds pixel limit")) {
      throw new ParleyError("attachment-too-large", "picture has too many pixels", {
        detail: { maxMegapixels: maxPixels / 1_000_000 },
        cause: error,
      });
    }
    throw unreadable(file.mediaType, error);
  }
}

function staysAsItIs(bytes: Uint8Array, file: SniffedFile, metadata: Metadata, limits: ImageLimits): boolean {
  return (
    ["image/png", "image/jpeg", "image/webp", "image/gif"].includes(file.mediaType) &&
    bytes.length <= limits.maxBytes &&
    Math.max(metadata.width, metadata.height) <= limits.maxEdgePx &&
    (metadata.orientation ?? 1) === 1 &&
    metadata.space !== "cmyk" &&
    !carriesPlace(metadata)
  );
}

/** A header alone says nothing about what follows; a model's error would come late and say less. */
async function assertDecodes(open: Open): Promise<void> {
  await open().resize(8, 8, { fit: "fill" }).raw().toBuffer();
}

/** Tries the whole picture first, then lower qualities, then smaller sizes. */
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
    if (edgePx < smallestEdgePx) {
      throw new ParleyError("attachment-too-large", "picture stays too large in every quality", {
        detail: { maxBytes: limits.maxBytes },
      });
    }
  }
}

/** Loaded with the first picture, and kept small: its caches and threads pay off for servers of pictures. */
async function loadSharp() {
  const { default: sharp } = await import("sharp");
  sharp.cache(false);
  sharp.concurrency(1);
  return sharp;
}

function unreadable(mediaType: string, cause?: unknown): ParleyError {
  return new ParleyError("attachment-unreadable", "picture cannot be decoded", {
    detail: { mediaType },
    cause,
  });
}
