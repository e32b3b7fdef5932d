import type { Clock } from "../../core/clock.ts";
import { toNotice } from "../../core/error-messages.ts";
import { isParleyError, isRefusal, isWorthRetrying, ParleyError } from "../../core/errors.ts";
import type { IncomingEvent } from "../../core/events.ts";
import type { TimedWords, TranscriptionAnswer, TranscriptionRequest } from "../../core/gateway.ts";
import type { Reply, ReplyFile } from "../../core/reply.ts";
import type { Conversations, StoredMessage } from "../../core/storage.ts";
import { type RecordingPart, halveWav } from "../../media/recordings/cut-into-parts.ts";
import { cutLimits, cutRecording, type CutOutcome } from "../../media/recordings/cut-recording.ts";
import { isSparse } from "../../media/recordings/longest-audio.ts";
import { currentLanguage, inLanguage, translate } from "../../words/translate.ts";
import { oneLine, toQuotedLines } from "../../core/quoting.ts";
import { messageIds } from "../../core/message-ids.ts";
import { textOf } from "./stored-messages.ts";
import { toClock, toShownTranscript } from "./transcript.ts";
import type { TurnDependencies } from "./turn.ts";

export interface DownloadedRecording {
  readonly bytes: Uint8Array;
  readonly name: string;
  /** The name for the gateway, with the extension of the sniffed container. */
  readonly fileName: string;
  readonly mediaType: string;
  readonly container: string;
  /** The length that the platform claims, which is not trusted. */
  readonly durationMs: number | undefined;
}

interface RecordingTranscriber {
  transcribe(request: Omit<TranscriptionRequest, "model">): Promise<Transcription>;
  /** Words from the person that guide the recognition. */
  readonly hint?: string | undefined;
  /** The person who waits in turn for long recordings. */
  readonly key: string;
  status(text: string, options?: { readonly isLong?: boolean }): void;
  readonly clock: Clock;
  /** Cuts long recordings. Default: {@link cutRecording}. */
  readonly cut?: typeof cutRecording;
}

interface TranscribedRecording {
  readonly text: string;
  /** The same words with their times, if these are known. */
  readonly timed: readonly TimedWords[];
  readonly notices: readonly string[];
  readonly answers: readonly Transcription[];
}

/** A shorter recording of unknown length is not measured. It has 20 minutes at 8 kbit/s. */
const surelyShortBytes = 1_200_000;
/** The size of compressed speech. A recording that can be longer for its size is never sent whole. */
const minSpeechBytesPerSecond = 750;
const alwaysCut = { ...cutLimits, wholeSeconds: 0, wholeBytes: 0 };
/** How many characters of a part's last words guide the next part. */
const maxHintChars = 200;
const retryAfterMs = 1000;
const maxRetryAfterMs = 15_000;
/** A smaller part that is refused as too large is not halved. */
const minPartBytes = 500_000;

/**
 * Transcribes a recording, as a whole if the gateway accepts it. Otherwise it is cut where it is quiet, and
 * the parts are transcribed one by one. A part that fails is retried once and then left out, with a notice
 * and a mark in the text.
 * @throws ParleyError `gateway-…` if there are no words at all, and what the admission of a call throws, or
 * the signal's reason
 */
export async function transcribeRecording(
  recording: DownloadedRecording,
  transcriber: RecordingTranscriber,
  signal: AbortSignal,
): Promise<TranscribedRecording> {
  const progress = showProgress(transcriber);
  try {
    return await transcribeShown(recording, { ...transcriber, status: progress.status }, signal);
  } finally {
    progress.stop();
  }
}

/** How often people see that a recording is still being transcribed, in milliseconds. */
const progressMs = 10_000;

/** Shows the last words on a step again and again, with the time that the recording has taken so far. */
function showProgress({ status, clock }: Pick<RecordingTranscriber, "status" | "clock">) {
  const language = currentLanguage();
  const startedAt = clock.monotonic();
  let shown = "";
  const stop = clock.every(progressMs, () => {
    const time = toClock((clock.monotonic() - startedAt) / 1000);
    inLanguage(language, () => status(`${shown} (${time})`, { isLong: true }));
  });
  return {
    status: (text: string, options?: { readonly isLong?: boolean }): void => {
      shown = text;
      status(text, options);
    },
    stop,
  };
}

