import type { IncomingMessage } from "node:http";
import { Busboy, type BusboyEvents } from "@fastify/busboy";
import { invalidRequest, clip, tooLarge, ApiError } from "./api-error.ts";
import type { Clock } from "../core/clock.ts";
import { createByteCollector, createByteLimit } from "../support/byte-collector.ts";
import { createFairSemaphore, type Release } from "../support/queues.ts";
import { announcesMoreThan, contentTypeOf, readJsonBody } from "../support/http/body.ts";

/** The form of a transcription request. */
export interface Upload {
  readonly fields: Readonly<Record<string, string>>;
  readonly fileName: string;
  readonly mediaType: string;
  readonly bytes: Buffer;
}

const maxFieldBytes = 64 * 1024;
const maxHeaderBytes = 16 * 1024;
const maxParts = 64;
/** The allowance for the form around the file. */
const maxFormBytes = 1024 * 1024;

/**
 * Reads a multipart request.
 * @throws ApiError 415, 413, 400 (no file, an empty file, a field that is there twice, a malformed body)
 */
export async function readUpload(request: IncomingMessage, maxFileBytes: number): Promise<Upload> {
  expectContentType(request, "multipart/form-data");
  expectLength(request, maxFileBytes + maxFormBytes);
  const chunks = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  return readForm(chunks, request.headers["content-type"] ?? "", maxFileBytes);
}

/** Reads a form. @throws ApiError as {@link readUpload} */
export async function readForm(
  chunks: AsyncIterable<Buffer>,
  contentType: string,
  maxFileBytes: number,
): Promise<Upload> {
  const parser = new Busboy({
    headers: { "content-type": `multipart/form-data; boundary="${boundaryOf(contentType)}"` },
    isPartAFile: (_name, _type, fileName) => fileName !== undefined,
    limits: { fieldSize: maxFieldBytes, fileSize: maxFileBytes, parts: maxParts, headerSize: maxHeaderBytes },
  });
  const fields: Record<string, string> = {};
  let file: Pick<Upload, "fileName" | "mediaType"> | undefined;
  const content = createByteCollector(maxFileBytes);
  const finished = Promise.withResolvers<undefined>();
  /** Ends the wait for the parser to take a piece. */
  let goOn: (() => void) | undefined;
  let isFinished = false;
  const finish = (): void => {
    isFinished = true;
    finished.resolve(undefined);
    goOn?.();
  };
  let isBroken = false;
  let failure: Error | undefined;
  const fail = (error: Error): void => void (failure ??= error);

  const onField: BusboyEvents["field"] = (fieldName, value, _isNameCut, isCut) => {
    // The types say that there is always a name.
    const name = fieldName as string | undefined;
    if (name === undefined) return fail(malformed("a part has no name"));
    // The gateway and an upstream could each take another one of two.
    if (Object.hasOwn(fields, name) || name === "__proto__") return fail(duplicate(name));
    if (isCut) return fail(tooLarge(`The field '${clip(name)}'`, maxFieldBytes, clip(name)));
    fields[name] = value;
  };
  const onFile: BusboyEvents["file"] = (name, stream, fileName, _encoding, mediaType) => {
    // The parser reports it too.
    stream.on("error", () => {});
    if (name !== "file" || file !== undefined) {
      stream.resume();
      return fail(name === "file" ? secondFile() : duplicate(name));
    }
    file = {
      fileName: fileName === "" ? "audio" : fileName.replaceAll("%22", '"'),
      // This is the parser's own default, which no recording is.
      mediaType: mediaType === "text/plain" ? "application/octet-stream" : mediaType,
    };
    const failTooLarge = (): void => fail(tooLarge("The audio file", maxFileBytes, "file"));
    stream.on("limit", failTooLarge);
    stream.on("data", (piece: Buffer) => {
      if (!content.add(piece)) failTooLarge();
    });
  };
  parser.on("field", onField);
  parser.on("file", onFile);
  parser.on("partsLimit", () => fail(malformed(`it has more than ${maxParts} parts`)));
  parser.on("finish", finish);
  parser.on("error", () => {
    isBroken = true;
    // A field that was too long is reported only after this.
    setImmediate(finish);
  });

  const received = createByteLimit(maxFileBytes + maxFormBytes);
  for await (const chunk of chunks) {
    if (!received.take(chunk)) fail(tooLarge("The request body", maxFileBytes + maxFormBytes));
    if (failure !== undefined) throw failure;
    await new Promise<void>((resolve) => {
      goOn = resolve;
      parser.write(chunk, () => resolve());
      // It takes nothing more.
      if (isFinished) resolve();
    });
  }
  parser.end();
  await finished.promise;
  if (isBroken) fail(malformed("it does not follow the format, or ends before its closing boundary"));
  if (failure !== undefined) throw failure;
  if (file === undefined)
    throw Object.keys(fields).length > 0 ? missingFile() : malformed("it has no part with a name");
  if (content.bytes() === 0)
    throw invalidRequest("Invalid 'file': the audio file is empty.", { param: "file", code: "empty_file" });
  return { fields, ...file, bytes: content.take() };
}

