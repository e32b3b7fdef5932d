import { Readable } from "node:stream";
import type { BilledAmounts } from "../../core/model-price.ts";
import { bytesSource } from "../../support/byte-source.ts";
import {
  createMultipartBody,
  type MultipartFields,
  type MultipartFile,
  toMultipartHead,
  toMultipartHeaders,
} from "../../support/multipart-body.ts";
import type { TranscriptionFields } from "../requests.ts";
import type { Target } from "../router.ts";
import type { Upload } from "../upload.ts";
import { tryTargets } from "./attempts.ts";
import { toAnswerHeaders, type Forwarding } from "./forward.ts";
import { readDuration, readUsage, type UpstreamUsage } from "./upstream-usage.ts";
import { parseAnswer, readAnswerText, type UpstreamRequest } from "./upstream-client.ts";
import { errorIn, toStatusFailure } from "./upstream-failure.ts";

const maxAnswerBytes = 16 * 1024 * 1024;
/** Other content types are sent as plain text, so that no browser runs an upstream's answer. */
const textTypes = /^(?:text\/(?:plain|vtt|event-stream)|application\/x-subrip)(?:; ?charset=[\w-]{1,20})?$/i;

type Form = Pick<UpstreamRequest, "headers" | "body">;

/**
 * Transcription through an upstream. A recording that was not read yet is streamed through in constant memory;
 * otherwise it is buffered until it has been answered.
 * @param most charged for what the upstream does not report
 */
export async function forwardTranscription(
  forwarding: Forwarding,
  upload: Upload,
  fields: TranscriptionFields,
  most: BilledAmounts,
): Promise<void> {
  const { exchange, log, charge } = forwarding;
  const streamed = passThrough(upload, fields);
  const toForm = streamed ?? (await buffer(upload, fields));
  const targets = streamed === undefined ? forwarding.targets : withoutRetries(forwarding.targets);

  const { target, answer, type, text, json } = await tryTargets(
    { targets, signal: exchange.signal, log, charge, isCostly: true },
    async (target) => {
      const answer = await forwarding.clientOf(target).request({
        method: "POST",
        path: "/audio/transcriptions",
        ...toForm(target),
        requestId: exchange.requestId,
        signal: exchange.signal,
      });
      const text = await readAnswerText(target.prefix, answer, maxAnswerBytes);
      const type = String(answer.headers["content-type"] ?? "application/json");
      const json = /^application\/json/i.test(type) ? parseAnswer(target.prefix, text) : undefined;
      const error = errorIn(json);
      if (error !== undefined) throw toStatusFailure(target.prefix, 502, answer.headers, error);
      return { target, answer, type, text, json };
    },
  );

  const headers = toAnswerHeaders(target, answer.headers);
  charge.settle(target, toUsage(target, json, most));
  // Subtitles and plain text are forwarded unchanged.
  if (json !== undefined) return exchange.sendJson(200, json, headers);
  const contentType = textTypes.test(type) ? type : "text/plain; charset=utf-8";
  exchange.sendBytes(200, text, { "content-type": contentType, ...headers });
}

/** What the upstream reports. The rest is the most that the recording can be: nothing is free for lack of a report. */
function toUsage(
  { model }: Target,
  json: Record<string, unknown> | undefined,
  { audioSeconds, ...tokens }: BilledAmounts,
): UpstreamUsage {
  const reported = json === undefined ? {} : { ...withDuration(readDuration(json)), ...readUsage(json) };
  if (reported.costUsd !== undefined) return reported;
  const isBilledByTime = model?.prices?.perAudioMinuteUsd !== undefined;
  if (!isBilledByTime) return { ...(model?.prices === undefined ? {} : tokens), ...reported };
  return { ...(audioSeconds === undefined ? {} : { audioSeconds }), ...reported };
}

function withDuration(audioSeconds: number | undefined): UpstreamUsage {
  return audioSeconds === undefined ? {} : { audioSeconds };
}

/** The form's beginning with the upstream's name of the model, followed by the rest of the request as it arrives. */
function passThrough(upload: Upload, fields: TranscriptionFields): ((target: Target) => Form) | undefined {
  const rest = upload.passThrough();
  if (rest === undefined) return undefined;
  return (target) => {
    const head = toMultipartHead(rest.boundary, toFields(fields, target), toFile(upload));
    return {
      headers: { ...toMultipartHeaders(rest.boundary, head.length + rest.lengthBytes) },
      body: Readable.from(join(head, rest.bytes)),
    };
  };
}

async function buffer(upload: Upload, fields: TranscriptionFields): Promise<(target: Target) => Form> {
  const source = bytesSource(await upload.readAll());
  return (target) => {
    const body = createMultipartBody(toFields(fields, target), { ...toFile(upload), source });
    return { headers: { ...body.headers }, body: Readable.from(body.read()) };
  };
}

function toFields(fields: TranscriptionFields, target: Target): MultipartFields {
  const texts = Object.entries(fields).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  return { ...Object.fromEntries(texts), model: target.upstreamModel };
}

function toFile({ fileName, mediaType }: Upload): MultipartFile {
  return { name: "file", fileName, mediaType };
}

async function* join(head: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  yield head;
  yield* rest;
}

function withoutRetries([first]: Forwarding["targets"]): Forwarding["targets"] {
  return [{ ...first, upstream: { ...first.upstream, retries: 0 } }];
}
