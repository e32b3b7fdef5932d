import { setImmediate as breathe } from "node:timers/promises";
import { sniff } from "../../media/sniff.ts";
import { invalidRequest, type ApiError } from "../api-error.ts";
import type { TranscriptionFields } from "../requests.ts";
import { toSize } from "./describe-picture.ts";
import { createLoudnessMeter, type Loudness } from "./loudness.ts";

/** Longer recordings are measured so far only; a sandbox must not keep a processor busy for minutes. */
const maxMeasuredSeconds = 900;
/** The MP4 decoder holds all samples at once: 300 s of stereo are 115 MB. */
const maxWholeSeconds = 300;
const chunkBytes = 64 * 1024;

/** What a recording turned out to be. */
export interface Recording {
  readonly container: string;
  readonly codec: string;
  readonly sampleRate?: number;
  readonly channels?: number;
  readonly seconds?: number;
  readonly loudness?: Loudness;
}

/**
 * Reads the container and measures the sound. Names and claimed types are never looked at.
 * @throws ApiError 400 naming `file`: no audio, or none that can be decoded
 */
export async function listen(bytes: Buffer, signal: AbortSignal): Promise<Recording> {
  const file = sniff(bytes);
  if (file.kind === "empty") throw unreadable("the audio file is empty", "empty_file");
  if (file.kind !== "audio")
    throw unreadable(`it holds ${file.mediaType}, which is no audio`, "invalid_audio");
  try {
    const format = await readFormat(bytes, file.mediaType);
    const container = file.container ?? file.extension;
    const loudness = await measure(bytes, decoderOf(container, format.codec), format.duration, signal);
    const seconds = format.duration ?? loudness?.seconds;
    // MP4 headers claim two channels for mono; what came out of the decoder is right.
    const channels = loudness?.channels ?? format.numberOfChannels;
    if (loudness?.seconds === 0 || seconds === 0) throw new Error("There is no sample in it.");
    return {
      container: containerNames[container] ?? container,
      codec: (format.codec ?? "unknown codec").replace(/^OPUS$/, "Opus"),
      ...(format.sampleRate === undefined ? {} : { sampleRate: format.sampleRate }),
      ...(channels === undefined ? {} : { channels }),
      ...(seconds === undefined ? {} : { seconds }),
      ...(loudness === undefined ? {} : { loudness }),
    };
  } catch (error) {
    signal.throwIfAborted();
    throw unreadable("the audio cannot be decoded", "invalid_audio", error);
  }
}

/**
 * What the container says. Browsers record WebM whose clusters have no length, over which the reader stumbles;
 * the decoder does not, and the name of the codec stands in the bytes.
 */
async function readFormat(
  bytes: Buffer,
  mediaType: string,
): Promise<{ codec?: string; sampleRate?: number; numberOfChannels?: number; duration?: number }> {
  const { parseBuffer } = await import("music-metadata");
  try {
    const { format } = await parseBuffer(
      bytes,
      { mimeType: mediaType },
      { duration: true, skipCovers: true },
    );
    return format;
  } catch (error) {
    if (mediaType !== "audio/webm") throw error;
    return bytes.includes("A_OPUS") ? { codec: "Opus", sampleRate: 48_000 } : {};
  }
}

/** The answer of `sandbox/transcribe`, in plain text. */
export function describeRecording(
  recording: Recording,
  sizeBytes: number,
  fields: TranscriptionFields,
): string {
  const { loudness } = recording;
  const channels =
    recording.channels === undefined
      ? []
      : [channelNames[recording.channels] ?? `${recording.channels} channels`];
  const rate = recording.sampleRate === undefined ? [] : [`${recording.sampleRate / 1000} kHz`];
  const length = recording.seconds === undefined ? [] : [toSeconds(recording.seconds)];
  const facts = [recording.codec, ...rate, ...channels, ...length, toSize(sizeBytes)].join(", ");
  const lines = [
    "[Parley sandbox: I measure sound and cannot recognise words. Connect a transcription model for a transcript.]",
    `Recording: ${recording.container} with ${facts}.`,
  ];
  if (loudness === undefined)
    lines.push("Loudness: not measured, the recording is too long for the sandbox.");
  else {
    lines.push(
      `Loudness: ${loudness.sparkline} (one mark is ${loudness.intervalSeconds.toFixed(1)} s; average ${loudness.averageDb.toFixed(0)} dBFS, peak ${loudness.peakDb.toFixed(0)} dBFS).`,
      describeSilence(loudness),
    );
    if (loudness.seconds >= maxMeasuredSeconds)
      lines.push(`Only the first ${maxMeasuredSeconds} s were measured.`);
  }
  if (fields.language !== undefined) lines.push(`Language given: ${fields.language}.`);
  if (fields.prompt !== undefined && fields.prompt !== "")
    lines.push(`Hint given: “${fields.prompt.slice(0, 500)}”.`);
  return lines.join("\n");
}

