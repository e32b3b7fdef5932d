import type { IncomingMessage } from "node:http";
import { createBoundary } from "../support/multipart-body.ts";
import { clip, invalidRequest, tooLarge, type ApiError } from "./api-error.ts";
import { boundaryOf, collect, readMultipart, type Part } from "./read-multipart.ts";
import { expectContentType, expectLength } from "./read-body.ts";

/** A transcription request, read up to its file. */
export interface Upload {
  /** The text fields so far; complete after `readAll`. */
  readonly fields: Readonly<Record<string, string>>;
  readonly fileName: string;
  readonly mediaType: string;
  /**
   * The whole file; the fields after it are read too. Later calls return the same bytes.
   * @throws ApiError 413 (file too large), 400 (a second file, a malformed body)
   */
  readAll(): Promise<Buffer>;
  /** The first 64 kB of a file that is not read yet; less of a shorter form. */
  head(): Promise<Buffer>;
  /** Size of the file once it is read; before, the announced length of the rest of the form, or 0 when unknown. */
  sizeBytes(): number;
  /**
   * Instead of `readAll`: the rest of the form as it arrives. `undefined` when its length is unknown or it was read.
   * Reading it throws ApiError 400 when anything but the end of the form follows the file.
   */
  passThrough(): RestOfForm | undefined;
}

interface RestOfForm {
  /** Made for this form: the sender does not know it. */
  readonly boundary: string;
  readonly lengthBytes: number;
  /** From the file's first byte to the closing boundary. */
  readonly bytes: AsyncIterable<Buffer>;
}

const maxFieldBytes = 64 * 1024;
/** Allowance for the form around the file when the announced length is checked. */
const maxFormBytes = 1024 * 1024;

/**
 * Reads a multipart request up to its first audio byte.
 * @throws ApiError 415, 413, 400 (no file, an empty file, a malformed body)
 */
export async function openUpload(request: IncomingMessage, maxBytes: number): Promise<Upload> {
  expectContentType(request, "multipart/form-data");
  const boundary = boundaryOf(request.headers["content-type"] ?? "");
  expectLength(request, maxBytes + maxFormBytes);
  const chunks = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  const parts = readMultipart(chunks, boundary);
  const fields = createFields();

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
      return toUpload({ request, parts, part, fields, maxBytes });
    }
    await fields.add(part);
  }
}

interface OpenForm {
  readonly request: IncomingMessage;
  readonly parts: AsyncGenerator<Part, void>;
  /** Of the file. */
  readonly part: Part;
  readonly fields: FormFields;
  readonly maxBytes: number;
}

function toUpload({ request, parts, part, fields, maxBytes }: OpenForm): Upload {
  let whole: Promise<Buffer> | undefined;
  let size: number | undefined;
  const readAll = async (): Promise<Buffer> => {
    const bytes = await collect(part.body, maxBytes);
    if (bytes === undefined) throw tooLarge("The audio file", maxBytes, "file");
    size = bytes.length;
    for await (const next of parts) {
      if (next.name === "file") throw invalidRequest("There is more than one 'file'.", { param: "file" });
      await fields.add(next);
    }
    return bytes;
  };
  const total = Number(request.headers["content-length"]);
  return {
    fields: fields.values,
    fileName: part.fileName === undefined || part.fileName === "" ? "audio" : part.fileName,
    mediaType: part.mediaType ?? "application/octet-stream",
    readAll: () => (whole ??= readAll()),
    head: () => part.head(),
    sizeBytes: () => size ?? (Number.isInteger(total) ? total : 0),
    passThrough: () => {
      if (whole !== undefined || !Number.isInteger(total)) return undefined;
      const boundary = createBoundary();
      const { lengthBytes, bytes } = part.remainder(boundary);
      return { boundary, lengthBytes: lengthBytes(total), bytes };
    },
  };
}

/** The text fields of a form. */
interface FormFields {
  readonly values: Readonly<Record<string, string>>;
  /** @throws ApiError 400 for a field that was there before, or a second file; 413 for a long value */
  add(part: Part): Promise<void>;
}

/** Two fields of one name are refused: the gateway and an upstream could each believe another one. */
function createFields(): FormFields {
  const values: Record<string, string> = {};
  return {
    values,
    add: async (part) => {
      const { name, fileName } = part;
      const isTaken = Object.hasOwn(values, name) || name === "__proto__" || fileName !== undefined;
      if (isTaken)
        throw invalidRequest(`The field '${clip(name)}' is there twice, or is no field of this form.`, {
          param: clip(name),
          code: "duplicate_field",
        });
      values[name] = await readField(part);
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
