import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { Busboy, type BusboyEvents } from "@fastify/busboy";
import { invalidRequest, type ApiError, clip, tooLarge } from "./api-error.ts";
import { expectContentType, expectLength } from "./body-memory.ts";

/** A transcription request, read up to its file. */
export interface Upload {
  /** The text fields so far. They are complete after `readAll`. */
  readonly fields: Readonly<Record<string, string>>;
  readonly fileName: string;
  readonly mediaType: string;
  /**
   * Reads the whole file, and the fields after it. Later calls return the same bytes.
   * @throws ApiError 413 (file too large), 400 (a second file, a malformed body)
   */
  readAll(): Promise<Buffer>;
  /** Returns the first 64 kB of a file that is not read yet, or less of a shorter file. */
  head(): Promise<Buffer>;
  /** Returns the file's size once it is read, and before that the announced length of the form, or 0. */
  sizeBytes(): number;
  /** Returns the arriving file, in place of `readAll`, or `undefined` without a length or once read. */
  passThrough(): ArrivingFile | undefined;
}

/** A file that is read while it arrives. */
interface ArrivingFile {
  /** The length where the form ends as most do, at the line break behind its closing boundary. */
  readonly expectedBytes: number;
  /** Throws ApiError 400 when anything but the end of the form follows the file. */
  readonly bytes: AsyncIterable<Buffer>;
}

const maxFieldBytes = 64 * 1024;
const maxHeaderBytes = 16 * 1024;
const maxParts = 64;
const headBytes = 64 * 1024;
/** The allowance for the form around the file. */
const maxFormBytes = 1024 * 1024;
/** The most blanks behind the closing boundary. */
const maxEpilogueBytes = 64;
/** The most empty lines of the form before the file, where its length is measured. */
const maxEmptyLines = 1000;

/**
 * Reads a multipart request up to its first audio byte.
 * @throws ApiError 415, 413, 400 (no file, an empty file, a field that is there twice, a malformed body)
 */
export async function openUpload(request: IncomingMessage, maxFileBytes: number): Promise<Upload> {
  expectContentType(request, "multipart/form-data");
  expectLength(request, maxFileBytes + maxFormBytes);
  const announced = Number(request.headers["content-length"]);
  return openForm(request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>, {
    contentType: request.headers["content-type"] ?? "",
    maxFileBytes,
    announcedBytes: Number.isInteger(announced) ? announced : undefined,
  });
}

/** What is known about a form beforehand. */
interface FormLimits {
  readonly contentType: string;
  readonly maxFileBytes: number;
  /** The length of the whole form. */
  readonly announcedBytes?: number | undefined;
}

/** Reads a form up to its file. @throws ApiError as {@link openUpload} */
export async function openForm(
  chunks: AsyncIterable<Buffer>,
  { contentType, maxFileBytes, announcedBytes }: FormLimits,
): Promise<Upload> {
  const form = parseForm(chunks, contentType, maxFileBytes);
  const file = await form.file;
  if (file === undefined)
    throw Object.keys(form.fields).length > 0 ? missingFile() : malformed("it has no part with a name");
  const content = file.content.iterator({ destroyOnReturn: false });
  /** The bytes of the file that were read and not passed on. */
  let pieces: Buffer[] = [];
  let size = 0;
  let isEnded = false;
  const readPiece = async (): Promise<boolean> => {
    try {
      const next = (await content.next()) as IteratorResult<Buffer, undefined>;
      if (next.value === undefined) {
        isEnded = true;
        await form.ended;
        return false;
      }
      pieces.push(next.value);
      size += next.value.length;
      return true;
    } catch (error) {
      // This error says better what is wrong.
      await form.ended;
      throw error;
    }
  };
  if (!(await readPiece()))
    throw invalidRequest("Invalid 'file': the audio file is empty.", { param: "file", code: "empty_file" });

  let whole: Promise<Buffer> | undefined;
  const readAll = async (): Promise<Buffer> => {
    while (await readPiece());
    return Buffer.concat(pieces, size);
  };
  async function* readArriving(expectedBytes: number): AsyncGenerator<Buffer, void> {
    do {
      yield* pieces;
      pieces = [];
    } while (await readPiece());
    if (size < expectedBytes - maxEpilogueBytes) throw malformed("there is something after its end");
  }
  return {
    fields: form.fields,
    fileName: file.fileName === "" ? "audio" : file.fileName.replaceAll("%22", '"'),
    mediaType: file.mediaType,
    readAll: () => (whole ??= readAll()),
    head: async () => {
      while (await readPiece()) if (size >= headBytes) break;
      return Buffer.concat(pieces).subarray(0, headBytes);
    },
    sizeBytes: () => (isEnded ? size : (announcedBytes ?? 0)),
    passThrough: () => {
      if (whole !== undefined || announcedBytes === undefined || file.offsetBytes === undefined)
        return undefined;
      const expectedBytes = announcedBytes - file.offsetBytes - form.delimiterBytes - "--\r\n".length;
      return { expectedBytes, bytes: form.lastPart(readArriving(expectedBytes)) };
    },
  };
}

interface OpenFile {
  readonly content: Readable;
  readonly fileName: string;
  readonly mediaType: string;
  /** The length of the form before the first byte of the file, or `undefined` where it was not measured. */
  readonly offsetBytes: number | undefined;
}
/** A form that is being parsed. */
interface ParsedForm {
  readonly fields: Readonly<Record<string, string>>;
  readonly delimiterBytes: number;
  /** `undefined` when the form ends without a file. */
  readonly file: Promise<OpenFile | undefined>;
  /** The end of the form, which comes when the file is read. */
  readonly ended: Promise<void>;
  /** Returns the rest of the file. No other part may follow, and the form is given up with the file. */
  lastPart(rest: AsyncIterable<Buffer>): AsyncIterable<Buffer>;
}

