import { bigEndian, hasBytes, latin1 } from "./bytes.ts";

/** Kinds of track in a container. */
export interface Tracks {
  readonly hasAudio: boolean;
  readonly hasVideo: boolean;
}

interface Span {
  readonly id: string;
  /** First byte of the content. */
  readonly start: number;
  /** One past its last byte, never past the file. */
  readonly end: number;
}

type Walk = (bytes: Uint8Array, from: number, to: number) => Generator<Span>;

/** Limit for crafted files with millions of tiny parts; real files have hundreds at a level. Of a level as a whole. */
const maxParts = 20_000;
const maxParents = 64;
/** Streams of an Ogg file; real files have a few. */
const maxStreams = 64;

/** All parts at the end of a path of ids, e.g. every `hdlr` in every `mdia` in every `trak` in `moov`. */
function descend(bytes: Uint8Array, walk: Walk, path: readonly string[]): readonly Span[] {
  let level: readonly Span[] = [{ id: "", start: 0, end: bytes.length }];
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

/** The tracks of an ISO media file (MP4, M4A, QuickTime), wherever its `moov` box is. */
export function mp4Tracks(bytes: Uint8Array): Tracks {
  const handlers = descend(bytes, boxes, ["moov", "trak", "mdia", "hdlr"]).map((handler) =>
    latin1(bytes, handler.start + 8, 4),
  );
  return { hasAudio: handlers.includes("soun"), hasVideo: handlers.includes("vide") };
}

/** Major brand and the compatible ones of an `ftyp` box at the front, e.g. `["M4A ", "isom"]`. */
export function mp4Brands(bytes: Uint8Array): readonly string[] {
  const size = Math.min(bigEndian(bytes, 0, 4), bytes.length, 256);
  const brands = [latin1(bytes, 8, 4)];
  for (let offset = 16; offset + 4 <= size; offset += 4) brands.push(latin1(bytes, offset, 4));
  return brands;
}

function* boxes(bytes: Uint8Array, from: number, to: number): Generator<Span> {
  let offset = from;
  while (offset + 8 <= to) {
    const short = bigEndian(bytes, offset, 4);
    const isLong = short === 1;
    const header = isLong ? 16 : 8;
    // Size 0 means "to the end". The upper two bytes of a 64-bit size are ignored: no such file is read here.
    const size = isLong ? bigEndian(bytes, offset + 10, 6) : short === 0 ? to - offset : short;
    if (size < header) return;
    const start = offset + header;
    yield { id: latin1(bytes, offset + 4, 4), start, end: Math.min(offset + size, to) };
    offset += size;
  }
}

const ebmlHeader = "1a45dfa3";
const docTypeId = "4282";
const segmentId = "18538067";
const tracksId = "1654ae6b";
const trackEntryId = "ae";
const trackTypeId = "83";

/** Document type and tracks of a Matroska file, `undefined` for other files. */
export function matroskaTracks(bytes: Uint8Array): (Tracks & { readonly docType: string }) | undefined {
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

/** Successive elements. One of unknown size, as browsers record it, extends to the end. */
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
    // Of 8-byte sizes the lower six are used: no larger file is read here.
    const tail = Math.min(sizeLength - 1, 6);
    const size = (sizeLength === 8 ? 0 : first * 256 ** tail) + bigEndian(bytes, start - tail, tail);
    const end = isUnknown ? to : Math.min(start + size, to);
    const id = Buffer.from(bytes.subarray(offset, sizeAt)).toString("hex");
    yield { id, start, end };
    offset = isUnknown ? to : start + size;
  }
}

/** Length of an EBML number, from the leading zeros of its first byte. 0 for an invalid one. */
function vintLength(first: number | undefined): number {
  return first === undefined || first === 0 ? 0 : Math.clz32(first) - 23;
}

/** The tracks of an Ogg file, from the first packets of its logical streams. `undefined` for other files. */
export function oggTracks(bytes: Uint8Array): Tracks | undefined {
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