async function transcribeShown(
  recording: DownloadedRecording,
  transcriber: RecordingTranscriber,
  signal: AbortSignal,
): Promise<TranscribedRecording> {
  const { bytes, name, durationMs } = recording;
  transcriber.status(translate("status.listening", { name: oneLine(name) }));
  // Its size does not show its length, so it is paid for in parts of known length.
  if (isSparse(bytes, minSpeechBytesPerSecond))
    return await inParts(recording, transcriber, alwaysCut, signal, cannotCut(recording));
  const isLong = bytes.length > cutLimits.wholeBytes || (durationMs ?? 0) > cutLimits.wholeSeconds * 1000;
  const isShort = !isLong && (durationMs !== undefined || bytes.length <= surelyShortBytes);
  if (isShort) return await wholeOrParts(recording, transcriber, signal);
  return await inParts(recording, transcriber, cutLimits, signal);
}

/** Sends the whole recording, or parts in WAV if the gateway refuses its size or its format. */
async function wholeOrParts(
  recording: DownloadedRecording,
  transcriber: RecordingTranscriber,
  signal: AbortSignal,
): Promise<TranscribedRecording> {
  const { bytes, fileName, mediaType, durationMs } = recording;
  const { hint } = transcriber;
  try {
    const answer = await transcriber.transcribe({
      bytes,
      fileName,
      mediaType,
      ...(durationMs === undefined ? {} : { durationMs }),
      ...(hint === undefined ? {} : { hint }),
    });
    return { text: answer.text, timed: answer.timed ?? [], notices: answer.notices, answers: [answer] };
  } catch (error) {
    signal.throwIfAborted();
    if (isTooLarge(error))
      return await inParts(recording, transcriber, alwaysCut, signal, cannotCut(recording, error));
    if (recording.container === "wav" || !mayRefuseFormat(error)) throw error;
    return await inParts(recording, transcriber, alwaysCut, signal, error);
  }
}

type Limits = { readonly [name in keyof typeof cutLimits]: number };

/** @param refusal says why it cannot be sent as a whole */
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
  // Its memory is a message's own buffer, so the worker gets a copy.
  const input = { bytes: bytes as Uint8Array<ArrayBuffer>, mediaType, container, ...limits };
  const outcome = await cut(input, key, (part) => joined.add(part, signal), signal);
  if (outcome.kind === "whole") {
    return await wholeOrParts({ ...recording, durationMs: outcome.seconds * 1000 }, transcriber, signal);
  }
  if (outcome.kind !== "cut" && joined.isEmpty()) {
    if (refusal !== undefined) throw refusal;
    // The gateway may accept a format that cannot be cut here.
    return await wholeOrParts(recording, transcriber, signal);
  }
  return joined.result(leftOutNotices(name, outcome));
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

/** Transcribes parts one by one and joins their words. */
function createJoinedParts(name: string, transcriber: RecordingTranscriber) {
  const texts: string[] = [];
  const timed: TimedWords[] = [];
  const notices: string[] = [];
  const answers: Transcription[] = [];
  let lastWords = "";
  let lastError: unknown;
  /** A refusal, such as for a spent budget, also holds for the parts after it. */
  let isRefused = false;

  function hintFor(): string | undefined {
    const hint = [transcriber.hint ?? "", lastWords].filter((words) => words !== "").join(" ");
    return hint === "" ? undefined : hint;
  }

  /** Transcribes a part, in halves if the gateway says that it is too large. */
  async function transcribe(
    bytes: Uint8Array,
    seconds: number,
    signal: AbortSignal,
  ): Promise<Transcription[]> {
    const hint = hintFor();
    const request = { bytes, fileName: "part.wav", mediaType: "audio/wav", durationMs: seconds * 1000 };
    try {
      return [await transcriber.transcribe({ ...request, ...(hint === undefined ? {} : { hint }) })];
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
          timed.push(...later(own, part.fromSeconds));
          for (const notice of answer.notices) if (!notices.includes(notice)) notices.push(notice);
          lastWords = answer.text.slice(-maxHintChars).replace(/^\S*\s/, "");
        }
      } catch (error) {
        signal.throwIfAborted();
        // The store cannot count anything, so the turn ends and runs again.
        if (!isParleyError(error) || error.code === "store-unavailable") throw error;
        leaveOut(part, error);
      }
    },
    /** @throws the failure of the last part if there are no words at all */
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
  return { ...answer, timed: later(timed, bySeconds) };
}

