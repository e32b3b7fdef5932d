import { randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import { isParleyError } from "../core/errors.ts";
import { createDownloader, type Downloader } from "../media/guarded-download.ts";
import { sniff } from "../media/sniff.ts";
import { bytesOfDataUri, isDataUri } from "../wire/pictures.ts";
import { invalidRequest, type ApiError } from "./api-error.ts";

/** The URL of an image part, and the parameter to name in errors. */
export interface ImageRef {
  readonly url: string;
  readonly param: string;
}

/**
 * Runs `use` on the bytes of an image part.
 * @throws ApiError 400 that names the parameter when the image cannot be loaded or `use` fails to decode it
 */
export type LoadImage = <T>(image: ImageRef, use: (bytes: Buffer) => Promise<T>) => Promise<T>;

interface ImageLoaderOptions {
  readonly signal: AbortSignal;
  readonly downloader: Downloader;
  /** Finds the gateway's own images, which need no download. */
  findOwn(url: string): Buffer | undefined;
}

const maxImageBytes = 20 * 1024 * 1024;
const downloadTimeoutMs = 15_000;

/** Creates the downloader of the gateway. It connects only to public https hosts, even after redirects. */
export function createImageDownloader(): Downloader {
  return createDownloader({ trusted: [], allowPublicHttps: true });
}

/** Creates a loader for one request, whose signal aborts its downloads. */
export function createImageLoader(options: ImageLoaderOptions): LoadImage {
  return async (image, use) => {
    const bytes = await fetchBytes(image, options);
    const file = sniff(bytes);
    if (file.kind !== "image") throw unreadable(image, "is not a picture in a known format");
    try {
      return await use(bytes);
    } catch (error) {
      throw unreadable(image, "holds a picture that cannot be decoded", error);
    }
  };
}

async function fetchBytes(image: ImageRef, options: ImageLoaderOptions): Promise<Buffer> {
  if (isDataUri(image.url)) return bytesOfDataUri(image.url) ?? Buffer.alloc(0);
  const own = options.findOwn(image.url);
  if (own !== undefined) return own;
  try {
    // The downloader allows only https, so http URLs are upgraded.
    const { bytes } = await options.downloader.download(image.url.replace(/^http:/i, "https:"), {
      maxBytes: maxImageBytes,
      timeoutMs: downloadTimeoutMs,
      signal: options.signal,
    });
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  } catch (error) {
    if (!isParleyError(error)) throw error;
    throw unreadable(image, downloadProblem(error.code), error);
  }
}

function downloadProblem(code: string): string {
  if (code === "attachment-blocked") return "names a blocked address: only public hosts are fetched";
  if (code === "attachment-too-large") return `is larger than the limit of ${maxImageBytes} bytes`;
  return code === "attachment-gone" ? "is not there any more" : "could not be fetched";
}

function unreadable(image: ImageRef, problem: string, cause?: unknown): ApiError {
  return invalidRequest(`Invalid '${image.param}': it ${problem}.`, {
    param: image.param,
    code: "invalid_image",
    cause,
  });
}

/** A generated image and its type. */
export interface ShelvedPicture {
  readonly bytes: Buffer;
  readonly mediaType: string;
  /** The extension without a dot. */
  readonly extension: string;
}

/** Generated images, kept in memory for clients to download. */
export interface PictureShelf {
  /** Stores an image and returns its path, which is unguessable and so needs no key. */
  put(picture: ShelvedPicture): string;
  /** Returns `undefined` for a path that is unknown, expired or evicted. */
  get(path: string): ShelvedPicture | undefined;
}

/** The limits of a {@link PictureShelf}. */
interface PictureShelfOptions {
  /** The lifetime of an image, in milliseconds. */
  readonly ttlMs: number;
  /** The size of all images together. Past it, the least recently used ones are evicted. */
  readonly maxBytes: number;
}

/** The path prefix of all images. */
export const picturePath = "/pictures/";

export function createPictureShelf({ ttlMs, maxBytes }: PictureShelfOptions): PictureShelf {
  const pictures = new LRUCache<string, ShelvedPicture>({
    ttl: ttlMs,
    perf: { now: () => performance.now() },
    maxSize: maxBytes,
    sizeCalculation: ({ bytes }) => Math.max(1, bytes.length),
  });
  return {
    put: (picture) => {
      const path = `${picturePath}${randomBytes(24).toString("base64url")}.${picture.extension}`;
      pictures.purgeStale();
      pictures.set(path, picture);
      return path;
    },
    get: (path) => pictures.get(path),
  };
}
