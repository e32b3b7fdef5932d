import type { Clock } from "../../core/clock.ts";
import { isWorthRetrying, toNotice } from "../../core/error-messages.ts";
import { isParleyError, isRefusal, ParleyError } from "../../core/errors.ts";
import type { TimedWords, TranscriptionRequest } from "../../core/gateway.ts";
import { cutLimits, cutRecording, type CutOutcome } from "../../media/recordings/cut-recording.ts";
import type { RecordingPart } from "../../media/recordings/cut-into-parts.ts";
import { isSparse } from "../../media/recordings/longest-audio.ts";
import { halveWav } from "../../media/recordings/wav.ts";
import { translate } from "../../words/translate.ts";
import { toClock } from "./transcript-file.ts";
import type { Transcription } from "./transcribe.ts";

/** A recording that was downloaded. */
export interface DownloadedRecording {
  readonly bytes: Uint8Array;
  readonly name: string;
  /** For the gateway: with the extension of the sniffed container. */
  readonly fileName: string;
  readonly mediaType: string;
  readonly container: string;
  /** As the platform says. Not trusted. */
  readonly durationMs: number | undefined;
}

/** What a recording is transcribed with. */
export interface RecordingTranscriber {
  transcribe(request: Omit<TranscriptionRequest, "model">, signal: AbortSignal): Promise<Transcription>;
  /** The words that guide the recognition, as the person gave them. */
  readonly hint?: string | undefined;
  /** Who waits in turn for long recordings. */
  readonly key: string;
  status(text: string, options?: { readonly isLong?: boolean }): void;
  readonly clock: Clock;
  /** Cuts long recordings. Default: {@link cutRecording}. */
  readonly cut?: typeof cutRecording;
}

/** The words of a recording. */
export interface TranscribedRecording {
  readonly text: string;
  /** The same words with their times, where they are known. */
  readonly timed: readonly TimedWords[];
  readonly notices: readonly string[];
  readonly answers: readonly Transcription[];
}

/** A shorter recording of unknown length is not measured: 20 minutes at 8 kbit/s. */
const surelyShortBytes = 1_200_000;
/** Of compressed speech. What can be longer for its size is never sent whole. */
const minSpeechBytesPerSecond = 750;
const alwaysCut = { ...cutLimits, wholeSeconds: 0, wholeBytes: 0 };
/** Words of the part before that guide the next one, in characters. */
const maxHintChars = 200;
const retryAfterMs = 1000;
const maxRetryAfterMs = 15_000;
/** A part that is still refused as too large is not halved further. */
const minPartBytes = 500_000;

/**
 * Transcribes a recording: whole where the gateway takes it, otherwise in parts that are cut where it is quiet, one after
 * another. A part that fails is tried once more, then left out, with a notice and a mark in the text.
 * @throws ParleyError `gateway-…` when there are no words at all, and what the admission of a call throws; the signal's
 *   reason
 */
export async function transcribeRecording(
  recording: DownloadedRecording,
  transcriber: RecordingTranscriber,
  signal: AbortSignal,
): Promise<TranscribedRecording> {
  const { bytes, name, durationMs } = recording;
  transcriber.status(translate("status.listening", { name }));
  // Its bytes say nothing of its length: parts of a known length are paid for one by one.
  if (isSparse(bytes.length, bytes, minSpeechBytesPerSecond))
    return await inParts(recording, transcriber, alwaysCut, signal, cannotCut(recording));
  const isLong = bytes.length > cutLimits.wholeBytes || (durationMs ?? 0) > cutLimits.wholeSeconds * 1000;
  const isShort = !isLong && (durationMs !== undefined || bytes.length <= surelyShortBytes);
  if (isShort) return await wholeOrParts(recording, transcriber, signal);
  return await inParts(recording, transcriber, cutLimits, signal);
}

