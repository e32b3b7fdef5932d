import { randomBytes } from "node:crypto";
import type { ByteSource } from "./byte-source.ts";

/** Text fields of a form, in order; `undefined` ones are left out. */
export type MultipartFields = Readonly<Record<string, string | undefined>>;

/** A multipart/form-data body of known length that can be read again for each attempt. */
export interface MultipartBody {
  readonly headers: { readonly "content-type": string; readonly "content-length": string };
  read(): AsyncIterable<Uint8Array>;
}

/** How a file is named in a form. */
export interface MultipartFile {
  /** Of the field. */
  readonly name: string;
  readonly fileName: string;
  /** `application/octet-stream` is sent for an invalid one. */
  readonly mediaType: string;
}

/** A body of text fields and one file after them. */
export function createMultipartBody(
  fields: MultipartFields,
  file: MultipartFile & { readonly source: ByteSource },
): MultipartBody {
  const boundary = createBoundary();
  const head = toMultipartHead(boundary, fields, file);
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`, "latin1");
  return {
    headers: toMultipartHeaders(boundary, head.length + file.source.sizeBytes + tail.length),
    async *read() {
      yield head;
      yield* file.source.read();
      yield tail;
    },
  };
}

/** A boundary that nobody can know who wrote the file between its delimiters. */
export function createBoundary(): string {
  return `parley-${randomBytes(16).toString("hex")}`;
}

/** Everything before the first byte of the file: the text fields and the file's own headers. */
export function toMultipartHead(boundary: string, fields: MultipartFields, file: MultipartFile): Buffer {
  const open = (name: string): string =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${escapeName(name)}"`;
  const texts = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [`${open(name)}\r\n\r\n${value}\r\n`],
  );
  const mediaType = /^[\w.+-]+\/[\w.+-]+(?:;[\w=. "-]+)?$/.test(file.mediaType)
    ? file.mediaType
    : "application/octet-stream";
  const fileHead = `${open(file.name)}; filename="${escapeName(file.fileName)}"\r\ncontent-type: ${mediaType}\r\n\r\n`;
  return Buffer.from(texts.join("") + fileHead, "utf8");
}

/** The HTTP headers of a form with this boundary. */
export function toMultipartHeaders(boundary: string, lengthBytes: number): MultipartBody["headers"] {
  return {
    "content-type": `multipart/form-data; boundary=${boundary}`,
    "content-length": String(lengthBytes),
  };
}

/** @see https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#multipart-form-data */
function escapeName(name: string): string {
  return name.replace(/\r\n?|\n/g, "%0D%0A").replaceAll('"', "%22");
}
