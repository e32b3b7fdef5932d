import { hasAdtsFrames, hasMpegFrames, skipId3 } from "./audio-frames.ts";
import { bigEndian, hasBytes, latin1, littleEndian } from "./bytes.ts";
import { matroskaTracks, mp4Brands, mp4Tracks, oggTracks } from "./containers.ts";
import { sniffDocument } from "./sniff-document.ts";
import { sniffText } from "./sniff-text.ts";
import type { SniffedFile } from "./sniffed-file.ts";

/** Result of {@link sniff}; `empty` stands for 0 bytes. */
export type Sniffed = SniffedFile | { readonly kind: "empty" };

type Detect = (bytes: Uint8Array) => SniffedFile | undefined;

/**
 * Detects the type of a file from its bytes alone; names and claimed types are ignored. A container with only audio
 * tracks is `audio`; with a video track, or with unreadable tracks, it is `other`. Never throws.
 */
export function sniff(bytes: Uint8Array): Sniffed {
  if (bytes.length === 0) return { kind: "empty" };
  for (const detect of detectors) {
    const found = detect(bytes);
    if (found !== undefined) return found;
  }
  return other("application/octet-stream", "bin");
}

const detectors: readonly Detect[] = [
  sniffPicture,
  sniffRiff,
  sniffIsoMedia,
  sniffMatroska,
  sniffOgg,
  sniffSound,
  sniffDocument,
  sniffText,
];

function sniffPicture(bytes: Uint8Array): SniffedFile | undefined {
  if (hasBytes(bytes, 0, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])) return image("png", "png");
  if (hasBytes(bytes, 0, [0xff, 0xd8, 0xff])) return image("jpeg", "jpg");
  if (/^GIF8[79]a$/.test(latin1(bytes, 0, 6)) && bytes.length >= 13) return image("gif", "gif");
  if (latin1(bytes, 0, 4) === "II*\0" || latin1(bytes, 0, 4) === "MM\0*") return image("tiff", "tif");
  if (isBmp(bytes)) return image("bmp", "bmp");
  return undefined;
}

/** Checks more than the two letters, with which texts begin too. */
function isBmp(bytes: Uint8Array): boolean {
  const headerBytes = littleEndian(bytes, 14, 4);
  return (
    latin1(bytes, 0, 2) === "BM" &&
    hasBytes(bytes, 6, [0, 0, 0, 0]) &&
    [12, 40, 52, 56, 64, 108, 124].includes(headerBytes)
  );
}

function sniffRiff(bytes: Uint8Array): SniffedFile | undefined {
  const outer = latin1(bytes, 0, 4);
  const inner = latin1(bytes, 8, 4);
  if (outer === "RIFF" && inner === "WEBP") return image("webp", "webp");
  if (["RIFF", "RF64", "BW64"].includes(outer) && inner === "WAVE") return audio("audio/wav", "wav", "wav");
  if (outer === "RIFF" && inner === "AVI ") return other("video/x-msvideo", "avi");
  if (outer === "FORM" && (inner === "AIFF" || inner === "AIFC")) return audio("audio/aiff", "aiff", "aiff");
  return undefined;
}

const heicBrands = ["heic", "heix", "heim", "heis", "hevc", "hevx"];

function sniffIsoMedia(bytes: Uint8Array): SniffedFile | undefined {
  const type = latin1(bytes, 4, 4);
  // A plausible size rules out texts such as "The ftyp box".
  const isBranded = type === "ftyp" && bigEndian(bytes, 0, 4) <= 1024;
  if (!isBranded && type !== "moov" && type !== "mdat") return undefined;
  const tracks = mp4Tracks(bytes);
  const brands = isBranded ? mp4Brands(bytes) : [];
  const major = brands[0] ?? "qt  ";
  const isPicture = major === "mif1" || major === "msf1";
  if (major.startsWith("avi") || (isPicture && brands.includes("avif"))) return image("avif", "avif");
  if (isPicture || heicBrands.includes(major)) return image("heic", "heic");
  // An audio file may have a cover or chapter pictures as a video track; its brand still says audio.
  const isSound = major === "M4A " || major === "M4B ";
  if (isSound || (tracks.hasAudio && !tracks.hasVideo)) {
    return major.startsWith("3g") ? audio("audio/3gpp", "3gp", "mp4") : audio("audio/mp4", "m4a", "mp4");
  }
  if (!isBranded && !tracks.hasVideo) return undefined;
  return major === "qt  " ? other("video/quicktime", "mov") : other("video/mp4", "mp4");
}

function sniffMatroska(bytes: Uint8Array): SniffedFile | undefined {
  const found = matroskaTracks(bytes);
  if (found === undefined) return undefined;
  const isWebm = found.docType.startsWith("webm");
  if (found.hasAudio && !found.hasVideo) {
    return isWebm ? audio("audio/webm", "webm", "webm") : audio("audio/x-matroska", "mka", "matroska");
  }
  return isWebm ? other("video/webm", "webm") : other("video/x-matroska", "mkv");
}

function sniffOgg(bytes: Uint8Array): SniffedFile | undefined {
  const tracks = oggTracks(bytes);
  if (tracks === undefined) return undefined;
  if (tracks.hasVideo) return other("video/ogg", "ogv");
  return tracks.hasAudio ? audio("audio/ogg", "ogg", "ogg") : other("application/ogg", "ogx");
}

function sniffSound(bytes: Uint8Array): SniffedFile | undefined {
  const start = skipId3(bytes);
  // "fLaC" is followed by the stream's own block: type 0, 34 bytes.
  if (latin1(bytes, start, 4) === "fLaC" && ((bytes[start + 4] ?? 0xff) & 0x7f) === 0) {
    return audio("audio/flac", "flac", "flac");
  }
  if (hasAdtsFrames(bytes, start)) return audio("audio/aac", "aac", "adts");
  if (hasMpegFrames(bytes, start)) return audio("audio/mpeg", "mp3", "mp3");
  if (latin1(bytes, 0, 6) === "#!AMR\n") return audio("audio/amr", "amr", "amr");
  if (latin1(bytes, 0, 9) === "#!AMR-WB\n") return audio("audio/amr-wb", "awb", "amr");
  if (latin1(bytes, 0, 6) === "caff\0\x01") return audio("audio/x-caf", "caf", "caf");
  return undefined;
}

function image(subtype: string, extension: string): SniffedFile {
  return { kind: "image", mediaType: `image/${subtype}`, extension };
}

function audio(mediaType: string, extension: string, container: string): SniffedFile {
  return { kind: "audio", mediaType, extension, container };
}

function other(mediaType: string, extension: string): SniffedFile {
  return { kind: "other", mediaType, extension };
}
