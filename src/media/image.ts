import type { Metadata, Sharp } from "sharp";
import { ParleyError, type ErrorCode } from "../core/errors.ts";
import { createFairSemaphore } from "../support/queues.ts";
import { runBoundedProcess } from "../support/bounded-worker.ts";
import { translate } from "../words/translate.ts";
import { sniff, type SniffedFile } from "./sniff.ts";

/** A picture in a format and size that models accept. */
interface ModelImage {
  readonly bytes: Uint8Array;
  readonly mediaType: "image/png" | "image/jpeg" | "image/webp" | "image/gif";
  readonly widthPx: number;
  readonly heightPx: number;
  /** False when `bytes` are the original file. */
  readonly changed: boolean;
  /** Says what was left out, as a sentence for the sender. */
  readonly notice?: string;
}

/** A picture before its notice is put into its sender's language. `frames` counts its frames or pages. */
type ConvertedPicture = Omit<ModelImage, "notice"> & { readonly frames: number };

/** The limits of a picture for models. */
interface ImageLimits {
  /** The longest edge. Larger pictures are scaled down. */
  readonly maxEdgePx: number;
  /** The largest result. Pictures over it in every quality are refused. */
  readonly maxBytes: number;
}

/** A picture that is too large even at this size is refused. */
const minEdgePx = 64;
/** Pictures that take more are decoded in their own process: 16 megapixels of most, 3 of AVIF. */
const maxBytesHere = 64_000_000;
/** Decoding has its own limit of 20 s, and a picture may be encoded several times. */
const processLimits = { timeoutMs: 60_000, maxHeapMb: 128, maxGrowthBytes: 500_000_000 };
const worker = new URL("./convert-picture-worker.ts", import.meta.url);

/**
 * Converts a picture for models. PNG, JPEG, WebP and still GIF within the limits and without EXIF and XMP
 * stay unchanged. Other pictures are rotated upright, scaled and re-encoded without metadata. Only the first
 * of several frames or pages is kept, and `notice` says so. Pictures are converted one after another.
 * @param key who waits in turn, e.g. a person
 * @throws ParleyError `attachment-unreadable` (no picture, or one that cannot be decoded),
 *   `attachment-too-large` (over 50 megapixels, or fewer in formats that take much memory; over `maxBytes` in
 *   every quality)
 */
export async function toModelImage(bytes: Uint8Array, limits: ImageLimits, key: string): Promise<ModelImage> {
  const file = sniff(bytes);
  if (file.kind !== "image") throw unreadable(file.kind === "empty" ? "empty" : file.mediaType);
  const input = { bytes, file, limits };
  const { frames, ...image } = await decodeInTurn(key, () => convertPicture(input, maxBytesHere));
  if (frames === 1) return image;
  const what = file.mediaType === "image/tiff" ? "page" : "frame";
  return { ...image, notice: translate(`picture.first-${what}`, { count: frames }) };
}

type Open = () => Sharp;

/** The input of {@link convertPicture}. `file` says what the bytes are. */
export interface PictureInput {
  readonly bytes: Uint8Array;
  readonly file: SniffedFile;
  readonly limits: ImageLimits;
}

/**
 * Converts a picture as {@link toModelImage} does, at once.
 * @param bytesHere a picture whose decoding takes more is converted in its own process
 */
export async function convertPicture(
  input: PictureInput,
  bytesHere = Number.POSITIVE_INFINITY,
): Promise<ConvertedPicture> {
  const { bytes, file, limits } = input;
  try {
    const original = await openPicture(bytes);
    const open: Open = () => original.clone();
    const metadata = await open().metadata();
    if (decodingBytesOf(metadata) > bytesHere) return await convertApart(input);
    const frames = metadata.pages ?? 1;
    if (frames === 1 && staysUnchanged(bytes, file, metadata, limits)) {
      await assertDecodes(open);
      return {
        bytes,
        mediaType: file.mediaType as ModelImage["mediaType"],
        widthPx: metadata.width,
        heightPx: metadata.height,
        changed: false,
        frames,
      };
    }
    return { ...(await encode(open, metadata, file, limits)), frames };
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
    // They may say where a photo was taken, and with which camera.
    metadata.exif === undefined &&
    metadata.xmp === undefined
  );
}

