import { invalidRequest, type ApiError } from "./api-error.ts";

/** One part of a multipart body. It is skipped unless its `body` is read before the next part is requested. */
export interface Part {
  readonly name: string;
  /** Files only; may be empty. */
  readonly fileName: string | undefined;
  readonly mediaType: string | undefined;
  readonly body: AsyncIterable<Buffer>;
  /** Whether the body is empty. To be called before reading it. */
  isEmpty(): Promise<boolean>;
  /** The first 64 kB from the body on, or what the request has. To be called before reading it. */
  head(): Promise<Buffer>;
  /**
   * Instead of `body`: the rest of the request, from this part's body on, closed with another boundary. The sender must
   * not know it: another server may take for a delimiter what is none here, such as one behind a bare line feed. Ends
   * the iteration. Reading it throws ApiError 400 as soon as another part follows, before any byte of that part was
   * returned.
   */
  remainder(closedWith: string): Remainder;
}

interface Remainder {
  /** Its length, from that of the whole request. */
  readonly lengthBytes: (requestBytes: number) => number;
  readonly bytes: AsyncIterable<Buffer>;
}

const maxHeaderBytes = 16 * 1024;
const maxParts = 64;
const headBytes = 64 * 1024;
/** After the closing delimiter: its two hyphens, and at most blanks. */
const maxEpilogueBytes = 64;

/**
 * The boundary in a content type.
 * @throws ApiError 400 when there is none
 */
export function boundaryOf(contentType: string): string {
  const match = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType);
  const boundary = match?.[1] ?? match?.[2];
  if (boundary === undefined) throw malformed("its content type names no boundary");
  return boundary;
}

/**
 * The parts of a `multipart/form-data` body as they arrive, in constant memory.
 * @see https://www.rfc-editor.org/rfc/rfc7578
 * @throws ApiError 400 for a malformed or incomplete body
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
    let isEnded = false;
    yield {
      ...parseHeader(header),
      body,
      isEmpty: () => window.startsWith(delimiter),
      head: () => window.peek(headBytes),
      remainder: (closedWith) => {
        isEnded = true;
        const closing = Buffer.from(`\r\n--${closedWith}`);
        const lessBytes = window.offsetBytes() + delimiter.length - closing.length;
        return {
          lengthBytes: (requestBytes) => requestBytes - lessBytes,
          bytes: lastPart(window, delimiter, closing),
        };
      },
    };
    if (isEnded) return;
    await drain(body);
  }
  throw malformed(`it has more than ${maxParts} parts`);
}

/** All bytes of a part, `undefined` when it is larger than `maxBytes`. */
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

type Window = ReturnType<typeof createWindow>;

/** The body of a form's last part and the end of the form, with another delimiter. */
async function* lastPart(window: Window, delimiter: Buffer, closing: Buffer): AsyncGenerator<Buffer, void> {
  yield* window.until(delimiter);
  if (!(await window.isClosing())) {
    throw invalidRequest("In a large form all fields must come before the 'file'.", {
      param: "file",
      code: "late_field",
    });
  }
  const end = await window.rest();
  if (!/^--[ \t\r\n]*$/.test(end.toString("latin1"))) throw malformed("there is something after its end");
  yield closing;
  yield end;
}

function createWindow(chunks: AsyncIterable<Buffer>) {
  const source = chunks[Symbol.asyncIterator]();
  let buffered: Buffer = Buffer.alloc(0);
  let received = 0;

  const fill = async (): Promise<void> => {
    const next = await source.next();
    if (next.done === true) throw malformed("it ends before its closing boundary");
    received += next.value.length;
    buffered = buffered.length === 0 ? next.value : Buffer.concat([buffered, next.value]);
  };

  return {
    unread: (bytes: Buffer) => {
      buffered = Buffer.concat([bytes, buffered]);
    },
    /** Everything up to the delimiter, which is consumed. */
    async *until(delimiter: Buffer): AsyncGenerator<Buffer, void> {
      for (;;) {
        const at = buffered.indexOf(delimiter);
        if (at >= 0) {
          const last = buffered.subarray(0, at);
          buffered = buffered.subarray(at + delimiter.length);
          if (last.length > 0) yield last;
          return;
        }
        // The end of the buffer may be the beginning of a delimiter.
        const safe = buffered.length - delimiter.length + 1;
        if (safe > 0) {
          const ready = buffered.subarray(0, safe);
          buffered = buffered.subarray(safe);
          yield ready;
        }
        await fill();
      }
    },
    async startsWith(bytes: Buffer): Promise<boolean> {
      while (buffered.length < bytes.length) await fill();
      return buffered.subarray(0, bytes.length).equals(bytes);
    },
    /** So many bytes, which are read again; fewer where the request ends before. */
    async peek(bytes: number): Promise<Buffer> {
      while (buffered.length < bytes) {
        const next = await source.next();
        if (next.done === true) break;
        received += next.value.length;
        buffered = Buffer.concat([buffered, next.value]);
      }
      return buffered.subarray(0, bytes);
    },
    /** Length of the request before the first byte that was not read. */
    offsetBytes: () => received - buffered.length,
    /** What is left of the request, which must be short. */
    async rest(): Promise<Buffer> {
      for (;;) {
        if (buffered.length > maxEpilogueBytes) throw malformed("there is something after its end");
        const next = await source.next();
        if (next.done === true) return buffered;
        received += next.value.length;
        buffered = Buffer.concat([buffered, next.value]);
      }
    },
    /** Whether the delimiter just read was the closing one. */
    async isClosing(): Promise<boolean> {
      while (buffered.length < 2) await fill();
      return buffered[0] === 0x2d && buffered[1] === 0x2d;
    },
    async header(): Promise<string> {
      for (;;) {
        const end = buffered.indexOf("\r\n\r\n");
        if (end >= 0 && end <= maxHeaderBytes) {
          const text = buffered.toString("utf8", 0, end);
          buffered = buffered.subarray(end + 4);
          return text;
        }
        if (buffered.length > maxHeaderBytes) throw malformed("a part has no header, or one too long");
        await fill();
      }
    },
  };
}

function parseHeader(header: string): Pick<Part, "name" | "fileName" | "mediaType"> {
  const line = (name: string): string | undefined =>
    new RegExp(`^${name}:(.*)$`, "im").exec(header)?.[1]?.trim();
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
