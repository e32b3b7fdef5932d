import type { IFormat } from "music-metadata";
import { bigEndian, boxes } from "../sniff.ts";
import { longestAudioSeconds } from "./longest-audio.ts";

/** A recording as `sniff` detected it, and how it is cut. */
export interface CutInput {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly mediaType: string;
  readonly container: string;
  /** A recording that is neither longer nor larger is not cut. */
  readonly wholeSeconds: number;
  readonly wholeBytes: number;
  /** The longest part. */
  readonly partSeconds: number;
  /** The rest after this is left out. */
  readonly maxSeconds: number;
}

/** One part of a recording: a WAV file of one channel. */
export interface RecordingPart {
  /** The number, from 1. */
  readonly number: number;
  /** How many parts there are, by the length that the recording says it has. */
  readonly count?: number;
  readonly fromSeconds: number;
  readonly seconds: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** The worker posts that the recording need not be cut, or a part, or that the rest was left out. */
export type CutMessage =
  | { readonly kind: "whole"; readonly seconds: number }
  | { readonly kind: "part"; readonly part: RecordingPart }
  | { readonly kind: "left-out"; readonly fromSeconds: number };

/** Decoders return all samples of a chunk at once, in some formats 100,000 times its size. This limits it. */
const chunkSeconds = 20;
const minChunkBytes = 64;
const maxChunkBytes = 4096;
const maxMp4ChunkBytes = 65_536;
/** The rate of speech. Longer chunks are limited by their size. */
const minSpeechBytesPerSecond = 750;

/**
 * Decodes a recording block by block and cuts it where it is quiet. It must run in a worker.
 * @param post resolves when the next part is wanted
 * @throws Error when it cannot be decoded
 */
export async function cutIntoParts(
  input: CutInput,
  post: (message: CutMessage) => Promise<void>,
): Promise<void> {
  const { bytes, mediaType, container, partSeconds } = input;
  const { codec = "", duration } = await readFormat(bytes, mediaType);
  if (duration !== undefined && duration <= input.wholeSeconds && bytes.length <= input.wholeBytes) {
    await post({ kind: "whole", seconds: duration });
    return;
  }
  const decoder = decoderOf(container, codec);
  const count = duration === undefined ? undefined : countParts(duration, partSeconds);
  let mono: ReturnType<typeof createMonoConverter> | undefined;
  let cutter: ReturnType<typeof createPartCutter> | undefined;
  let number = 0;
  let seconds = 0;
  const postPart = async ({ fromSeconds, samples }: SamplePart, sampleRate: number): Promise<void> => {
    number += 1;
    const part = {
      number,
      // Headers can lie. Where a later part has come, there are at least as many.
      ...(count === undefined || number > count ? {} : { count }),
      fromSeconds,
      seconds: samples.length / sampleRate,
      bytes: toWav(samples, sampleRate),
    };
    await post({ kind: "part", part });
  };
  for await (const { channelData, sampleRate } of await decode(bytes, decoder)) {
    if (channelData.length === 0 || sampleRate === 0) continue;
    mono ??= createMonoConverter(sampleRate);
    cutter ??= createPartCutter({
      sampleRate: mono.sampleRate,
      maxSeconds: partSeconds,
      durationSeconds: duration,
    });
    const samples = mono.convert(channelData);
    seconds += samples.length / mono.sampleRate;
    for (const part of cutter.add(samples)) await postPart(part, mono.sampleRate);
    if (seconds < input.maxSeconds) continue;
    await post({ kind: "left-out", fromSeconds: seconds });
    break;
  }
  const last = cutter?.end();
  if (last !== undefined && mono !== undefined) await postPart(last, mono.sampleRate);
  if (number === 0) throw new Error("no samples");
}

/** The decoder of `audio-decode` for each container that `sniff` knows. */
const decoders = {
  ogg: "oga",
  mp4: "m4a",
  webm: "webm",
  matroska: "webm",
  mp3: "mp3",
  wav: "wav",
  flac: "flac",
  adts: "aac",
  aiff: "aiff",
  amr: "amr",
  caf: "caf",
} as const;
type Decoder = (typeof decoders)[keyof typeof decoders] | "opus";

/** @throws Error where there is none */
function decoderOf(container: string, codec: string): Decoder {
  if (!Object.hasOwn(decoders, container)) throw new Error("no decoder");
  const usual = decoders[container as keyof typeof decoders];
  if (usual !== "oga") return usual;
  return /opus/i.test(codec) ? "opus" : /flac/i.test(codec) ? "flac" : usual;
}

/** Reads codec and length, in seconds, from the headers, which can lie. @throws Error of the library */
async function readFormat(
  bytes: Uint8Array<ArrayBuffer>,
  mimeType: string,
): Promise<Pick<IFormat, "codec" | "duration">> {
  const { parseBuffer } = await import("music-metadata");
  try {
    return (await parseBuffer(bytes, { mimeType }, { duration: true, skipCovers: true })).format;
  } catch (error) {
    // Browsers record WebM clusters of unknown length, which this reader rejects and the decoder accepts.
    if (mimeType === "audio/webm") return {};
    throw error;
  }
}

async function decode(bytes: Uint8Array<ArrayBuffer>, decoder: Decoder) {
  const { default: decodeAudio } = await import("audio-decode");
  const bytesPerSecond = bytes.length / longestAudioSeconds(bytes, minSpeechBytesPerSecond);
  const size = Math.max(minChunkBytes, Math.ceil(bytesPerSecond * chunkSeconds));
  return decodeAudio(
    decoder === "m4a"
      ? mp4Chunks(bytes, Math.min(size, maxMp4ChunkBytes))
      : chunks([bytes], Math.min(size, maxChunkBytes)),
    decoder,
  );
}

/** Puts the index first, since the decoder would look for it in everything that it has, with each chunk. */
async function* mp4Chunks(bytes: Uint8Array<ArrayBuffer>, size: number): AsyncGenerator<Uint8Array, void> {
  const { pieces, headBytes } = withIndexFirst(bytes);
  const whole = pieces.length === 1 ? bytes : Buffer.concat(pieces);
  yield whole.subarray(0, headBytes);
  yield* chunks([whole.subarray(headBytes)], size);
}

async function* chunks(pieces: readonly Uint8Array[], size: number): AsyncGenerator<Uint8Array, void> {
  for (const piece of pieces)
    for (let at = 0; at < piece.length; at += size) yield piece.subarray(at, at + size);
}

/** One part of a recording, as samples. */
interface SamplePart {
  readonly fromSeconds: number;
  readonly samples: Int16Array<ArrayBuffer>;
}

/** How a recording is cut. */
interface CutPlan {
  readonly sampleRate: number;
  /** The longest part. */
  readonly maxSeconds: number;
  /** The length that the recording says it has. The parts are then about equally long. */
  readonly durationSeconds?: number | undefined;
}

/** Cuts in the quietest half second of a part's last minute, or of the last 40 % of a short part. */
const searchedSecondsOf = (maxSeconds: number) => Math.min(60, maxSeconds * 0.4);
const windowsPerSecond = 20;
const quietWindows = 10;

/** Returns how many parts a recording of that length is cut into. */
function countParts(durationSeconds: number, maxSeconds: number): number {
  return Math.max(1, Math.ceil(durationSeconds / (maxSeconds - searchedSecondsOf(maxSeconds))));
}

function createPartCutter({ sampleRate, maxSeconds, durationSeconds }: CutPlan) {
  const count = durationSeconds === undefined ? undefined : countParts(durationSeconds, maxSeconds);
  const maxSamples = Math.round(maxSeconds * sampleRate);
  const searched = Math.round(searchedSecondsOf(maxSeconds) * sampleRate);
  let pending = new Int16Array(Math.min(maxSamples, 1 << 20));
  let length = 0;
  let taken = 0;
  let cuts = 0;

  /** Returns where the search for a cut ends, in samples of the pending part. */
  function limit(): number {
    if (count === undefined || durationSeconds === undefined || cuts + 1 >= count) return maxSamples;
    const target = (durationSeconds * (cuts + 1) * sampleRate) / count - taken;
    return Math.min(maxSamples, Math.max(searched, Math.round(target + searched / 2)));
  }

  function append(samples: Float32Array): void {
    if (length + samples.length > pending.length) {
      const grown = new Int16Array(
        Math.min(maxSamples, Math.max(pending.length * 2, length + samples.length)),
      );
      grown.set(pending.subarray(0, length));
      pending = grown;
    }
    for (let at = 0; at < samples.length; at += 1) {
      const value = samples[at] ?? 0;
      pending[length + at] = Math.round(Math.max(-1, Math.min(1, value)) * 32_767);
    }
    length += samples.length;
  }

  function take(end: number): SamplePart {
    const part = { fromSeconds: taken / sampleRate, samples: pending.slice(0, end) };
    pending.copyWithin(0, end, length);
    length -= end;
    taken += end;
    cuts += 1;
    return part;
  }

  return {
    /** Takes the next samples, from -1 to 1, and returns the parts that are complete. */
    add(samples: Float32Array): SamplePart[] {
      const parts: SamplePart[] = [];
      for (let at = 0; at < samples.length;) {
        const room = limit() - length;
        const next = samples.subarray(at, at + Math.max(0, room));
        append(next);
        at += next.length;
        if (length >= limit())
          parts.push(take(quietest(pending, Math.max(1, length - searched), length, sampleRate)));
      }
      return parts;
    },
    /** Returns the last part, or `undefined` where nothing is left. */
    end: () => (length === 0 ? undefined : take(length)),
  };
}

/** Returns the middle of the quietest half second between two samples. */
function quietest(samples: Int16Array, from: number, to: number, sampleRate: number): number {
  const size = Math.max(1, Math.floor(sampleRate / windowsPerSecond));
  const powers: number[] = [];
  for (let at = from; at + size <= to; at += size) {
    let power = 0;
    for (let index = at; index < at + size; index += 1) power += (samples[index] ?? 0) ** 2;
    powers.push(power);
  }
  let best = 0;
  let lowest = Number.POSITIVE_INFINITY;
  const width = Math.min(quietWindows, powers.length);
  for (let start = 0; start + width <= powers.length; start += 1) {
    const sum = powers.slice(start, start + width).reduce((total, power) => total + power, 0);
    if (sum >= lowest) continue;
    lowest = sum;
    best = start;
  }
  return powers.length === 0 ? to : from + Math.round((best + width / 2) * size);
}

const containers = new Set(["moov", "trak", "mdia", "minf", "stbl"]);
const maxBoxes = 20_000;

/**
 * Puts the index of an MP4 file first, so that a decoder can read it from the front to the end without
 * holding all of it. The decoder must get `headBytes` at once. A file without an index is returned as it is.
 */
function withIndexFirst(bytes: Uint8Array<ArrayBuffer>): {
  readonly pieces: readonly Uint8Array[];
  readonly headBytes: number;
} {
  const top = [...boxes(bytes, 0, bytes.length).take(maxBoxes)];
  const index = top.find(({ id }) => id === "moov");
  const data = top.find(({ id }) => id === "mdat" || id === "moof");
  if (index === undefined || data === undefined || index.at < data.at)
    return { pieces: [bytes], headBytes: data?.start ?? bytes.length };
  const moved = bytes.slice(index.at, index.end);
  shiftOffsets(moved, moved.length, index.at);
  return {
    pieces: [bytes.subarray(0, data.at), moved, bytes.subarray(data.at, index.at), bytes.subarray(index.end)],
    headBytes: data.start + moved.length,
  };
}

/** Shifts offsets in the sample tables: everything before the index moves back by its length. */
function shiftOffsets(index: Uint8Array, by: number, before: number): void {
  const view = new DataView(index.buffer, index.byteOffset, index.byteLength);
  const walk = (from: number, to: number): void => {
    for (const { id, start, end } of boxes(index, from, to).take(maxBoxes)) {
      if (containers.has(id)) walk(start, end);
      const width = id === "stco" ? 4 : id === "co64" ? 8 : 0;
      if (width === 0 || start + 8 > end) continue;
      const count = view.getUint32(start + 4);
      for (let at = start + 8, left = count; left > 0 && at + width <= end; at += width, left -= 1) {
        const offset = bigEndian(index, at + width - Math.min(width, 6), Math.min(width, 6));
        if (offset >= before) continue;
        if (width === 4) view.setUint32(at, offset + by);
        else view.setBigUint64(at, BigInt(offset + by));
      }
    }
  };
  walk(0, index.length);
}

const headerBytes = 44;

/** Makes a WAV file of one channel of 16-bit samples. */
function toWav(samples: Int16Array, sampleRate: number): Uint8Array<ArrayBuffer> {
  const file = Buffer.alloc(headerBytes + samples.length * 2);
  file.write("RIFF", 0, "latin1");
  file.writeUInt32LE(file.length - 8, 4);
  file.write("WAVEfmt ", 8, "latin1");
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(1, 22);
  file.writeUInt32LE(sampleRate, 24);
  file.writeUInt32LE(sampleRate * 2, 28);
  file.writeUInt16LE(2, 32);
  file.writeUInt16LE(16, 34);
  file.write("data", 36, "latin1");
  file.writeUInt32LE(samples.length * 2, 40);
  file.set(new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength), headerBytes);
  return new Uint8Array(file.buffer, file.byteOffset, file.length);
}