/** The message that the worker posts. */
export type ConvertMessage =
  | { readonly picture: ConvertedPicture }
  | { readonly code: ErrorCode; readonly message: string; readonly detail: ParleyError["detail"] };

async function convertApart(input: PictureInput): Promise<ConvertedPicture> {
  let message: ConvertMessage | undefined;
  const onMessage = (posted: unknown): void => {
    message = posted as ConvertMessage;
  };
  // Nobody aborts it, but the limits end it.
  const { signal } = new AbortController();
  const outcome = await runBoundedProcess(worker, input, processLimits, onMessage, signal);
  if (message === undefined) throw new Error(`the decoder has ended: ${outcome}`);
  if ("picture" in message) return message.picture;
  throw new ParleyError(message.code, message.message, { detail: message.detail });
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
): Promise<Omit<ConvertedPicture, "frames">> {
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

/** Larger pictures are refused before they are decoded. */
const maxInputPixels = 50_000_000;
/** The most memory for decoding one picture. */
const maxDecodingBytes = 240_000_000;
/** Most pictures are decoded line by line, but these are in memory whole. */
const bytesPerPixel = { avif: 19, gif: 6, progressive: 7, other: 4 } as const;
/** Each colour has two bytes instead of one. */
const deepFactor = 10 / 7;

/** Loads sharp with the first picture. Its cache and threads would cost memory and gain little here. */
export async function loadSharp() {
  const { default: sharp } = await import("sharp");
  sharp.cache(false);
  sharp.concurrency(1);
  // By default every format of the library can be opened, whatever the sniffed type says.
  sharp.block({ operation: ["VipsForeignLoad"] });
  sharp.unblock({ operation: loaders.map((name) => `VipsForeignLoad${name}`) });
  return sharp;
}

/** The allowed decoders: what `sniff` calls a picture, and SVG, which only the sandbox draws. */
const loaders = ["Png", "Jpeg", "Webp", "Nsgif", "Tiff", "Heif", "Svg"];

/** The longest time that one picture may be decoded and encoded. */
const maxSeconds = 20;

/**
 * Opens a stranger's picture. A pipeline that takes longer than 20 s fails, and so does broken data.
 * @throws ParleyError `attachment-too-large` where its header says over 50 megapixels, or decoding it would
 *   take over 240 MB; the decoder's error where it has no readable header
 */
export async function openPicture(bytes: Uint8Array): Promise<Sharp> {
  const sharp = await loadSharp();
  const open = (limitInputPixels: number | false): Sharp =>
    sharp(bytes, { limitInputPixels, failOn: "error" });
  const metadata = await open(false).metadata();
  const maxPixels = maxPixelsOf(metadata);
  if (metadata.width * (metadata.pageHeight ?? metadata.height) > maxPixels)
    throw new ParleyError("attachment-too-large", "picture has too many pixels", {
      detail: { maxMegapixels: Math.floor(maxPixels / 1_000_000) },
    });
  return open(maxInputPixels).timeout({ seconds: maxSeconds });
}

function maxPixelsOf(metadata: Metadata): number {
  return Math.min(maxInputPixels, maxDecodingBytes / bytesPerPixelOf(metadata));
}

/** Returns what decoding a picture takes, in bytes. */
function decodingBytesOf(metadata: Metadata): number {
  return metadata.width * (metadata.pageHeight ?? metadata.height) * bytesPerPixelOf(metadata);
}

function bytesPerPixelOf({ format, depth, isProgressive }: Metadata): number {
  const kind =
    format === "heif" ? "avif" : format === "gif" ? "gif" : isProgressive ? "progressive" : "other";
  const factor = depth === "uchar" || depth === "char" ? 1 : deepFactor;
  return bytesPerPixel[kind] * factor;
}

/** Pictures are decoded one at a time, since each may take 240 MB. Those who wait take turns. */
const turns = createFairSemaphore({ max: 1, maxPerKey: 1 });

/**
 * Runs a decoding task when it is its turn.
 * @param key who waits in turn, e.g. a person
 */
export async function decodeInTurn<T>(key: string, task: () => Promise<T>): Promise<T> {
  const release = await turns.acquire(key, 1);
  try {
    return await task();
  } finally {
    release();
  }
}
