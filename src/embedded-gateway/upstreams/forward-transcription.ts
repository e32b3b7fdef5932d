import { Readable } from "node:stream";
import { bytesSource } from "../../support/byte-source.ts";
import {
  createMultipartBody,
  type MultipartFields,
  type MultipartFile,
  toMultipartHead,
  toMultipartHeaders,
} from "../../support/multipart-body.ts";
import { parseTranscriptionFields } from "../requests.ts";
import type { Target } from "../router.ts";
import type { Upload } from "../upload.ts";
import { tryTargets } from "./attempts.ts";
import { maxAnswerBytes, toAnswerHeaders, type Forwarding } from "./forward.ts";
import { readUsage } from "./upstream-usage.ts";
import { parseAnswer, readAnswerText, type UpstreamRequest } from "./upstream-client.ts";
import { errorIn, toStatusFailure } from "./upstream-failure.ts";

/** Larger files are streamed through while they arrive, which rules out retries and fallbacks. */
const maxBufferedBytes = 1024 * 1024;

type Form = Pick<UpstreamRequest, "headers" | "body">;

/**
 * Transcription through an upstream. A large file for a single upstream is streamed through in constant memory; a
 * small file, or one with fallbacks, is buffered until it has been answered.
 */
export async function forwardTranscription(forwarding: Forwarding, upload: Upload): Promise<void> {
  const { exchange, log } = forwarding;
  const announced = Number(exchange.request.headers["content-length"] ?? 0);
  const isStreamed = forwarding.targets.length === 1 && announced > maxBufferedBytes;
  const toForm = (isStreamed ? passThrough(upload) : undefined) ?? (await buffer(upload));
  const targets = isStreamed ? withoutRetries(forwarding.targets) : forwarding.targets;

  const { target, answer, type, text, json } = await tryTargets(
    { targets, signal: exchange.signal, log, isCostly: true },
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
  // Subtitles and plain text are forwarded unchanged.
  if (json === undefined) {
    forwarding.onUsage(target, {});
    return exchange.sendBytes(200, text, { "content-type": type, ...headers });
  }
  const seconds = Number(json["duration"]);
  forwarding.onUsage(target, {
    ...(Number.isFinite(seconds) && seconds > 0 ? { audioSeconds: seconds } : {}),
    ...readUsage(json),
  });
  exchange.sendJson(200, json, headers);
}

/** The form's beginning with the upstream's name of the model, followed by the rest of the request as it arrives. */
function passThrough(upload: Upload): ((target: Target) => Form) | undefined {
  const rest = upload.passThrough();
  if (rest === undefined) return undefined;
  return (target) => {
    const head = toMultipartHead(rest.boundary, toFields(upload, target), toFile(upload));
    return {
      headers: { ...toMultipartHeaders(rest.boundary, head.length + rest.lengthBytes) },
      body: Readable.from(join(head, rest.bytes)),
    };
  };
}

async function buffer(upload: Upload): Promise<(target: Target) => Form> {
  const source = bytesSource(await upload.readAll());
  parseTranscriptionFields(upload.fields);
  return (target) => {
    const body = createMultipartBody(toFields(upload, target), { ...toFile(upload), source });
    return { headers: { ...body.headers }, body: Readable.from(body.read()) };
  };
}

function toFields(upload: Upload, target: Target): MultipartFields {
  return { ...upload.fields, model: target.upstreamModel };
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
