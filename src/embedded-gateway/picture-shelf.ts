import { randomBytes } from "node:crypto";

/** Generated pictures, held in memory for the client to fetch. */
export interface PictureShelf {
  /** The path of the picture: unguessable, so that it needs no key. */
  put(png: Buffer): string;
  /** `undefined`: never there, expired, or given up for newer ones. */
  get(path: string): Buffer | undefined;
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
  const pictures = new Map<string, { readonly png: Buffer; readonly expiresAt: number }>();
  let bytes = 0;
  const drop = (path: string): void => {
    bytes -= pictures.get(path)?.png.length ?? 0;
    pictures.delete(path);
  };
  const sweep = (): void => {
    // Insertion order is age order.
    for (const [path, { expiresAt }] of pictures) {
      if (expiresAt > Date.now() && bytes <= options.maxBytes) return;
      drop(path);
    }
  };
  return {
    put: (png) => {
      const path = `${picturePath}${randomBytes(24).toString("base64url")}.png`;
      pictures.set(path, { png, expiresAt: Date.now() + options.keepMs });
      bytes += png.length;
      sweep();
      return path;
    },
    get: (path) => {
      sweep();
      return pictures.get(path)?.png;
    },
  };
}