function later(timed: readonly TimedWords[], bySeconds: number): readonly TimedWords[] {
  return timed.map(({ text, fromSeconds, toSeconds }) => ({
    text,
    fromSeconds: fromSeconds + bySeconds,
    ...(toSeconds === undefined ? {} : { toSeconds: toSeconds + bySeconds }),
  }));
}

function partStatus({ number, count }: RecordingPart, step?: "again"): string {
  const part = String(number);
  if (count === undefined)
    return translate(step === undefined ? "status.part" : "status.part-again", { part });
  const numbers = { part, count: String(count) };
  return translate(step === undefined ? "status.part-of" : "status.part-of-again", numbers);
}

/** Gateways report this by status 413 or in words. */
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

/** Servers that decode only some formats say so in many words, some of them as a failure of their own. */
function mayRefuseFormat(error: unknown): boolean {
  if (!isParleyError(error)) return false;
  const { status, gatewayMessage = "" } = error.detail;
  switch (error.code) {
    case "gateway-bad-request":
    case "gateway-unsupported":
      return status === 400 || status === 415 || status === 422;
    case "gateway-error":
      return /format|codec|decod|\bwav\b|unsupported|not support|cannot read|invalid (?:file|data|audio)/i.test(
        String(gatewayMessage),
      );
    default:
      return false;
  }
}

/** The words of a recording. `asked` is the model that was asked. */
interface Transcription extends TranscriptionAnswer {
  readonly asked: string;
}

/**
 * Transcribes a recording with the requested model or the default one.
 * @throws ParleyError `gateway-…`
 */
export async function transcribe(
  dependencies: Pick<TurnDependencies, "gateway" | "models">,
  request: Omit<TranscriptionRequest, "model">,
  model: string | undefined,
  signal: AbortSignal,
): Promise<Transcription> {
  const chosen = await dependencies.models.choose("transcription", model, signal);
  const answer = await dependencies.gateway.transcribe({ ...request, model: chosen }, signal);
  return { ...answer, asked: chosen };
}

/** A transcript before the answer to it, in Markdown. */
export function toQuotedTranscript(text: string): string {
  return toQuotedLines(translate("transcript.quoted", { text }));
}

/** Shows the files. If the platform refuses one, the answer does not fail, and the notices say so. */
export async function attachTranscripts(
  reply: Pick<Reply, "attach">,
  files: readonly ReplyFile[],
  signal: AbortSignal,
): Promise<string[]> {
  const results = await Promise.allSettled(files.map((file) => reply.attach(file)));
  signal.throwIfAborted();
  return results.flatMap((result, index) =>
    result.status === "fulfilled"
      ? []
      : [
          translate("transcript.file-failed", {
            file: files[index]?.name ?? "",
            why: toNotice(result.reason),
          }),
        ],
  );
}

/**
 * Makes again from the store what the reply to these events quotes before its answer: the words of voice
 * notes, and a command's question if people do not see it otherwise. It is empty if nothing is quoted.
 */
export async function findShownLead(
  conversations: Pick<Conversations, "find">,
  conversationId: string,
  events: readonly IncomingEvent[],
): Promise<string> {
  const quoted = await Promise.all(
    events.map(async (event) => {
      const question = await conversations.find(conversationId, messageIds.user(event.key));
      return question === undefined
        ? []
        : [quotedQuestion(event, question), await quotedVoices(event, question)];
    }),
  );
  return quoted
    .flat()
    .filter((part) => part !== "")
    .join("\n\n");
}

function quotedQuestion(event: IncomingEvent, { parts, call }: StoredMessage): string {
  if (event.kind === "message" || event.isInputVisible === true) return "";
  const prompt = call?.options["prompt"];
  if (typeof prompt === "string") return toQuotedLines(prompt);
  const text = textOf(parts.filter(({ kind }) => kind === "text"));
  // A question that is stored as the command itself is not quoted in the reply.
  return text === "" || text.startsWith(`/${event.name}`) ? "" : toQuotedLines(text);
}

async function quotedVoices(event: IncomingEvent, { parts }: StoredMessage): Promise<string> {
  // The words are the answer itself.
  if (event.kind === "call" && event.name === "transcribe") return "";
  const shown = await Promise.all(parts.filter((part) => part.kind === "voice").map(toShownTranscript));
  return shown.map(({ text }) => toQuotedTranscript(text)).join("\n\n");
}
