import {
  decoderOf,
  readFormat,
  type Decoder,
  type Recording,
  type RecordingFormat,
} from "../../media/recordings/recording-format.ts";
import { createLoudnessMeter, type Loudness } from "./loudness.ts";
import { countMp4Samples } from "./mp4-samples.ts";

/** Only the beginning of longer recordings is measured, to bound the processor time. */
export const maxMeasuredSeconds = 900;
/** The MP4 decoder holds all samples in memory: 300 s of stereo are 115 MB. Longer recordings are not measured. */
const maxMp4Seconds = 300;
/** Samples of an MP4 file's tables, whatever length it claims: 300 s of AAC are 14,000. */
const maxMp4Samples = 20_000;
/** Some formats decode to 100,000 times their size; the decoder returns all samples of a chunk at once. */
const chunkBytes = 4096;

/** What {@link measureRecording} reports, in this order. `too-long` comes instead of a loudness. */
export type Measurement =
  | { readonly kind: "format"; readonly format: RecordingFormat }
  | { readonly kind: "loudness"; readonly loudness: Loudness }
  | { readonly kind: "too-long" };

/**
 * Reads a recording's headers, then decodes and measures it. To be run in a worker: hostile files make the libraries
 * loop and allocate.
 * @throws Error when it cannot be decoded
 */
export async function measureRecording(
  recording: Recording,
  report: (measurement: Measurement) => void,
): Promise<void> {
  const { bytes, mediaType, container } = recording;
  const format = await readFormat(bytes, mediaType);
  report({ kind: "format", format });
  const decoder = decoderOf(container, format);
  const isLongMp4 = (format.duration ?? 0) > maxMp4Seconds || countMp4Samples(bytes) > maxMp4Samples;
  if (decoder === "m4a" && isLongMp4) {
    report({ kind: "too-long" });
    return;
  }
  report({ kind: "loudness", loudness: await measure(bytes, decoder) });
}

async function measure(bytes: Uint8Array, decoder: Decoder): Promise<Loudness> {
  const { default: decode } = await import("audio-decode");
  const meter = createLoudnessMeter();
  // The MP4 decoder searches all that it was given for the header again with each chunk.
  const size = decoder === "m4a" ? bytes.length : chunkBytes;
  for await (const { channelData, sampleRate } of decode(slices(bytes, size), decoder)) {
    meter.add(channelData, sampleRate);
    if (meter.seconds() >= maxMeasuredSeconds) break;
  }
  return meter.result();
}

async function* slices(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
