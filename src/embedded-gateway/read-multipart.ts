import { invalidRequest, type ApiError } from "./api-error.ts";

/** One part of a multipart body. Read `body` to its end before the next part; what is left unread is skipped. */
export interface Part {
  readonly name: string;
  /** Present on files, maybe empty. */
  readonly fileName: string | undefined;
  readonly mediaType: string | undefined;
  readonly body: AsyncIterable<Buffer>;
  /** Whether the body has no byte. Ask before reading it. */
  isEmpty(): Promise<boolean>;
  /** Instead of `body`: all that is left of the request as it came, this part's body first. Ends the iteration. */
  remainder(): Remainder;
}

interface Remainder {
  /** How much of the request came before it. */
  readonly offsetBytes: number;
  readonly bytes: AsyncIterable<Buffer>;
}

const maxHeaderBytes = 16 * 1024;
const maxParts = 64;

/**
 * The boundary named by a content type.
 * @throws ApiError 400
 */
export function boundaryOf(contentType: string): string {
  const match = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType);
  const boundary = match?.[1] ?? match?.[2];
  if (boundary === undefined) throw malformed("its content type names no boundary");
  return boundary;
}

/**
 * The parts of a `multipart/form-data` body as they arrive; nothing is held but what a chunk and a delimiter need.
 * @see https://www.rfc-editor.org/rfc/rfc7578
 * @throws ApiError 400 for a body that ends early or has no such form
 */
export async function* readMultipart(
  chunks: AsyncIterable<Buffer>,
  boundary: string,
): AsyncGenerator<Part, void> {
  const window = createWindow(chunks);
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  // The first delimiter has no line break before it.
  window.unread(Buffer.from("\r\n"));
  await drain(window.until(delimiter));
  for (let parts = 0; parts < maxParts; parts += 1) {
    if (await window.isClosing()) return;
    const header = await window.header();
    const body = window.until(delimiter);
    let isHandedOver = false;
    yield {
      ...parseHeader(header),
      body,
      isEmpty: () => window.startsWith(delimiter),
      remainder: () => {
        isHandedOver = true;
        return window.remainder();
      },
    };
    if (isHandedOver) return;
    await drain(body);
  }
  throw malformed(`it has more than ${maxParts} parts`);
}

/** The bytes of a part, whole. `undefined`: they are more than `maxBytes`. */
export async function collect(body: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes);
}

function createWindow(chunks: AsyncIterable<Buffer>) {
  const source = chunks[Symbol.asyncIterator]();
  let held: Buffer = Buffer.alloc(0);
  let received = 0;

  const fill = async (): Promise<void> => {
    const next = await source.next();
    if (next.done === true) throw malformed("it ends before its closing boundary");
    received += next.value.length;
    held = held.length === 0 ? next.value : Buffer.concat([held, next.value]);
  };

  return {
    unread: (bytes: Buffer) => {
      held = Buffer.concat([bytes, held]);
    },
    /** Everything up to the delimiter, which is taken away. */
    async *until(delimiter: Buffer): AsyncGenerator<Buffer, void> {
      for (;;) {
        const at = held.indexOf(delimiter);
        if (at >= 0) {
          const last = held.subarray(0, at);
          held = held.subarray(at + delimiter.length);
          if (last.length > 0) yield last;
          return;
        }
        // The end of what is here may be the beginning of a delimiter.
        const safe = held.length - delimiter.length + 1;
        if (safe > 0) {
          const ready = held.subarray(0, safe);
          held = held.subarray(safe);
          yield ready;
        }
        await fill();
      }
    },
    async startsWith(bytes: Buffer): Promise<boolean> {
      while (held.length < bytes.length) await fill();
      return held.subarray(0, bytes.length).equals(bytes);
    },
    remainder(): Remainder {
      const first = held;
      held = Buffer.alloc(0);
      return {
        offsetBytes: received - first.length,
        bytes: {
          async *[Symbol.asyncIterator]() {
            yield first;
            yield* { [Symbol.asyncIterator]: () => source };
          },
        },
      };
    },
    /** Whether the delimiter just read was the closing one. */
    async isClosing(): Promise<boolean> {
      while (held.length < 2) await fill();
      return held[0] === 0x2d && held[1] === 0x2d;
    },
    async header(): Promise<string> {
      for (;;) {
        const end = held.indexOf("\r\n\r\n");
        if (end >= 0 && end <= maxHeaderBytes) {
          const text = held.toString("utf8", 0, end);
          held = held.subarray(end + 4);
          return text;
        }
        if (held.length > maxHeaderBytes) throw malformed("a part has no header, or one too long");
        await fill();
      }
    },
  };
}

function parseHeader(header: string): Pick<Part, "name" | "fileName" | "mediaType"> {
  const line = (name: string): string | undefined =>
    new RegExp(`^${name}:[ \\t]*(.*)$`, "im").exec(header)?.[1]?.trim();
  const disposition = line("content-disposition") ?? "";
  const parameter = (name: string): string | undefined => {
    const match = new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^;\\s]+))`, "i").exec(disposition);
    return (match?.[1] ?? match?.[2])?.replaceAll(/\\(.)/g, "$1").replaceAll("%22", '"');
  };
  const name = parameter("name");
  if (!/^form-data\b/i.test(disposition) || name === undefined) throw malformed("a part has no name");
  return { name, fileName: parameter("filename"), mediaType: line("content-type") };
}

async function drain(body: AsyncIterable<Buffer>): Promise<void> {
  for await (const chunk of body) void chunk;
}

function malformed(problem: string): ApiError {
  return invalidRequest(`The multipart body is not valid: ${problem}.`, { code: "invalid_multipart" });
}