function parseForm(chunks: AsyncIterable<Buffer>, contentType: string, maxFileBytes: number): ParsedForm {
  const boundary = boundaryOf(contentType);
  const parser = new Busboy({
    headers: { "content-type": `multipart/form-data; boundary="${boundary}"` },
    isPartAFile: (_name, _type, fileName) => fileName !== undefined,
    limits: { fieldSize: maxFieldBytes, fileSize: maxFileBytes, parts: maxParts, headerSize: maxHeaderBytes },
  });
  const fields: Record<string, string> = {};
  const file = Promise.withResolvers<OpenFile | undefined>();
  const finished = Promise.withResolvers<undefined>();
  const measure = createMeasure();
  let content: Readable | undefined;
  let isLastPart = false;
  let isBroken = false;
  let failure: Error | undefined;
  const fail = (error: Error): void => void (failure ??= error);

  const onField: BusboyEvents["field"] = (fieldName, value, _isNameCut, isCut) => {
    // The types say that there is always a name.
    const name = fieldName as string | undefined;
    if (isLastPart) return fail(lateField());
    if (name === undefined) return fail(malformed("a part has no name"));
    // The gateway and an upstream could each take another one of two.
    if (Object.hasOwn(fields, name) || name === "__proto__") return fail(duplicate(name));
    if (isCut) return fail(tooLarge(`The field '${clip(name)}'`, maxFieldBytes, clip(name)));
    fields[name] = value;
  };
  const onFile: BusboyEvents["file"] = (name, opened, fileName, _encoding, mediaType) => {
    // The parser reports it too.
    opened.on("error", () => {});
    if (name !== "file" || content !== undefined) {
      opened.resume();
      return fail(isLastPart ? lateField() : name === "file" ? secondFile() : duplicate(name));
    }
    content = opened;
    opened.on("limit", () => fail(tooLarge("The audio file", maxFileBytes, "file")));
    // This is the parser's own default, which no recording is.
    const type = mediaType === "text/plain" ? "application/octet-stream" : mediaType;
    file.resolve({ content, fileName, mediaType: type, offsetBytes: measure.offsetBytes() });
  };
  parser.on("field", onField);
  parser.on("file", onFile);
  parser.on("partsLimit", () => fail(malformed(`it has more than ${maxParts} parts`)));
  parser.on("finish", () => finished.resolve(undefined));
  parser.on("error", () => {
    isBroken = true;
    // A field that was too long is reported only after this.
    setImmediate(() => finished.resolve(undefined));
  });

  async function write(bytes: Buffer): Promise<void> {
    await new Promise<void>((resolve) => {
      parser.write(bytes, () => resolve());
      void finished.promise.then(resolve);
    });
  }

  async function parse(): Promise<void> {
    let received = 0;
    for await (const chunk of chunks) {
      received += chunk.length;
      if (received > maxFileBytes + maxFormBytes)
        fail(tooLarge("The request body", maxFileBytes + maxFormBytes));
      for (const piece of content === undefined ? measure.cut(chunk) : [chunk]) {
        if (failure !== undefined) throw failure;
        await write(piece);
      }
    }
    parser.end();
    await finished.promise;
    if (isBroken) fail(malformed("it does not follow the format, or ends before its closing boundary"));
    if (failure !== undefined) throw failure;
  }

  const ended = parse().then(
    () => file.resolve(undefined),
    (error: unknown) => {
      content?.destroy(error as Error);
      file.reject(error);
      throw error;
    },
  );
  // These are awaited when the form is read to there.
  file.promise.catch(() => {});
  ended.catch(() => {});

  return {
    fields,
    delimiterBytes: Buffer.byteLength(`\r\n--${boundary}`),
    file: file.promise,
    ended,
    lastPart: (rest) => {
      isLastPart = true;
      return giveUpWith(rest, () => {
        fail(malformed("its file is not read to its end"));
        content?.resume();
      });
    },
  };
}

async function* giveUpWith(bytes: AsyncIterable<Buffer>, giveUp: () => void): AsyncGenerator<Buffer, void> {
  try {
    yield* bytes;
  } finally {
    giveUp();
  }
}

/**
 * Measures where a file begins, behind an empty line. The parser is given a form in pieces that end with one.
 * It opens a file with the first byte that tells the empty line from the beginning of a boundary.
 */
function createMeasure() {
  let written = 0;
  let lines = 0;
  let offset: number | undefined;
  /** How many bytes of an empty line, with the line break before it, have arrived. */
  let matched = 0;
  const isNext = (byte: number): boolean => byte === (matched % 2 === 0 ? 0x0d : 0x0a);

  return {
    /** Returns the offset after the last empty line, not counting the piece that is being parsed. */
    offsetBytes: (): number | undefined => (lines > maxEmptyLines ? undefined : offset),
    *cut(chunk: Buffer): Generator<Buffer, void> {
      let from = 0;
      for (let at = 0; at < chunk.length && lines <= maxEmptyLines; at += 1) {
        const byte = chunk[at] ?? 0;
        matched = isNext(byte) ? matched + 1 : byte === 0x0d ? 1 : 0;
        if (matched < 4) continue;
        yield chunk.subarray(from, at + 1);
        written += at + 1 - from;
        from = at + 1;
        offset = written;
        lines += 1;
        // The end of this line may be the beginning of the next one.
        matched = 2;
      }
      if (from < chunk.length) yield chunk.subarray(from);
      written += chunk.length - from;
    },
  };
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

function lateField(): ApiError {
  return invalidRequest("In a large form all fields must come before the 'file'.", {
    param: "file",
    code: "late_field",
  });
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
