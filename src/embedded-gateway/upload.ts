import type { IncomingMessage } from "node:http";
import { invalidRequest, tooLarge, type ApiError } from "./api-error.ts";
import { boundaryOf, collect, readMultipart, type Part } from "./multipart.ts";
import { expectContentType, expectLength } from "./read-body.ts";

/** A transcription request, read as far as its file. */
export interface Upload {
  /** The text fields so far; complete after `readAll`. */
  readonly fields: Readonly<Record<string, string>>;
  readonly fileName: string;
  readonly mediaType: string;
  /**
   * The whole file, and with it the fields behind it. The second call answers the same.
   * @throws ApiError 413, 400
   */
  readAll(): Promise<Buffer>;
  /** Instead of `readAll`: the rest of the form as it comes. `undefined`: its length is not known, or it is read. */
  passOn(): RestOfForm | undefined;
}

interface RestOfForm {
  readonly boundary: string;
  readonly lengthBytes: number;
  /** Begins with the file's first byte, ends with the closing boundary. */
  readonly bytes: AsyncIterable<Buffer>;
}

const maxFieldBytes = 64 * 1024;
/** The form around the file is small, so an announced length tells early. */
const maxFormBytes = 1024 * 1024;

/**
 * Reads a multipart request up to its first audio byte.
 * @throws ApiError 415, 413, 400 (no file, an empty file, a broken body)
 */
export async function openUpload(request: IncomingMessage, maxBytes: number): Promise<Upload> {
  expectContentType(request, "multipart/form-data");
  const boundary = boundaryOf(request.headers["content-type"] ?? "");
  expectLength(request, maxBytes + maxFormBytes);
  const chunks = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  const parts = readMultipart(chunks, boundary);
  const fields: Record<string, string> = {};

  for (;;) {
    const next = await parts.next();
    if (next.done === true) throw missingFile();
    const part = next.value;
    if (part.name === "file" && part.fileName !== undefined) {
      if (await part.isEmpty()) {
        throw invalidRequest("Invalid 'file': the audio file is empty.", {
          param: "file",
          code: "empty_file",
        });
      }
      return toUpload({ request, parts, part, fields, boundary, maxBytes });
    }
    fields[part.name] = await readField(part);
  }
}

interface OpenForm {
  readonly request: IncomingMessage;
  readonly parts: AsyncGenerator<Part, void>;
  /** The file's. */
  readonly part: Part;
  readonly fields: Record<string, string>;
  readonly boundary: string;
  readonly maxBytes: number;
}

function toUpload({ request, parts, part, fields, boundary, maxBytes }: OpenForm): Upload {
  let whole: Promise<Buffer> | undefined;
  const readAll = async (): Promise<Buffer> => {
    const bytes = await collect(part.body, maxBytes);
    if (bytes === undefined) throw tooLarge("The audio file", maxBytes, "file");
    for await (const next of parts) {
      if (next.name === "file") throw invalidRequest("There is more than one 'file'.", { param: "file" });
      if (next.fileName === undefined) fields[next.name] = await readField(next);
    }
    return bytes;
  };
  return {
    fields,
    fileName: part.fileName === undefined || part.fileName === "" ? "audio" : part.fileName,
    mediaType: part.mediaType ?? "application/octet-stream",
    readAll: () => (whole ??= readAll()),
    passOn: () => {
      const total = Number(request.headers["content-length"]);
      if (whole !== undefined || !Number.isInteger(total)) return undefined;
      const { offsetBytes, bytes } = part.remainder();
      return { boundary, lengthBytes: total - offsetBytes, bytes };
    },
  };
}

async function readField({ name, body }: Part): Promise<string> {
  const bytes = await collect(body, maxFieldBytes);
  if (bytes === undefined) throw tooLarge(`The field '${name}'`, maxFieldBytes, name);
  return bytes.toString("utf8");
}

function missingFile(): ApiError {
  return invalidRequest("Missing required parameter: 'file', a file part with a file name.", {
    param: "file",
    code: "missing_required_parameter",
  });
}