function describeSilence(loudness: Loudness): string {
  if (loudness.silences.length === 0) return "Silence: none of half a second or more.";
  const [first] = loudness.silences;
  if (
    first !== undefined &&
    loudness.silences.length === 1 &&
    first.to - first.from >= loudness.seconds - 0.2
  ) {
    return "Silence: all of it.";
  }
  const shown = loudness.silences.slice(0, 8).map(({ from, to }) => `${from.toFixed(1)}–${to.toFixed(1)} s`);
  const more = loudness.silences.length - shown.length;
  return `Silence: ${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}.`;
}

function toSeconds(seconds: number): string {
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${String(Math.round(seconds % 60)).padStart(2, "0")} s`;
}

const channelNames: Readonly<Record<number, string>> = { 1: "mono", 2: "stereo" };
const containerNames: Readonly<Record<string, string>> = {
  ogg: "Ogg",
  mp4: "MP4 (M4A)",
  webm: "WebM",
  matroska: "Matroska",
  mp3: "MP3",
  wav: "WAV",
  flac: "FLAC",
  adts: "AAC (ADTS)",
  aiff: "AIFF",
  amr: "AMR",
  caf: "CAF",
};

type Decoder = "opus" | "oga" | "m4a" | "webm" | "mp3" | "wav" | "flac" | "aac" | "aiff" | "caf" | "amr";

function decoderOf(container: string, codec: string | undefined): Decoder | undefined {
  if (container === "ogg") {
    if (/opus/i.test(codec ?? "")) return "opus";
    return /flac/i.test(codec ?? "") ? "flac" : "oga";
  }
  return decoders[container];
}

const decoders: Readonly<Record<string, Decoder>> = {
  mp4: "m4a",
  webm: "webm",
  matroska: "webm",
  mp3: "mp3",
  wav: "wav",
  flac: "flac",
  adts: "aac",
  aiff: "aiff",
  caf: "caf",
  amr: "amr",
};

/** One recording at a time: decoding is the process's own work. */
let lastWork: Promise<unknown> = Promise.resolve();

/** `undefined`: it is not measured, since this container is only decoded whole and would fill the memory. */
async function measure(
  bytes: Buffer,
  decoder: Decoder | undefined,
  seconds: number | undefined,
  signal: AbortSignal,
): Promise<Loudness | undefined> {
  if (decoder === undefined) throw new Error("There is no decoder for it.");
  if (decoder === "m4a" && (seconds ?? 0) > maxWholeSeconds) return undefined;
  const work = lastWork.then(() => decodeAndMeasure(bytes, decoder, signal));
  lastWork = work.then(
    () => undefined,
    () => undefined,
  );
  return work;
}

async function decodeAndMeasure(bytes: Buffer, decoder: Decoder, signal: AbortSignal): Promise<Loudness> {
  const { default: decode } = await import("audio-decode");
  const meter = createLoudnessMeter();
  for await (const { channelData, sampleRate } of decode(slices(bytes, signal), decoder)) {
    meter.add(channelData, sampleRate);
    if (meter.seconds >= maxMeasuredSeconds) break;
  }
  return meter.result();
}

/** In small bites, so that other requests are served between them. */
async function* slices(bytes: Buffer, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    signal.throwIfAborted();
    yield bytes.subarray(at, at + chunkBytes);
    await breathe();
  }
}

function unreadable(problem: string, code: string, cause?: unknown): ApiError {
  return invalidRequest(`Invalid 'file': ${problem}.`, { param: "file", code, cause });
}
