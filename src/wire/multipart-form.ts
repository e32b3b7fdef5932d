import { FormData, Response } from "undici";

/** The content of a form's file: bytes, a file read while it is sent (`openAsBlob`), or arriving bytes. */
export type FormContent = Uint8Array | Blob | AsyncIterable<Uint8Array>;

/** The file of a form. */
interface FormFile {
  /** It is sent as `application/octet-stream` where this is no media type. */
  readonly mediaType: string;
  readonly fileName: string;
  readonly content: FormContent;
}

const pieceBytes = 64 * 1024;

/** A file that is not copied into a Blob. undici asks it for its stream, and accepts an unknown size. */
class UncopiedFile extends File {
  readonly #content: FormContent;
  override readonly size: number;

  constructor(content: FormContent, name: string, type: string) {
    super([], name, { type });
    this.#content = content;
    const size = content instanceof Uint8Array ? content.length : content instanceof Blob && content.size;
    this.size = (size === false ? undefined : size) as number;
  }

  override stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    const content = this.#content;
    if (content instanceof Blob) return content.stream();
    const pieces = content instanceof Uint8Array ? piecesOf(content) : content;
    return ReadableStream.from(pieces) as ReadableStream<Uint8Array<ArrayBuffer>>;
  }
}

function* piecesOf(bytes: Uint8Array): Generator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

/** Makes a multipart/form-data body: the defined text fields in order, then the part `file`. */
export function toForm(
  fields: Readonly<Record<string, string | undefined>>,
  { content, fileName, mediaType }: FormFile,
): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) form.append(name, value);
  const type = /^[\w.+-]+\/[\w.+-]+(?:;[\w=. "-]+)?$/.test(mediaType)
    ? mediaType
    : "application/octet-stream";
  form.append("file", new UncopiedFile(content, fileName, type));
  return form;
}

/** A form with a file that arrives while it is sent. */
interface ArrivingForm {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * Makes a form like {@link toForm}, but announces its length before the file is known.
 * @param expectedBytes the file's; where it has up to two more, the form lacks its last line break, and where
 *   it has fewer, line breaks follow
 */
export async function toArrivingForm(
  fields: Readonly<Record<string, string | undefined>>,
  file: FormFile,
  expectedBytes: number,
): Promise<ArrivingForm> {
  const empty = await new Response(toForm(fields, { ...file, content: new Uint8Array() })).arrayBuffer();
  const encoded = new Response(toForm(fields, file));
  const length = empty.byteLength + expectedBytes;
  return {
    headers: {
      "content-type": encoded.headers.get("content-type") ?? "multipart/form-data",
      "content-length": String(length),
    },
    body: ofLength(encoded.body as AsyncIterable<Uint8Array>, length),
  };
}

async function* ofLength(bytes: AsyncIterable<Uint8Array>, length: number): AsyncGenerator<Uint8Array, void> {
  let left = length;
  for await (const chunk of bytes) {
    yield chunk.subarray(0, left);
    left -= Math.min(left, chunk.length);
  }
  if (left > 0) yield Buffer.alloc(left, "\r\n");
}