/** Whole; in parts, when the gateway says that it is too large. */
async function wholeOrParts(
  recording: DownloadedRecording,
  transcriber: RecordingTranscriber,
  signal: AbortSignal,
): Promise<TranscribedRecording> {
  const { bytes, fileName, mediaType, durationMs } = recording;
  const { hint } = transcriber;
  try {
    const answer = await transcriber.transcribe(
      {
        bytes,
        fileName,
        mediaType,
        ...(durationMs === undefined ? {} : { durationMs }),
        ...(hint === undefined ? {} : { hint }),
      },
      signal,
    );
    return { text: answer.text, timed: answer.timed ?? [], notices: answer.notices, answers: [answer] };
  } catch (error) {
    signal.throwIfAborted();
    if (!isTooLarge(error)) throw error;
    return await inParts(recording, transcriber, alwaysCut, signal, error);
  }
}

type Limits = { readonly [name in keyof typeof cutLimits]: number };

/** @param refusal why it cannot be sent whole */
async function inParts(
  recording: DownloadedRecording,
  transcriber: RecordingTranscriber,
  limits: Limits,
  signal: AbortSignal,
  refusal?: unknown,
): Promise<TranscribedRecording> {
  const { bytes, mediaType, container, name } = recording;
  const { cut = cutRecording, key } = transcriber;
  const joined = createJoinedParts(name, transcriber);
  // Its memory is a message's own buffer: the worker gets a copy.
  const input = { bytes: bytes as Uint8Array<ArrayBuffer>, mediaType, container, ...limits };
  const outcome = await cut(input, key, (part) => joined.add(part, signal), signal);
  if (outcome.kind === "whole") {
    return await wholeOrParts({ ...recording, durationMs: outcome.seconds * 1000 }, transcriber, signal);
  }
  if (outcome.kind !== "cut" && joined.isEmpty()) {
    if (refusal !== undefined) throw refusal;
    // A format that cannot be cut here may still be one that the gateway takes.
    return await wholeWithout(recording, transcriber, signal);
  }
  return joined.result(leftOutNotices(name, outcome));
}

async function wholeWithout(
  recording: DownloadedRecording,
  transcriber: RecordingTranscriber,
  signal: AbortSignal,
): Promise<TranscribedRecording> {
  try {
    return await wholeOrParts(recording, transcriber, signal);
  } catch (error) {
    if (!isTooLarge(error)) throw error;
    throw cannotCut(recording, error);
  }
}

function cannotCut({ name }: DownloadedRecording, cause?: unknown): ParleyError {
  return new ParleyError("attachment-unreadable", "a recording that cannot be sent whole cannot be cut", {
    detail: { name, problem: translate("recording.cannot-cut") },
    ...(cause === undefined ? {} : { cause }),
  });
}

function leftOutNotices(name: string, outcome: CutOutcome): string[] {
  if (outcome.kind === "cut") {
    return outcome.leftOutFrom === undefined
      ? []
      : [translate("recording.left-out", { name, time: toClock(outcome.leftOutFrom) })];
  }
  return [translate("recording.rest-unread", { name })];
}

