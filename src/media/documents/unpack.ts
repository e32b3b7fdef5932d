import { unzipSync, zipSync } from "fflate";
import { DocumentError, documentLimits } from "./document.ts";

/** The contents of an office document's archive. */
interface Unpacked {
  /** The entries that were asked for, by name. */
  readonly files: Readonly<Record<string, Uint8Array>>;
  /** The names of all entries. */
  readonly names: readonly string[];
}

/**
 * Unpacks the entries that are wanted. Memory is limited meanwhile: an entry is given the size that the
 * archive claims for it and never grows past it, and the claims together must be within the limit.
 * @throws DocumentError `too-large`, or an error of the library for a damaged archive
 */
export function unpack(bytes: Uint8Array, isWanted: (name: string) => boolean): Unpacked {
  const names: string[] = [];
  let claimed = 0;
  const files = unzipSync(bytes, {
    filter({ name, originalSize }) {
      names.push(name);
      if (!isWanted(name)) return false;
      claimed += originalSize;
      if (claimed > documentLimits.unpackedBytes) throw new DocumentError("too-large");
      return true;
    },
  });
  return { files, names };
}

/** Makes an uncompressed archive of these entries, so that a library that reads it has nothing to unpack. */
export function repack(files: Readonly<Record<string, Uint8Array>>): Buffer {
  return Buffer.from(zipSync({ ...files }, { level: 0 }));
}

/** Counts the pictures in an archive. */
export function countPictures(names: readonly string[]): number {
  return names.filter((name) =>
    /(?:^|\/)(?:media|Pictures)\/[^/]+\.(?:png|jpe?g|gif|bmp|tiff?|emf|wmf|svg|webp)$/i.test(name),
  ).length;
}
