import { randomBytes } from "node:crypto";
import { open } from "node:fs/promises";

/** Bytes that can be read again and again, without all being held. */
export interface ByteSource {
  readonly sizeBytes: number;
  /**
   * A fresh reader of all `sizeBytes` bytes. Contract for who reads: a piece has left for the socket before the eighth
   * one after it is asked for; its memory may be used again from then on.
   */
  read(): AsyncIterable<Uint8Array>;
}

const pieceBytes = 64 * 1024;
/**
 * A socket with this much waiting takes no more until all of it has left (its high-water mark is one piece), so at
 * most two pieces are under way at any time.
 */
const buffersInTurn = 8;

/** A source over bytes in memory; nothing is copied. */
export function bytesSource(bytes: Uint8Array): ByteSource {
  return {
    sizeBytes: bytes.length,
    async *read() {
      for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
    },
  };
}

/** A source over a file, read a piece at a time. The size is taken now; a file that changes later fails the upload. */
export async function fileSource(path: string): Promise<ByteSource> {
  const file = await open(path, "r");
  const { size } = await file.stat();
  await file.close();
  return {
    sizeBytes: size,
    async *read() {
      const handle = await open(path, "r");
      try {
        // A new buffer for every piece grows by as much as the collector is late: about 64 MB were seen.
        const buffers = Array.from({ length: buffersInTurn }, () => Buffer.allocUnsafeSlow(pieceBytes));
        for (let at = 0, turn = 0; at < size; turn++) {
          const buffer = buffers[turn % buffersInTurn] ?? Buffer.allocUnsafe(pieceBytes);
          const { bytesRead } = await handle.read(buffer, 0, pieceBytes, at);
          if (bytesRead === 0) return;
          at += bytesRead;
          yield buffer.subarray(0, bytesRead);
        }
      } finally {
        await handle.close();
      }
    },
  };
}

/** A multipart/form-data body whose length is known before it is read, and which can be made anew for every attempt. */
export interface MultipartBody {
  readonly contentType: string;
  readonly contentLength: number;
  create(): AsyncIterable<Uint8Array>;
}

export interface MultipartFile {
  readonly name: string;
  readonly fileName: string;
  readonly mediaType: string;
  readonly source: ByteSource;
}

/** A body of text fields, in order, and one file behind them. `undefined` fields are left out. */
export function createMultipartBody(
  fields: Readonly<Record<string, string | undefined>>,
  file: MultipartFile,
): MultipartBody {
  const boundary = `parley-${randomBytes(16).toString("hex")}`;
  let head = "";
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    head += `--${boundary}\r\ncontent-disposition: form-data; name="${escapeName(name)}"\r\n\r\n${value}\r\n`;
  }
  head +=
    `--${boundary}\r\ncontent-disposition: form-data; name="${escapeName(file.name)}"; ` +
    `filename="${escapeName(file.fileName)}"\r\ncontent-type: ${toMediaType(file.mediaType)}\r\n\r\n`;
  const before = Buffer.from(head, "utf8");
  const after = Buffer.from(`\r\n--${boundary}--\r\n`, "latin1");
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    contentLength: before.length + file.source.sizeBytes + after.length,
    create() {
      return pieces(before, file.source, after);
    },
  };
}

async function* pieces(
  before: Uint8Array,
  source: ByteSource,
  after: Uint8Array,
): AsyncGenerator<Uint8Array> {
  yield before;
  yield* source.read();
  yield after;
}

/** @see https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#multipart-form-data */
function escapeName(name: string): string {
  return name.replace(/\r\n?|\n/g, "%0D%0A").replaceAll('"', "%22");
}

function toMediaType(mediaType: string): string {
  return /^[\w.+-]+\/[\w.+-]+(?:;[\w=. "-]+)?$/.test(mediaType) ? mediaType : "application/octet-stream";
}
