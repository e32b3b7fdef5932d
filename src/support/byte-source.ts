import { open } from "node:fs/promises";

/** Bytes that can be read repeatedly without holding them all in memory. */
export interface ByteSource {
  readonly sizeBytes: number;
  /**
   * A new reader of all `sizeBytes` bytes. Chunks are at most 64 KiB. Contract for the reader: a chunk's memory is
   * reused from the eighth chunk after it on, so it must have been written to the socket by then.
   */
  read(): AsyncIterable<Uint8Array>;
}

const chunkBytes = 64 * 1024;
/** A socket's high-water mark is one chunk, so at most two chunks are in flight at any time. */
const bufferCount = 8;

/** A source over bytes in memory; nothing is copied. */
export function bytesSource(bytes: Uint8Array): ByteSource {
  return {
    sizeBytes: bytes.length,
    async *read() {
      for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
    },
  };
}

/** A source over a file. The size is read now; a file that shrinks later fails the upload. */
export async function fileSource(path: string): Promise<ByteSource> {
  const file = await open(path, "r");
  const { size } = await file.stat();
  await file.close();
  return {
    sizeBytes: size,
    async *read() {
      const handle = await open(path, "r");
      try {
        // A new buffer for each chunk is collected late: 64 MB of garbage was measured.
        const buffers = Array.from({ length: bufferCount }, () => Buffer.allocUnsafeSlow(chunkBytes));
        for (let at = 0, count = 0; at < size; count++) {
          const buffer = buffers[count % bufferCount] ?? Buffer.allocUnsafe(chunkBytes);
          const { bytesRead } = await handle.read(buffer, 0, chunkBytes, at);
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
