import { isUtf8 } from "node:buffer";

/** An archive's list of names is at its end, and its first entries are at its beginning. */
const documentHeadBytes = 8192;
const tailBytes = 65_536;

const openXml = "application/vnd.openxmlformats-officedocument";
const openDocument = "application/vnd.oasis.opendocument";

/** The entries of an archive that make it an office document. */
const openXmlParts = [
  ["word/document", `${openXml}.wordprocessingml.document`, "docx"],
  ["xl/workbook.xml", `${openXml}.spreadsheetml.sheet`, "xlsx"],
  ["ppt/presentation.xml", `${openXml}.presentationml.presentation`, "pptx"],
] as const;

/** Names in the directory of a compound file, in UTF-16, and what such a file is. */
const compoundParts = [
  ["EncryptedPackage", "application/x-encrypted-office", "docx"],
  ["WordDocument", "application/msword", "doc"],
  ["PowerPoint Document", "application/vnd.ms-powerpoint", "ppt"],
  ["Workbook", "application/vnd.ms-excel", "xls"],
  ["Book", "application/vnd.ms-excel", "xls"],
] as const;

/** Detects PDF, office documents and archives. */
function sniffDocument(bytes: Uint8Array): SniffedFile | undefined {
  if (latin1(bytes, 0, 5) === "%PDF-") return document("application/pdf", "pdf");
  if (hasBytes(bytes, 0, [0x50, 0x4b, 3, 4]) || hasBytes(bytes, 0, [0x50, 0x4b, 5, 6]))
    return sniffZip(bytes);
  if (hasBytes(bytes, 0, [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1])) return sniffCompound(bytes);
  if (hasBytes(bytes, 0, [0x1f, 0x8b, 8])) return other("application/gzip", "gz");
  return undefined;
}

function sniffZip(bytes: Uint8Array): SniffedFile {
  const head = Buffer.from(bytes.subarray(0, documentHeadBytes)).toString("latin1");
  // The first entry of an OpenDocument file is its type, not compressed.
  const [, kind] =
    /^mimetypeapplication\/vnd\.oasis\.opendocument\.(text|spreadsheet|presentation)/.exec(head.slice(30)) ??
    [];
  if (kind !== undefined) {
    const extension = { text: "odt", spreadsheet: "ods", presentation: "odp" }[kind] ?? "odt";
    return document(`${openDocument}.${kind}`, extension);
  }
  const names = head + Buffer.from(bytes.subarray(-tailBytes)).toString("latin1");
  const found = openXmlParts.find(([part]) => names.includes(part));
  if (found !== undefined && names.includes("[Content_Types].xml")) return document(found[1], found[2]);
  return other("application/zip", "zip");
}

/** Detects the container of the older Office formats, and of encrypted documents of the newer ones. */
function sniffCompound(bytes: Uint8Array): SniffedFile {
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found = compoundParts.find(([name]) => whole.includes(Buffer.from(`${name}\0`, "utf16le")));
  return found === undefined ? other("application/x-ole-storage", "bin") : other(found[1], found[2]);
}

function document(mediaType: string, extension: string): SniffedFile {
  return { kind: "document", mediaType, extension };
}

/** Only the beginning of a text is decoded and searched. */
const headBytes = 65_536;

/** C0 and C1 controls except tab, line feed, form feed, carriage return and next line. */
// oxlint-disable-next-line no-control-regex -- control characters are searched for
const controls = /[\u0000-\u0008\u000b\u000e-\u001f\u007f-\u0084\u0086-\u009f]/;

/**
 * Detects text: valid UTF-8, or UTF-16 with a byte order mark, without control characters in its first 64 kB.
 * The sources of pages and drawings are text too: they are quoted and downloaded, never shown or run.
 */
function sniffText(bytes: Uint8Array): SniffedFile | undefined {
  const text = decodeHead(bytes);
  if (text === undefined || controls.test(text)) return undefined;
  return { kind: "text", mediaType: "text/plain", extension: "txt" };
}

