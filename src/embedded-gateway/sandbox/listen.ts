import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import type { IFormat } from "music-metadata";
import { sniff } from "../../media/sniff.ts";
import { createKeyedQueue } from "../../support/keyed-queue.ts";
import { invalidRequest, type ApiError } from "../api-error.ts";
import type { TranscriptionFields } from "../requests.ts";
import { toSize } from "./describe-picture.ts";
import { createLoudnessMeter, type Loudness } from "./loudness.ts";

/** Only the beginning of longer recordings is measured, to bound the processor time. */
const maxMeasuredSeconds = 900;
/** The MP4 decoder holds all samples in memory: 300 s of stereo are 115 MB. Longer ones are not measured. */
const maxMp4Seconds = 300;
const chunkBytes = 64 * 1024;

type Decoder = "opus" | "oga" | "m4a" | "webm" | "mp3" | "wav" | "flac" | "aac" | "aiff" | "caf" | "amr";

/** Name and decoder of each container that {@link sniff} knows. */
const containers: Readonly<Record<string, readonly [name: string, decoder: Decoder]>> = {
  ogg: ["Ogg", "oga"],
  mp4: ["MP4 (M4A)", "m4a"],
  webm: ["WebM", "webm"],
  matroska: ["Matroska", "webm"],
  mp3: ["MP3", "mp3"],
  wav: ["WAV", "wav"],
  flac: ["FLAC", "flac"],
  adts: ["AAC (ADTS)", "aac"],
  aiff: ["AIFF", "aiff"],
  amr: ["AMR", "amr"],
  caf: ["CAF", "caf"],
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
    const format = await readFormat(bytes, file.mediaType);
    const [container, usual] = containers[file.container ?? ""] ?? [];
    if (container === undefined || usual === undefined) throw new Error("no decoder");
    const codec = (format.codec ?? "unknown codec").replace("OPUS", "Opus");
    const decoder =
      usual !== "oga" ? usual : /opus/i.test(codec) ? "opus" : /flac/i.test(codec) ? "flac" : usual;
    const isMeasured = decoder !== "m4a" || (format.duration ?? 0) <= maxMp4Seconds;
    const loudness = isMeasured ? await measure(bytes, decoder, signal) : undefined;
    const seconds = format.duration ?? loudness?.seconds;
    if (loudness?.seconds === 0 || seconds === 0) throw new Error("no samples");
    // MP4 headers declare two channels for mono; the decoder's count is right.
    const channels = loudness?.channels ?? format.numberOfChannels ?? 0;
    const facts = [
      codec,
      ...(format.sampleRate === undefined ? [] : [`${format.sampleRate / 1000} kHz`]),
      ["mono", "stereo"][channels - 1] ?? `${channels} channels`,
      ...(seconds === undefined ? [] : [`${seconds.toFixed(1)} s`]),
      toSize(bytes.length),
    ];
    const { language, prompt = "" } = fields;
    const lines = [
      "[Parley sandbox: I measure sound and cannot recognise words. Connect a transcription model for a transcript.]",
      `Recording: ${container} with ${facts.join(", ")}.`,
      ...describeLoudness(loudness),
      ...(language === undefined ? [] : [`Language given: ${language}.`]),
      ...(prompt === "" ? [] : [`Hint given: “${prompt.slice(0, 500)}”.`]),
    ];
    return { seconds, description: lines.join("\n") };
  } catch (error) {
    signal.throwIfAborted();
    throw unreadable("the audio cannot be decoded", "invalid_audio", error);
  }
}

async function readFormat(bytes: Buffer, mimeType: string): Promise<Partial<IFormat>> {
  const { parseBuffer } = await import("music-metadata");
  try {
    return (await parseBuffer(bytes, { mimeType }, { duration: true, skipCovers: true })).format;
  } catch (error) {
    // Browsers record WebM clusters of unknown length, which this reader rejects and the decoder accepts.
    if (mimeType !== "audio/webm") throw error;
    return bytes.includes("A_OPUS") ? { codec: "Opus", sampleRate: 48_000 } : {};
  }
}

function describeLoudness(loudness: Loudness | undefined): string[] {
  if (loudness === undefined) return ["Loudness: not measured, the recording is too long for the sandbox."];
  const { sparkline, intervalSeconds, averageDb, peakDb, silences, seconds } = loudness;
  const shown = silences.slice(0, 8).map(({ from, to }) => `${from.toFixed(1)}–${to.toFixed(1)} s`);
  const more = silences.length > shown.length ? ` and ${silences.length - shown.length} more` : "";
  return [
    `Loudness: ${sparkline} (one mark is ${intervalSeconds.toFixed(1)} s; average ${averageDb.toFixed(0)} dBFS, peak ${peakDb.toFixed(0)} dBFS).`,
    shown.length === 0 ? "Silence: none of half a second or more." : `Silence: ${shown.join(", ")}${more}.`,
    ...(seconds >= maxMeasuredSeconds ? [`Only the first ${maxMeasuredSeconds} s were measured.`] : []),
  ];
}

/** Decoding uses this process's own processor time, so recordings are decoded one after another. */
const queue = createKeyedQueue();

function measure(bytes: Buffer, decoder: Decoder, signal: AbortSignal): Promise<Loudness> {
  return queue.run("decode", async () => {
    const { default: decode } = await import("audio-decode");
    const meter = createLoudnessMeter();
    for await (const { channelData, sampleRate } of decode(slices(bytes, signal), decoder)) {
      meter.add(channelData, sampleRate);
      if (meter.seconds() >= maxMeasuredSeconds) break;
    }
    return meter.result();
  });
}

/** In chunks, so that other requests are served between them. */
async function* slices(bytes: Buffer, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    signal.throwIfAborted();
    yield bytes.subarray(at, at + chunkBytes);
    await yieldToEventLoop();
  }
}

function unreadable(problem: string, code: string, cause?: unknown): ApiError {
  return invalidRequest(`Invalid 'file': ${problem}.`, { param: "file", code, cause });
}