/** Transcribes parts one after another and joins their words. */
function createJoinedParts(name: string, transcriber: RecordingTranscriber) {
  const texts: string[] = [];
  const timed: TimedWords[] = [];
  const notices: string[] = [];
  const answers: Transcription[] = [];
  let lastWords = "";
  let lastError: unknown;
  /** A refusal (a budget is spent) holds for the parts after it. */
  let isRefused = false;

  function hintFor(): string | undefined {
    const hint = [transcriber.hint ?? "", lastWords].filter((words) => words !== "").join(" ");
    return hint === "" ? undefined : hint;
  }

  /** One part; in halves, when the gateway says that it is too large. */
  async function transcribe(
    bytes: Uint8Array,
    seconds: number,
    signal: AbortSignal,
  ): Promise<Transcription[]> {
    const hint = hintFor();
    const request = { bytes, fileName: "part.wav", mediaType: "audio/wav", durationMs: seconds * 1000 };
    try {
      return [await transcriber.transcribe({ ...request, ...(hint === undefined ? {} : { hint }) }, signal)];
    } catch (error) {
      signal.throwIfAborted();
      if (!isTooLarge(error) || bytes.length < minPartBytes) throw error;
      const [first, second] = halveWav(bytes);
      const before = await transcribe(first, seconds / 2, signal);
      const after = await transcribe(second, seconds / 2, signal);
      return [...before, ...after.map((answer) => moved(answer, seconds / 2))];
    }
  }

  async function tryTwice(part: RecordingPart, signal: AbortSignal): Promise<Transcription[]> {
    try {
      return await transcribe(part.bytes, part.seconds, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (isParleyError(error, "gateway-empty-answer")) return [];
      if (!isWorthRetrying(error) || isRefusal(error)) throw error;
      transcriber.status(partStatus(part, "again"), { isLong: true });
      const waitMs = Math.min(maxRetryAfterMs, (error as ParleyError).retryAfterMs ?? retryAfterMs);
      await transcriber.clock.sleep(waitMs, signal);
      return await transcribe(part.bytes, part.seconds, signal);
    }
  }

  function leaveOut(part: RecordingPart, error: unknown): void {
    lastError = error;
    isRefused ||= isRefusal(error);
    const span = { from: toClock(part.fromSeconds), to: toClock(part.fromSeconds + part.seconds) };
    const gap = translate("recording.gap", span);
    texts.push(gap);
    timed.push({ fromSeconds: part.fromSeconds, text: gap });
    notices.push(translate("recording.part-failed", { ...span, name, why: toNotice(error) }));
  }

  return {
    isEmpty: () => answers.length === 0,
    async add(part: RecordingPart, signal: AbortSignal): Promise<void> {
      if (isRefused) {
        leaveOut(part, lastError);
        return;
      }
      transcriber.status(partStatus(part), { isLong: true });
      try {
        for (const answer of await tryTwice(part, signal)) {
          answers.push(answer);
          texts.push(answer.text);
          const own = answer.timed ?? [{ fromSeconds: 0, text: answer.text }];
          timed.push(
            ...own.map((words) => ({ ...words, fromSeconds: words.fromSeconds + part.fromSeconds })),
          );
          for (const notice of answer.notices) if (!notices.includes(notice)) notices.push(notice);
          lastWords = answer.text.slice(-maxHintChars).replace(/^\S*\s/, "");
        }
      } catch (error) {
        signal.throwIfAborted();
        // The store says that nothing can be counted: the turn ends, and runs again.
        if (!isParleyError(error) || error.code === "store-unavailable") throw error;
        leaveOut(part, error);
      }
    },
    /** @throws what the last part failed with, when there are no words at all */
    result(further: readonly string[]): TranscribedRecording {
      if (answers.length === 0) {
        throw (
          lastError ?? new ParleyError("gateway-empty-answer", "transcription failed: no words in any part")
        );
      }
      return { text: texts.join("\n\n"), timed, notices: [...notices, ...further], answers };
    },
  };
}

function moved(answer: Transcription, bySeconds: number): Transcription {
  const timed = answer.timed ?? [{ fromSeconds: 0, text: answer.text }];
  return {
    ...answer,
    timed: timed.map((words) => ({ ...words, fromSeconds: words.fromSeconds + bySeconds })),
  };
}

function partStatus({ number, count }: RecordingPart, step?: "again"): string {
  const part = String(number);
  if (count === undefined)
    return translate(step === undefined ? "status.part" : "status.part-again", { part });
  const numbers = { part, count: String(count) };
  return translate(step === undefined ? "status.part-of" : "status.part-of-again", numbers);
}

/** Gateways say it by status 413 or in words. */
function isTooLarge(error: unknown): boolean {
  if (!isParleyError(error)) return false;
  if (error.code === "gateway-context-length") return true;
  if (error.code !== "gateway-bad-request") return false;
  const said = String(error.detail["gatewayMessage"] ?? "");
  return (
    error.detail["status"] === 413 ||
    /too (?:large|long|big)|(?:size|length|duration).{0,40}(?:exceed|limit|maximum)|(?:exceed|maximum).{0,40}(?:size|length|duration)/i.test(
      said,
    )
  );
}
