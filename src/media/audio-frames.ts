import { bigEndian, latin1 } from "./bytes.ts";

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
export function skipId3(bytes: Uint8Array): number {
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
export function hasMpegFrames(bytes: Uint8Array, start: number): boolean {
  const last = start === 0 ? 0 : Math.min(start + maxPaddingBytes, bytes.length);
  for (let offset = start; offset <= last; offset += 1) {
    if (hasTwoFrames(bytes, offset, mpegFrameBytes)) return true;
  }
  return false;
}

/** Whether two AAC frames with ADTS headers follow each other at `start`. */
export function hasAdtsFrames(bytes: Uint8Array, start: number): boolean {
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
