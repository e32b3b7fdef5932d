import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { parseTranscriptionFields } from "../requests.ts";
import type { Target } from "../router.ts";
import type { Upload } from "../upload.ts";
import { tryTargets } from "./attempts.ts";
import { maxAnswerBytes, toAnswerHeaders, type Forwarding } from "./forward.ts";
import { readUsage } from "./spent.ts";
import { parseAnswer, readAnswerText, type UpstreamRequest } from "./upstream-client.ts";
import { errorIn, toStatusFailure } from "./upstream-failure.ts";

/** Larger files are passed on as they come, and so only once. */
const maxKeptBytes = 1024 * 1024;

type Form = Pick<UpstreamRequest, "headers" | "body">;

/**
 * Transcription through an upstream. A large file goes to a single upstream as it arrives, in constant memory; a
 * small one, or one with fallbacks, is kept until it has been answered.
 */
export async function forwardTranscription(forwarding: Forwarding, upload: Upload): Promise<void> {
  const { exchange, log } = forwarding;
  const announced = Number(exchange.request.headers["content-length"] ?? 0);
  const isPassedOn = forwarding.targets.length === 1 && announced > maxKeptBytes;
  const toForm = (isPassedOn ? passOn(upload) : undefined) ?? (await keep(upload));
  const targets = isPassedOn ? withoutRetries(forwarding.targets) : forwarding.targets;

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
  // Subtitles and bare text are passed on as they are.
  if (json === undefined) {
    forwarding.onSpent(target, {});
    return exchange.sendBytes(200, text, { "content-type": type, ...headers });
  }
  const seconds = Number(json["duration"]);
  forwarding.onSpent(target, {
    ...(Number.isFinite(seconds) && seconds > 0 ? { audioSeconds: seconds } : {}),
    ...readUsage(json),
  });
  exchange.sendJson(200, json, headers);
}

/** The form's head anew, with the upstream's name of the model; the rest of the request behind it untouched. */
function passOn(upload: Upload): ((target: Target) => Form) | undefined {
  const rest = upload.passOn();
  if (rest === undefined) return undefined;
  return (target) => {
    const head = writeHead(upload, target, rest.boundary);
    return {
      headers: toHeaders(rest.boundary, head.length + rest.lengthBytes),
      body: Readable.from(join(head, rest.bytes)),
    };
  };
}

async function keep(upload: Upload): Promise<(target: Target) => Form> {
  const bytes = await upload.readAll();
  parseTranscriptionFields(upload.fields);
  const boundary = `parley${randomBytes(16).toString("hex")}`;
  return (target) => {
    const body = Buffer.concat([
      writeHead(upload, target, boundary),
      bytes,
      Buffer.from(`\r\n--${boundary}--\r\n`),
    ]);
    return { headers: toHeaders(boundary, body.length), body };
  };
}

function toHeaders(boundary: string, lengthBytes: number): Record<string, string> {
  return {
    "content-type": `multipart/form-data; boundary=${boundary}`,
    "content-length": String(lengthBytes),
  };
}

async function* join(head: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  yield head;
  yield* rest;
}

/** All that comes before the file's bytes. */
function writeHead(upload: Upload, target: Target, boundary: string): Buffer {
  const fields = Object.entries({ ...upload.fields, model: target.upstreamModel }).map(
    ([name, value]) =>
      `--${boundary}\r\ncontent-disposition: form-data; name="${escapeName(name)}"\r\n\r\n${value}\r\n`,
  );
  const mediaType = /^[\w.+/-]+$/.test(upload.mediaType) ? upload.mediaType : "application/octet-stream";
  const file =
    `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${escapeName(upload.fileName)}"\r\n` +
    `content-type: ${mediaType}\r\n\r\n`;
  return Buffer.from(fields.join("") + file);
}

function escapeName(name: string): string {
  return name.replaceAll(/[\r\n]/g, " ").replaceAll('"', "%22");
}

function withoutRetries([first]: Forwarding["targets"]): Forwarding["targets"] {
  return [{ ...first, upstream: { ...first.upstream, retries: 0 } }];
}