/** Finds the boundary. Node's `MIMEType` takes quadratic time over blanks. */
function boundaryOf(contentType: string): string {
  const match = /;\s*boundary=(?:"([^"\\\r\n]{1,70})"|([^\s;"\\]{1,70}))/i.exec(contentType);
  const boundary = match?.[1] ?? match?.[2];
  if (boundary === undefined) throw malformed("its content type names no boundary");
  return boundary;
}

function duplicate(name: string): ApiError {
  return invalidRequest(`The field '${clip(name)}' is there twice, or is no field of this form.`, {
    param: clip(name),
    code: "duplicate_field",
  });
}

function secondFile(): ApiError {
  return invalidRequest("There is more than one 'file'.", { param: "file" });
}

function missingFile(): ApiError {
  return invalidRequest("Missing required parameter: 'file', a file part with a file name.", {
    param: "file",
    code: "missing_required_parameter",
  });
}

function malformed(problem: string): ApiError {
  return invalidRequest(`The multipart body is not valid: ${problem}.`, { code: "invalid_multipart" });
}

/** Bodies up to this size are not counted, and wait for nothing. */
const smallBytes = 256 * 1024;
/** The part of the memory that the bodies of one key may take, so that others have room too. */
const maxShareOfKey = 2 / 3;
/** How long a body may take to arrive while bodies of other keys wait for its memory. */
const unhurriedMs = 10_000;

/** Who sends a body, and what happens to it. */
export interface BodySender {
  /** The key that its share of the memory counts for. */
  readonly key: string;
  readonly maxBodyBytes: number;
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
  /** Gives up a body that has not arrived in ten seconds while others wait for its memory. */
  readonly giveUp: () => void;
}

/** A body that has memory and has not arrived. */
interface Arriving {
  readonly key: string;
  readonly admittedAt: number;
  readonly giveUp: () => void;
}

/**
 * Limits the bodies that are in memory at once. Further requests wait, and keys take turns.
 * @param maxBytes the limit of all bodies; one that is larger than a key's share counts as the share
 */
export function createBodyMemory(maxBytes: number, clock: Clock) {
  const semaphore = createFairSemaphore({ max: maxBytes, maxPerKey: Math.floor(maxBytes * maxShareOfKey) });
  const arriving = new Set<Arriving>();
  /** Gives up slow bodies, the oldest first, as long as those of another key wait. */
  function makeRoom(): void {
    for (const body of arriving) {
      if (clock.monotonic() - body.admittedAt < unhurriedMs) return;
      if (semaphore.hasOthersWaiting(body.key)) body.giveUp();
    }
  }

  return {
    /**
     * Waits until the request's body may be read. Without a Content-Length it counts as the largest one.
     * @throws the reason of `signal` when the client leaves first
     */
    async admit(
      request: IncomingMessage,
      { key, maxBodyBytes, signal, giveUp }: BodySender,
    ): Promise<Release> {
      const announced = Number(request.headers["content-length"] ?? maxBodyBytes);
      const bytes = Number.isFinite(announced) ? Math.min(announced, maxBodyBytes) : maxBodyBytes;
      if (bytes <= smallBytes) return () => {};
      const acquired = semaphore.acquire(key, bytes, signal);
      if (semaphore.waiting() > 0) makeRoom();
      const release = await acquired;
      const body: Arriving = {
        key,
        admittedAt: clock.monotonic(),
        giveUp() {
          arrived();
          giveUp();
          release();
        },
      };
      const arrived = (): void => {
        arriving.delete(body);
        cancelTimer();
      };
      const cancelTimer = clock.after(unhurriedMs, makeRoom, { keepsAlive: false });
      arriving.add(body);
      request.once("end", arrived);
      return () => {
        arrived();
        release();
      };
    },
  };
}

/**
 * Reads the JSON body of a request.
 * @throws ApiError 415 (another content type), 413 (over `maxBytes`), 400 (not UTF-8 or not JSON)
 */
export async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  const body = await readJsonBody(request, maxBytes);
  switch (body.kind) {
    case "json":
      return body.value;
    case "wrong-type":
      throw wrongContentType(body.contentType, "application/json");
    case "too-large":
      throw tooLarge("The request body", maxBytes);
    case "not-utf8":
      throw invalidJson("The request body is not valid UTF-8.", body.cause);
    case "not-json":
      if (body.cause instanceof RangeError)
        throw invalidJson("The request body is nested too deeply, or has too many values.", body.cause);
      throw invalidJson("The request body is not valid JSON.", body.cause);
  }
}

/** @throws ApiError 415 when the request has another content type */
function expectContentType(request: IncomingMessage, expected: string): void {
  const given = contentTypeOf(request);
  if (given !== expected) throw wrongContentType(given, expected);
}

/** @throws ApiError 413 when the announced length is over `maxBytes` */
function expectLength(request: IncomingMessage, maxBytes: number): void {
  if (announcesMoreThan(request, maxBytes)) throw tooLarge("The request body", maxBytes);
}

function wrongContentType(given: string, expected: string): ApiError {
  const message = `The content type must be ${expected}, not ${given === "" ? "missing" : `'${given.slice(0, 80)}'`}.`;
  return new ApiError(415, "invalid_request_error", message, { code: "unsupported_media_type" });
}

function invalidJson(message: string, cause: unknown): ApiError {
  return invalidRequest(message, { code: "invalid_json", cause });
}