/** Decodes the beginning of UTF-8, or of UTF-16 with a byte order mark. Returns `undefined` if invalid. */
function decodeHead(bytes: Uint8Array): string | undefined {
  const isLittle = bytes[0] === 0xff && bytes[1] === 0xfe;
  const isBig = bytes[0] === 0xfe && bytes[1] === 0xff;
  // The whole file is checked, which is fast, unlike decoding it.
  if (!isLittle && !isBig && (bytes.subarray(0, headBytes).includes(0) || !isUtf8(bytes))) return undefined;
  const encoding = isLittle ? "utf-16le" : isBig ? "utf-16be" : "utf-8";
  try {
    const decoder = new TextDecoder(encoding, { fatal: true });
    // A character may continue past the head, but not past the file.
    return decoder.decode(bytes.subarray(0, headBytes), { stream: bytes.length > headBytes });
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** The result of {@link sniff}. `empty` stands for 0 bytes. */
export type Sniffed = SniffedFile | { readonly kind: "empty" };

type Detect = (bytes: Uint8Array) => SniffedFile | undefined;

/**
 * Detects the type of a file from its bytes alone, without names and claimed types. A container with only
 * audio tracks is `audio`. With a video track, or with unreadable tracks, it is `other`. It never throws.
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

/** Whether it is a BMP. More than the two letters are checked, since texts begin with them too. */
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
  // An audio file may have a cover or chapter pictures as a video track. Its brand still says audio.
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

/**
 * A file type detected from bytes. Animated pictures are `image`. A `document` is a PDF or office document
 * that can be read as text. Video, archives, older and encrypted office documents are `other`.
 */
export interface SniffedFile {
  readonly kind: "image" | "audio" | "text" | "document" | "other";
  readonly mediaType: string;
  /** The extension that services expect for these bytes, without a dot. */
  readonly extension: string;
  /** The container format of audio, e.g. `ogg`, `mp4`, `webm`. */
  readonly container?: string;
}

/** The kinds of track in a container. */
interface Tracks {
  readonly hasAudio: boolean;
  readonly hasVideo: boolean;
}

/** A part of a container. */
interface Span {
  readonly id: string;
  /** The first byte of the part. */
  readonly at: number;
  /** The first byte of its content. */
  readonly start: number;
  /** One past its last byte, but never past the file. */
  readonly end: number;
}

type Walk = (bytes: Uint8Array, from: number, to: number) => Generator<Span>;

/** The limit of parts at one level, for crafted files with millions. Real files have hundreds. */
const maxParts = 20_000;
const maxParents = 64;
/** The most streams of an Ogg file. Real files have a few. */
const maxStreams = 64;

/** Returns all parts at the end of a path of ids, e.g. every `hdlr` in every `mdia` in every `trak`. */
function descend(bytes: Uint8Array, walk: Walk, path: readonly string[]): readonly Span[] {
  let level: readonly Span[] = [{ id: "", at: 0, start: 0, end: bytes.length }];
  for (const id of path) {
    const found: Span[] = [];
    let left = maxParts;
    for (const parent of level.slice(0, maxParents)) {
      for (const part of walk(bytes, parent.start, parent.end).take(left)) {
        left -= 1;
        if (part.id === id) found.push(part);
      }
    }
    level = found;
  }
  return level;
}

/** Returns the tracks of an ISO media file (MP4, M4A, QuickTime), wherever its `moov` box is. */
function mp4Tracks(bytes: Uint8Array): Tracks {
  const handlers = descend(bytes, boxes, ["moov", "trak", "mdia", "hdlr"]).map((handler) =>
    latin1(bytes, handler.start + 8, 4),
  );
  return { hasAudio: handlers.includes("soun"), hasVideo: handlers.includes("vide") };
}

/** Returns the major and compatible brands of an `ftyp` box at the front, e.g. `["M4A ", "isom"]`. */
function mp4Brands(bytes: Uint8Array): readonly string[] {
  const size = Math.min(bigEndian(bytes, 0, 4), bytes.length, 256);
  const brands = [latin1(bytes, 8, 4)];
  for (let offset = 16; offset + 4 <= size; offset += 4) brands.push(latin1(bytes, offset, 4));
  return brands;
}

/** Yields the boxes of an ISO media file that follow each other between two offsets. */
export function* boxes(bytes: Uint8Array, from: number, to: number): Generator<Span> {
  let offset = from;
  while (offset + 8 <= to) {
    const short = bigEndian(bytes, offset, 4);
    const isLong = short === 1;
    const header = isLong ? 16 : 8;
    // Size 0 means "to the end". The upper two bytes of a 64-bit size are ignored: no such file is read here.
    const size = isLong ? bigEndian(bytes, offset + 10, 6) : short === 0 ? to - offset : short;
    if (size < header) return;
    const start = offset + header;
    yield { id: latin1(bytes, offset + 4, 4), at: offset, start, end: Math.min(offset + size, to) };
    offset += size;
  }
}

const ebmlHeader = "1a45dfa3";
const docTypeId = "4282";
const segmentId = "18538067";
const tracksId = "1654ae6b";
const trackEntryId = "ae";
const trackTypeId = "83";

/** Returns document type and tracks of a Matroska file, or `undefined` for other files. */
function matroskaTracks(bytes: Uint8Array): (Tracks & { readonly docType: string }) | undefined {
  if (!hasBytes(bytes, 0, [0x1a, 0x45, 0xdf, 0xa3])) return undefined;
  const [docType] = descend(bytes, elements, [ebmlHeader, docTypeId]);
  const types = descend(bytes, elements, [segmentId, tracksId, trackEntryId, trackTypeId]).map((type) =>
    bigEndian(bytes, type.start, Math.min(type.end - type.start, 6)),
  );
  return {
    docType:
      docType === undefined ? "" : latin1(bytes, docType.start, Math.min(docType.end - docType.start, 16)),
    hasAudio: types.includes(2),
    hasVideo: types.includes(1),
  };
}

/** Yields successive elements. One of unknown size, as browsers record it, extends to the end. */
function* elements(bytes: Uint8Array, from: number, to: number): Generator<Span> {
  let offset = from;
  while (offset < to) {
    const idLength = vintLength(bytes[offset]);
    const sizeAt = offset + idLength;
    const sizeLength = vintLength(bytes[sizeAt]);
    if (idLength === 0 || idLength > 4 || sizeLength === 0) return;
    const start = sizeAt + sizeLength;
    if (start > to) return;
    const mask = 2 ** (8 - sizeLength) - 1;
    const first = (bytes[sizeAt] ?? 0) & mask;
    const isUnknown = first === mask && bytes.subarray(sizeAt + 1, start).every((byte) => byte === 0xff);
    // The lower six of 8 bytes are used, since no larger file is read here.
    const tail = Math.min(sizeLength - 1, 6);
    const size = (sizeLength === 8 ? 0 : first * 256 ** tail) + bigEndian(bytes, start - tail, tail);
    const end = isUnknown ? to : Math.min(start + size, to);
    const id = Buffer.from(bytes.subarray(offset, sizeAt)).toString("hex");
    yield { id, at: offset, start, end };
    offset = isUnknown ? to : start + size;
  }
}

/** Returns the length of an EBML number, from its first byte's leading zeros, or 0 for an invalid one. */
function vintLength(first: number | undefined): number {
  return first === undefined || first === 0 ? 0 : Math.clz32(first) - 23;
}

/** Returns the tracks of an Ogg file from the first packets of its streams, `undefined` for others. */
function oggTracks(bytes: Uint8Array): Tracks | undefined {
  if (latin1(bytes, 0, 4) !== "OggS" || bytes[4] !== 0) return undefined;
  let offset = 0;
  let hasAudio = false;
  let hasVideo = false;
  // Pages that begin a stream (flag 2) come before all others.
  for (let stream = 0; stream < maxStreams && isFirstPage(bytes, offset); stream += 1) {
    const segments = bytes[offset + 26] ?? 0;
    const packet = offset + 27 + segments;
    if (isOggAudio(bytes, packet)) hasAudio = true;
    if (hasBytes(bytes, packet, [0x80]) && latin1(bytes, packet + 1, 6) === "theora") hasVideo = true;
    if (latin1(bytes, packet, 8) === "\x01video\0\0") hasVideo = true;
    const length = bytes.subarray(offset + 27, packet).reduce((sum, lacing) => sum + lacing, 0);
    offset = packet + length;
  }
  return { hasAudio, hasVideo };
}

function isFirstPage(bytes: Uint8Array, offset: number): boolean {
  return latin1(bytes, offset, 4) === "OggS" && ((bytes[offset + 5] ?? 0) & 2) !== 0;
}

function isOggAudio(bytes: Uint8Array, packet: number): boolean {
  const start = latin1(bytes, packet, 8);
  return (
    start === "OpusHead" ||
    start === "Speex   " ||
    start.startsWith("\x01vorbis") ||
    start.startsWith("\x7fFLAC")
  );
}

const v1Layer1 = [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448];
const v1Layer2 = [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384];
const v1Layer3 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const v2Layer1 = [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256];
const v2Layer2And3 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];

/** Sample rates of MPEG 1 by index. MPEG 2 has half the rate, and MPEG 2.5 a quarter. */
const sampleRates = [44_100, 48_000, 32_000];

/** The padding between a tag and the first frame. Encoders pad more than the length in the tag says. */
const maxPaddingBytes = 4096;

/** Real files have one or two. */
const maxTags = 64;

/** Returns the offset of the first byte after the ID3v2 tags, or 0 without tags. */
function skipId3(bytes: Uint8Array): number {
  let offset = 0;
  for (let tags = 0; tags < maxTags; tags += 1) {
    if (latin1(bytes, offset, 3) !== "ID3" || (bytes[offset + 3] ?? 0xff) === 0xff) return offset;
    const size = synchsafe(bytes, offset + 6);
    if (size === undefined) return offset;
    const hasFooter = ((bytes[offset + 5] ?? 0) & 0x10) !== 0;
    offset += 10 + size + (hasFooter ? 10 : 0);
  }
  return offset;
}

/** Whether two MPEG audio frames (layer 1 to 3) follow each other at `start`, or after a tag's padding. */
function hasMpegFrames(bytes: Uint8Array, start: number): boolean {
  const last = start === 0 ? 0 : Math.min(start + maxPaddingBytes, bytes.length);
  for (let offset = start; offset <= last; offset += 1) {
    if (hasTwoFrames(bytes, offset, mpegFrameBytes)) return true;
  }
  return false;
}

/** Whether two AAC frames with ADTS headers follow each other at `start`. */
function hasAdtsFrames(bytes: Uint8Array, start: number): boolean {
  return hasTwoFrames(bytes, start, adtsFrameBytes);
}

type FrameLength = (bytes: Uint8Array, offset: number) => number | undefined;

function hasTwoFrames(bytes: Uint8Array, offset: number, lengthAt: FrameLength): boolean {
  const first = lengthAt(bytes, offset);
  return first !== undefined && lengthAt(bytes, offset + first) !== undefined;
}

/** Returns the length in bytes of the frame at `offset`, or `undefined` when there is no frame header. */
function mpegFrameBytes(bytes: Uint8Array, offset: number): number | undefined {
  const header = bigEndian(bytes, offset, 4);
  if (header >>> 21 !== 0x7ff) return undefined;
  const version = (header >>> 19) & 3;
  const layer = 4 - ((header >>> 17) & 3);
  const bitrateIndex = (header >>> 12) & 15;
  const rate = sampleRates[(header >>> 10) & 3];
  if (version === 1 || layer === 4 || rate === undefined || bitrateIndex === 0) return undefined;
  const bitrate = (bitrates(version, layer)[bitrateIndex] ?? 0) * 1000;
  if (bitrate === 0) return undefined;
  const sampleRate = version === 3 ? rate : version === 2 ? rate / 2 : rate / 4;
  const padding = (header >>> 9) & 1;
  if (layer === 1) return (Math.floor((12 * bitrate) / sampleRate) + padding) * 4;
  const slots = layer === 3 && version !== 3 ? 72 : 144;
  return Math.floor((slots * bitrate) / sampleRate) + padding;
}

function bitrates(version: number, layer: number): readonly number[] {
  if (version === 3) return layer === 1 ? v1Layer1 : layer === 2 ? v1Layer2 : v1Layer3;
  return layer === 1 ? v2Layer1 : v2Layer2And3;
}

function adtsFrameBytes(bytes: Uint8Array, offset: number): number | undefined {
  const header = bigEndian(bytes, offset, 6);
  // These are 12 bits of sync, and the two bits that say "layer 0", which no MPEG frame has.
  if (bigEndian(bytes, offset, 2) >>> 4 !== 0xfff || ((bytes[offset + 1] ?? 0) & 6) !== 0) return undefined;
  if ((((bytes[offset + 2] ?? 0) >>> 2) & 15) > 12) return undefined;
  const length = Math.floor(header / 32) % 8192;
  return length >= 7 ? length : undefined;
}

/** Reads a number of four bytes with seven bits each. */
function synchsafe(bytes: Uint8Array, offset: number): number | undefined {
  let value = 0;
  for (let index = 0; index < 4; index += 1) {
    const byte = bytes[offset + index];
    if (byte === undefined || byte > 127) return undefined;
    value = value * 128 + byte;
  }
  return value;
}

/**
 * Returns the text of a file in UTF-8, or in UTF-16 with a byte order mark, at most `maxChars`. Invalid bytes
 * become U+FFFD. `isCut` means that there is more.
 */
export function decodeText(
  bytes: Uint8Array,
  maxChars: number,
): { readonly text: string; readonly isCut: boolean } {
  const encoding =
    bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : bytes[0] === 0xfe ? "utf-16be" : "utf-8";
  // A character takes at most four bytes, so longer files are not decoded to their end.
  const isLong = bytes.length > maxChars * 4;
  const whole = new TextDecoder(encoding).decode(isLong ? bytes.subarray(0, maxChars * 4) : bytes);
  return { text: whole.slice(0, maxChars), isCut: isLong || whole.length > maxChars };
}

/** Reads `length` bytes from `start` as Latin-1 text, or fewer at the end of the bytes. It never throws. */
export function latin1(bytes: Uint8Array, start: number, length: number): string {
  return String.fromCharCode(...bytes.subarray(start, start + length));
}

/** Whether the bytes at `offset` are exactly `expected`. It never throws. */
function hasBytes(bytes: Uint8Array, offset: number, expected: readonly number[]): boolean {
  return expected.every((byte, index) => bytes[offset + index] === byte);
}

/** Reads a big-endian unsigned number of up to 6 bytes. Bytes past the end count as 0. */
export function bigEndian(bytes: Uint8Array, offset: number, length: number): number {
  let value = 0;
  for (let index = 0; index < length; index += 1) value = value * 256 + (bytes[offset + index] ?? 0);
  return value;
}

/** Reads a little-endian unsigned number of up to 6 bytes. Bytes past the end count as 0. */
export function littleEndian(bytes: Uint8Array, offset: number, length: number): number {
  let value = 0;
  for (let index = length - 1; index >= 0; index -= 1) value = value * 256 + (bytes[offset + index] ?? 0);
  return value;
}
