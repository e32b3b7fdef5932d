import { withIndexFirst } from "./mp4-fast-start.ts";
import { countParts, createPartCutter, type PartCutter, type SamplePart } from "./part-cutter.ts";
import { decoderOf, readFormat, type Decoder, type Recording } from "./recording-format.ts";
import { createMonoConverter, type MonoConverter } from "./to-mono.ts";
import { toWav } from "./wav.ts";

/** What is to be cut, and how. */
export interface CutInput extends Recording {
  /** A recording that is neither longer nor larger is not cut. */
  readonly wholeSeconds: number;
  readonly wholeBytes: number;
  /** No part is longer. */
  readonly partSeconds: number;
  /** What comes after is left out. */
  readonly maxSeconds: number;
}

/** One part of a recording: a WAV file of one channel. */
export interface RecordingPart {
  /** From 1. */
  readonly number: number;
  /** How many there are, by the length that the recording says it has. */
  readonly count?: number;
  readonly fromSeconds: number;
  readonly seconds: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** What the worker posts: that the recording need not be cut; a part; or that the rest was left out. */
export type CutMessage =
  | { readonly kind: "whole"; readonly seconds: number }
  | { readonly kind: "part"; readonly part: RecordingPart }
  | { readonly kind: "left-out"; readonly fromSeconds: number };

/** Decoders return all samples of a chunk at once, some formats 100,000 times its size. */
const chunkBytes = 4096;
const mp4ChunkBytes = 65_536;

/**
 * Decodes a recording block by block and cuts it where it is quiet. To be run in a worker.
 * @param post resolves when the next part is wanted
 * @throws Error when it cannot be decoded
 */
export async function cutIntoParts(
  input: CutInput,
  post: (message: CutMessage) => Promise<void>,
): Promise<void> {
  const { bytes, mediaType, container, partSeconds } = input;
  const format = await readFormat(bytes, mediaType);
  const { duration } = format;
  if (duration !== undefined && duration <= input.wholeSeconds && bytes.length <= input.wholeBytes) {
    await post({ kind: "whole", seconds: duration });
    return;
  }
  const decoder = decoderOf(container, format);
  const count = duration === undefined ? undefined : countParts(duration, partSeconds);
  let mono: MonoConverter | undefined;
  let cutter: PartCutter | undefined;
  let number = 0;
  let seconds = 0;
  const postPart = async ({ fromSeconds, samples }: SamplePart, sampleRate: number): Promise<void> => {
    number += 1;
    const part = {
      number,
      // Headers can lie: a later part has come, so there are at least as many.
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

async function decode(bytes: Uint8Array<ArrayBuffer>, decoder: Decoder) {
  const { default: decodeAudio } = await import("audio-decode");
  return decodeAudio(decoder === "m4a" ? mp4Chunks(bytes) : chunks([bytes], chunkBytes), decoder);
}

/** The decoder looks for the index in all that it has got, with each chunk: it gets the index at once. */
async function* mp4Chunks(bytes: Uint8Array<ArrayBuffer>): AsyncGenerator<Uint8Array, void> {
  const { pieces, headBytes } = withIndexFirst(bytes);
  const whole = pieces.length === 1 ? bytes : Buffer.concat(pieces);
  yield whole.subarray(0, headBytes);
  yield* chunks([whole.subarray(headBytes)], mp4ChunkBytes);
}

async function* chunks(pieces: readonly Uint8Array[], size: number): AsyncGenerator<Uint8Array, void> {
  for (const piece of pieces)
    for (let at = 0; at < piece.length; at += size) yield piece.subarray(at, at + size);
}