/** Cuts a file of {@link toWav} in the middle and returns both halves. */
export function halveWav(wav: Uint8Array): readonly [Uint8Array, Uint8Array] {
  const view = new DataView(wav.buffer, wav.byteOffset, wav.byteLength);
  const sampleRate = view.getUint32(24, true);
  const samples = new Int16Array(wav.slice(headerBytes).buffer);
  const middle = Math.floor(samples.length / 2);
  return [toWav(samples.subarray(0, middle), sampleRate), toWav(samples.subarray(middle), sampleRate)];
}

/** Recognisers work with this rate. More only makes the upload larger. */
const maxSampleRate = 16_000;

/**
 * Converts decoded blocks to one channel of at most 16 kHz. Lower rates are kept. The samples between two of
 * the target are averaged, even across blocks.
 * @param sampleRate the source's
 */
function createMonoConverter(sampleRate: number) {
  const ratio = Math.max(1, sampleRate / maxSampleRate);
  let sum = 0;
  let weight = 0;
  return {
    sampleRate: Math.round(sampleRate / ratio),
    convert(channels: readonly Float32Array[]): Float32Array {
      const length = channels[0]?.length ?? 0;
      const result = new Float32Array(Math.ceil((length + weight) / ratio) + 1);
      let written = 0;
      for (let at = 0; at < length; at += 1) {
        let value = 0;
        for (const channel of channels) value += (channel[at] ?? 0) / channels.length;
        let left = 1;
        // A source sample may belong to two of the target in parts.
        while (weight + left >= ratio) {
          const share = ratio - weight;
          result[written] = (sum + value * share) / ratio;
          written += 1;
          left -= share;
          sum = 0;
          weight = 0;
        }
        sum += value * left;
        weight += left;
      }
      return result.subarray(0, written);
    },
  };
}
