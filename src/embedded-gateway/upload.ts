import type { IncomingMessage } from "node:http";
import { invalidRequest, tooLarge, type ApiError } from "./api-error.ts";
import { boundaryOf, collect, readMultipart } from "./multipart.ts";
import { expectContentType, expectLength } from "./read-body.ts";

/** The file of a transcription request, not yet read. */
export interface UploadedFile {
  readonly fileName: string;
  readonly mediaType: string;
  /** At least one byte. Throws ApiError 413 past the cap. */
  readonly body: AsyncIterable<Buffer>;
}

/** A transcription request, read as far as its file. */
export interface Upload {
  /** The text fields so far. They are complete when `rest` has ended. */
  readonly fields: Readonly<Record<string, string>>;
  readonly file: UploadedFile;
  /** The fields that follow the file; read the file first. */
  rest(): AsyncIterable<{ readonly name: string; readonly value: string }>;
}

const maxFieldBytes = 64 * 1024;

/**
 * Reads a multipart request up to its first audio byte.
 * @throws ApiError 415, 413, 400 (no file, an empty file, a broken body)
 */
export async function openUpload(request: IncomingMessage, maxBytes: number): Promise<Upload> {
  expectContentType(request, "multipart/form-data");
  const boundary = boundaryOf(request.headers["content-type"] ?? "");
  // The form around the file is small, so an announced length tells early.
  expectLength(request, maxBytes + 1024 * 1024);
  const chunks = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  const parts = readMultipart(chunks, boundary);
  const fields: Record<string, string> = {};

  for (;;) {
    const next = await parts.next();
    if (next.done === true) throw missingFile();
    const part = next.value;
    if (part.name !== "file" || part.fileName === undefined) {
      fields[part.name] = await readField(part.name, part.body);
      continue;
    }
    const body = capped(part.body, maxBytes)[Symbol.asyncIterator]();
    const first = await body.next();
    if (first.done === true) {
      throw invalidRequest("Invalid 'file': the audio file is empty.", { param: "file", code: "empty_file" });
    }
    return {
      fields,
      file: {
        fileName: part.fileName === "" ? "audio" : part.fileName,
        mediaType: part.mediaType ?? "application/octet-stream",
        body: {
          async *[Symbol.asyncIterator]() {
            yield first.value;
            yield* { [Symbol.asyncIterator]: () => body };
          },
        },
      },
      async *rest() {
        for await (const { name, fileName, body } of parts) {
          if (name === "file") throw invalidRequest("There is more than one 'file'.", { param: "file" });
          if (fileName !== undefined) continue;
          const value = await readField(name, body);
          fields[name] = value;
          yield { name, value };
        }
      },
    };
  }
}

/** The whole file, and every field. */
export async function readUpload(
  upload: Upload,
): Promise<{ readonly bytes: Buffer; readonly fields: Readonly<Record<string, string>> }> {
  const bytes = (await collect(upload.file.body, Number.POSITIVE_INFINITY)) ?? Buffer.alloc(0);
  for await (const field of upload.rest()) void field;
  return { bytes, fields: upload.fields };
}

async function readField(name: string, body: AsyncIterable<Buffer>): Promise<string> {
  const bytes = await collect(body, maxFieldBytes);
  if (bytes === undefined) throw tooLarge(`The field '${name}'`, maxFieldBytes, name);
  return bytes.toString("utf8");
}

async function* capped(body: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer, void> {
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge("The audio file", maxBytes, "file");
    yield chunk;
  }
}

function missingFile(): ApiError {
  return invalidRequest("Missing required parameter: 'file', a file part with a file name.", {
    param: "file",
    code: "missing_required_parameter",
  });
}
