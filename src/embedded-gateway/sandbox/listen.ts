import { sniff } from "../../media/sniff.ts";
import { createKeyedQueue } from "../../support/keyed-queue.ts";
import { invalidRequest, type ApiError } from "../api-error.ts";
import type { TranscriptionFields } from "../requests.ts";
import { runBoundedWorker } from "../../support/bounded-worker.ts";
import { toSize } from "./describe-picture.ts";
import type { Loudness } from "./loudness.ts";
import type { RecordingFormat } from "../../media/recordings/recording-format.ts";
import { maxMeasuredSeconds, type Measurement } from "./measure-recording.ts";

/** A recording is decoded in a thread of its own; past these limits the thread is ended. */
const limits = { timeoutMs: 30_000, maxHeapMb: 256, maxGrowthBytes: 500_000_000 };
const worker = new URL("./measure-worker.ts", import.meta.url);

/** Name of each container that {@link sniff} knows. */
const containers: Readonly<Record<string, string>> = {
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

/**
 * Measures a recording, and describes it in plain text. File names and claimed types are ignored.
 * @throws ApiError 400 for `file`: no audio, or audio that cannot be decoded
 */
export async function listen(
  bytes: Buffer,
  fields: TranscriptionFields,
  signal: AbortSignal,
): Promise<{ seconds: number | undefined; description: string }> {
  const file = sniff(bytes);
  if (file.kind === "empty") throw unreadable("the audio file is empty", "empty_file");
  if (file.kind !== "audio") throw unreadable(`it holds ${file.mediaType}, no audio`, "invalid_audio");
  try {
    const container = file.container ?? "";
    const { format, loudness, missing } = await measure(bytes, file.mediaType, container, signal);
    const codec = (format.codec ?? "unknown codec").replace("OPUS", "Opus");
    const seconds = format.duration ?? loudness?.seconds;
    if (loudness?.seconds === 0 || seconds === 0) throw new Error("no samples");
    // MP4 headers declare two channels for mono; the decoder's count is right.
    const channels = loudness?.channels ?? format.numberOfChannels ?? 0;
    const facts = [
      codec,
      ...(format.sampleRate === undefined ? [] : [`${format.sampleRate / 1000} kHz`]),
      ...(channels === 0 ? [] : [["mono", "stereo"][channels - 1] ?? `${channels} channels`]),
      ...(seconds === undefined ? [] : [`${seconds.toFixed(1)} s`]),
      toSize(bytes.length),
    ];
    const { language, prompt = "" } = fields;
    const lines = [
      "[Parley sandbox: I measure sound and cannot recognise words. Connect a transcription model for a transcript.]",
      `Recording: ${containers[container] ?? container} with ${facts.join(", ")}.`,
      ...describeLoudness(loudness, missing),
      ...(language === undefined ? [] : [`Language given: ${language}.`]),
      ...(prompt === "" ? [] : [`Hint given: “${prompt.slice(0, 500)}”.`]),
    ];
    return { seconds, description: lines.join("\n") };
  } catch (error) {
    signal.throwIfAborted();
    throw unreadable("the audio cannot be decoded", "invalid_audio", error);
  }
}

const problems = {
  "too-long": "the recording is too long for the sandbox",
  memory: `it needs more memory than the sandbox gives it (${limits.maxGrowthBytes / 1_000_000} MB)`,
  timeout: `decoding it took more than ${limits.timeoutMs / 1000} s`,
  done: "the sandbox cannot decode it",
} as const;

function describeLoudness(loudness: Loudness | undefined, missing: keyof typeof problems): string[] {
  if (loudness === undefined) return [`Loudness: not measured, ${problems[missing]}.`];
  const { sparkline, intervalSeconds, averageDb, peakDb, silences, seconds } = loudness;
  const shown = silences.slice(0, 8).map(({ from, to }) => `${from.toFixed(1)}–${to.toFixed(1)} s`);
  const more = silences.length > shown.length ? ` and ${silences.length - shown.length} more` : "";
  return [
    `Loudness: ${sparkline} (one mark is ${intervalSeconds.toFixed(1)} s; average ${averageDb.toFixed(0)} dBFS, peak ${peakDb.toFixed(0)} dBFS).`,
    shown.length === 0 ? "Silence: none of half a second or more." : `Silence: ${shown.join(", ")}${more}.`,
    ...(seconds >= maxMeasuredSeconds ? [`Only the first ${maxMeasuredSeconds} s were measured.`] : []),
  ];
}

/** Bounds the memory and leaves a processor to others: one recording at a time. */
const queue = createKeyedQueue();

interface Measured {
  /** Empty when the headers could not be read within the limits. */
  readonly format: RecordingFormat;
  readonly loudness: Loudness | undefined;
  /** Why there is no loudness. */
  readonly missing: keyof typeof problems;
}

function measure(
  bytes: Buffer,
  mediaType: string,
  container: string,
  signal: AbortSignal,
): Promise<Measured> {
  return queue.run("decode", async () => {
    let format: RecordingFormat = {};
    let loudness: Loudness | undefined;
    let isTooLong = false;
    const onMessage = (message: unknown): void => {
      const measurement = message as Measurement;
      if (measurement.kind === "format") ({ format } = measurement);
      else if (measurement.kind === "loudness") ({ loudness } = measurement);
      else isTooLong = true;
    };
    // A copy, since the thread takes its memory over.
    const recording = { bytes: new Uint8Array(bytes), mediaType, container };
    const outcome = await runBoundedWorker(worker, recording, limits, onMessage, signal);
    return { format, loudness, missing: isTooLong ? "too-long" : outcome };
  });
}

function unreadable(problem: string, code: string, cause?: unknown): ApiError {
  return invalidRequest(`Invalid 'file': ${problem}.`, { param: "file", code, cause });
}
