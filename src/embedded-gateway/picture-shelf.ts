import { randomBytes } from "node:crypto";

export interface ShelvedPicture {
  readonly bytes: Buffer;
  readonly mediaType: string;
  /** Without dot. */
  readonly extension: string;
}

/** Generated pictures, held in memory for the client to fetch. */
export interface PictureShelf {
  /** The path of the picture: unguessable, so that it needs no key. */
  put(picture: ShelvedPicture): string;
  /** `undefined`: never there, expired, or given up for newer ones. */
  get(path: string): ShelvedPicture | undefined;
}

export interface PictureShelfOptions {
  /** How long a picture is kept, in milliseconds. */
  readonly keepMs: number;
  /** Of all pictures together; the oldest go first. */
  readonly maxBytes: number;
}

export const picturePath = "/pictures/";

/** Expired pictures go with the next one put or asked for; there is no timer to stop. */
export function createPictureShelf(options: PictureShelfOptions): PictureShelf {
  const pictures = new Map<string, { readonly picture: ShelvedPicture; readonly expiresAt: number }>();
  let bytes = 0;
  const sweep = (): void => {
    // Insertion order is age order.
    for (const [path, { picture, expiresAt }] of pictures) {
      if (expiresAt > Date.now() && bytes <= options.maxBytes) return;
      bytes -= picture.bytes.length;
      pictures.delete(path);
    }
  };
  return {
    put: (picture) => {
      const path = `${picturePath}${randomBytes(24).toString("base64url")}.${picture.extension}`;
      pictures.set(path, { picture, expiresAt: Date.now() + options.keepMs });
      bytes += picture.bytes.length;
      sweep();
      return path;
    },
    get: (path) => {
      sweep();
      return pictures.get(path)?.picture;
    },
  };
}
