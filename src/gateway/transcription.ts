import { ParleyError } from "../core/errors.ts";
import type { TimedWords, TranscriptionAnswer, TranscriptionRequest } from "../core/gateway.ts";
import { type ByteSource, bytesSource } from "../support/byte-source.ts";
import { createMultipartBody } from "../support/multipart-body.ts";
import { AttemptError } from "./attempt-error.ts";
import { type GatewayContext, runCall } from "./call.ts";
import { checkRequest } from "./check-request.ts";
import { readUsage } from "./completion-chunk.ts";
import { badAnswer, readAnswerBody } from "./read-answer-body.ts";
import { isFields } from "./error-body.ts";
import { transcriptionSchema } from "./schemas.ts";
import { toUsage } from "./usage.ts";
import type { AttemptTimeouts } from "./attempt-timeouts.ts";

/** A transcription whose audio is read while it is sent, in constant memory. */
export type StreamedTranscriptionRequest = Omit<TranscriptionRequest, "bytes"> & {
  readonly source: ByteSource;
};

/** Context of the transcription operation. */
export interface TranscriptionContext extends GatewayContext {
  readonly fallbacks: readonly string[];
}

/** Nothing is sent back before a long recording is uploaded and recognised. */
const firstEventFactor = 4;
const maxAnswerBytes = 16 * 1024 * 1024;
/** Four hours of segments of a second and a half. */
const maxSegments = 10_000;

/** The transcription operation of a client. The audio is read again for each attempt. */
export function createTranscription(
  context: TranscriptionContext,
): (
  request: TranscriptionRequest | StreamedTranscriptionRequest,
  signal: AbortSignal,
) => Promise<TranscriptionAnswer> {
  const attempt = async (
    request: TranscriptionRequest | StreamedTranscriptionRequest,
    model: string,
    timeouts: AttemptTimeouts,
    signal: AbortSignal,
  ) => {
    const { scrub } = context;
    const { fileName, mediaType, language, hint } = request;
    const source = "source" in request ? request.source : bytesSource(request.bytes);
    const body = createMultipartBody(
      { model, language, prompt: hint },
      { name: "file", fileName, mediaType, source },
    );
    const response = await context.transport.send(
      {
        operation: "transcription",
        model,
        method: "POST",
        path: "/audio/transcriptions",
        headers: { ...body.headers, accept: "application/json" },
        body: body.read(),
      },
      timeouts,
      signal,
    );
    const answer = await readAnswerBody(response, {
      operation: "transcription",
      model,
      timeouts,
      callerSignal: signal,
      scrub,
      maxBytes: maxAnswerBytes,
    });
    const value = answer.kind === "text" ? { text: answer.text } : withText(answer.value);
    const parsed = transcriptionSchema.safeParse(value);
    if (!parsed.success)
      throw badAnswer({ operation: "transcription", model, scrub }, response.status, "no transcription", "");
    if (parsed.data.text.trim() === "")
      throw new AttemptError(
        new ParleyError("gateway-empty-answer", "transcription failed: no words", { detail: { model } }),
        "never",
      );
    return parsed.data;
  };

  return async (request, signal) => {
    const sizeBytes = "source" in request ? request.source.sizeBytes : request.bytes.length;
    checkRequest("transcription", request.model, [[sizeBytes > 0, "file", "not empty"]]);
    const { value, model, notices } = await runCall(
      context,
      {
        operation: "transcription",
        model: request.model,
        fallbacks: context.fallbacks,
        signal,
        firstEventFactor,
      },
      (model, timeouts) => attempt(request, model, timeouts, signal).finally(() => timeouts.dispose()),
    );
    context.catalogue.learn(model, { transcribes: true });
    const reportedSeconds = value.duration ?? value.usage?.seconds;
    const measuredSeconds = request.durationMs === undefined ? undefined : request.durationMs / 1000;
    const usage = toUsage({
      reported: readUsage(value.usage),
      estimated:
        reportedSeconds === undefined && measuredSeconds !== undefined
          ? { audioSeconds: measuredSeconds }
          : {},
      ...(reportedSeconds !== undefined && { counted: { audioSeconds: reportedSeconds } }),
      price: context.catalogue.priceOf(model),
    });
    const { text, language } = value;
    const timed = timedWordsOf(value["segments"]);
    return {
      text: text.trim(),
      ...(timed.length > 0 && { timed }),
      model,
      ...(model !== request.model && { fallback: model }),
      ...(language !== undefined && { language }),
      usage,
      notices,
    };
  };
}

/** Segments that have a time and words; the others are left out. */
function timedWordsOf(segments: unknown): TimedWords[] {
  if (!Array.isArray(segments)) return [];
  return (segments as unknown[]).slice(0, maxSegments).flatMap((segment) => {
    if (!isFields(segment)) return [];
    const { start, text } = segment;
    if (typeof start !== "number" || !(start >= 0) || typeof text !== "string" || text.trim() === "")
      return [];
    return [{ fromSeconds: start, text: text.trim() }];
  });
}

/** Some services send only segments. */
function withText(value: unknown): unknown {
  if (!isFields(value) || typeof value["text"] === "string" || !Array.isArray(value["segments"]))
    return value;
  const parts = (value["segments"] as unknown[]).map((segment) =>
    isFields(segment) ? segment["text"] : undefined,
  );
  return { ...value, text: parts.filter((part) => typeof part === "string").join("") };
}
