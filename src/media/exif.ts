import { bigEndian, hasBytes, latin1, littleEndian } from "./bytes.ts";

/** Tag of the pointer to the GPS directory (EXIF 2.32, 4.6.3). */
const gpsPointerTag = 0x8825;

/**
 * Whether a picture's metadata may contain a location: a GPS directory in its EXIF block, GPS properties in its XMP
 * block, or an unreadable EXIF block. Never throws.
 */
export function hasLocation(metadata: {
  readonly exif?: Uint8Array | undefined;
  readonly xmp?: Uint8Array | undefined;
}): boolean {
  if (metadata.xmp !== undefined && Buffer.from(metadata.xmp).includes("GPS")) return true;
  return metadata.exif !== undefined && hasGpsDirectory(metadata.exif);
}

function hasGpsDirectory(exif: Uint8Array): boolean {
  const tiff = latin1(exif, 0, 6) === "Exif\0\0" ? exif.subarray(6) : exif;
  const isLittle = hasBytes(tiff, 0, [0x49, 0x49, 42, 0]);
  if (!isLittle && !hasBytes(tiff, 0, [0x4d, 0x4d, 0, 42])) return true;
  const read = isLittle ? littleEndian : bigEndian;
  const directory = read(tiff, 4, 4);
  const entries = read(tiff, directory, 2);
  if (directory + 2 + entries * 12 > tiff.length) return true;
  for (let index = 0; index < entries; index += 1) {
    if (read(tiff, directory + 2 + index * 12, 2) === gpsPointerTag) return true;
  }
  return false;
}
