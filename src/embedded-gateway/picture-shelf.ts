import { randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";

/** A generated image and its type. */
export interface ShelvedPicture {
  readonly bytes: Buffer;
  readonly mediaType: string;
  /** Without dot. */
  readonly extension: string;
}

/** Generated images, kept in memory for clients to download. */
export interface PictureShelf {
  /** Stores an image and returns its path, which is unguessable and so needs no key. */
  put(picture: ShelvedPicture): string;
  /** `undefined` for a path that is unknown, expired or evicted. */
  get(path: string): ShelvedPicture | undefined;
}

/** Limits of a {@link PictureShelf}. */
export interface PictureShelfOptions {
  /** Lifetime of an image, in milliseconds. */
  readonly ttlMs: number;
  /** Of all images together; past it the least recently used are evicted. */
  readonly maxBytes: number;
}

/** Path prefix of all images. */
export const picturePath = "/pictures/";

/** @see {@link PictureShelf} */
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
