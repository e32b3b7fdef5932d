import type { IncomingMessage } from "node:http";
import { Busboy, type BusboyEvents } from "@fastify/busboy";
import { invalidRequest, type ApiError, clip, tooLarge } from "./api-error.ts";
import { expectContentType, expectLength } from "./body-memory.ts";

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
  const pieces: Buffer[] = [];
  const finished = Promise.withResolvers<undefined>();
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
  const onFile: BusboyEvents["file"] = (name, content, fileName, _encoding, mediaType) => {
    // The parser reports it too.
    content.on("error", () => {});
    if (name !== "file" || file !== undefined) {
      content.resume();
      return fail(name === "file" ? secondFile() : duplicate(name));
    }
    file = {
      fileName: fileName === "" ? "audio" : fileName.replaceAll("%22", '"'),
      // This is the parser's own default, which no recording is.
      mediaType: mediaType === "text/plain" ? "application/octet-stream" : mediaType,
    };
    content.on("limit", () => fail(tooLarge("The audio file", maxFileBytes, "file")));
    content.on("data", (piece: Buffer) => pieces.push(piece));
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

  let received = 0;
  for await (const chunk of chunks) {
    received += chunk.length;
    if (received > maxFileBytes + maxFormBytes)
      fail(tooLarge("The request body", maxFileBytes + maxFormBytes));
    if (failure !== undefined) throw failure;
    await new Promise<void>((resolve) => {
      parser.write(chunk, () => resolve());
      void finished.promise.then(resolve);
    });
  }
  parser.end();
  await finished.promise;
  if (isBroken) fail(malformed("it does not follow the format, or ends before its closing boundary"));
  if (failure !== undefined) throw failure;
  if (file === undefined)
    throw Object.keys(fields).length > 0 ? missingFile() : malformed("it has no part with a name");
  if (pieces.length === 0)
    throw invalidRequest("Invalid 'file': the audio file is empty.", { param: "file", code: "empty_file" });
  return { fields, ...file, bytes: Buffer.concat(pieces) };
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
