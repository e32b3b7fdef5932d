import { isParleyError } from "../core/errors.ts";
import { createDownloader, type Downloader } from "../media/guarded-download.ts";
import { sniff } from "../media/sniff.ts";
import { invalidRequest, type ApiError } from "./api-error.ts";
import { parseDataUri } from "./image-url.ts";

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

/** Settings of {@link createImageLoader}. */
export interface ImageLoaderOptions {
  readonly signal: AbortSignal;
  readonly downloader: Downloader;
  /** The gateway's own images, which need no download. */
  findOwn(url: string): Buffer | undefined;
}

const maxImageBytes = 20 * 1024 * 1024;
const downloadTimeoutMs = 15_000;

/** The downloader of the whole gateway. It connects to public https hosts only, checked at every redirect. */
export function createImageDownloader(): Downloader {
  return createDownloader({ trusted: [], allowPublicHttps: true });
}

/** A loader for one request, whose signal aborts its downloads. */
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
  if (image.url.startsWith("data:")) return parseDataUri(image.url).bytes;
  const own = options.findOwn(image.url);
  if (own !== undefined) return own;
  try {
    // The downloader allows https only, so http URLs are upgraded.
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
