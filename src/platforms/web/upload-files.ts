import { open, readdir, readFile, rm, stat, writeFile, mkdir, utimes } from "node:fs/promises";
import { join } from "node:path";
import type { Sealer } from "../../core/platform-module.ts";
import type { UploadMeta } from "./uploads.ts";
import { unlessMissing } from "../../support/unless-missing.ts";

const idPattern = /^[0-9a-f]{32}$/;
/** Bytes that are sealed at once: an upload needs no more memory than this. */
const chunkBytes = 1024 * 1024;
const lengthBytes = 4;

/** A file on disk as it was found at the start. */
export interface FoundUpload {
  readonly id: string;
  /** `undefined`: it was not completed, or cannot be opened with the keys. */
  readonly meta: UploadMeta | undefined;
  readonly sizeOnDisk: number;
  /** Unix ms. */
  readonly usedAt: number;
}

/**
 * Uploads on disk, sealed: `<id>` holds chunks, each with its length before it, and `<id>.json` what is known of them.
 * Every chunk is bound to its upload and position, so that chunks cannot be exchanged.
 */
export function createUploadFiles(directory: string, sealer: Sealer) {
  const bodyOf = (id: string) => join(directory, id);
  const metaOf = (id: string) => join(directory, `${id}.json`);
  const chunkName = (id: string, index: number) => `upload/${id}/${index}`;
  const metaName = (id: string) => `upload/${id}/meta`;

  async function readMeta(id: string): Promise<UploadMeta | undefined> {
    try {
      const opened = sealer.open(metaName(id), await readFile(metaOf(id)));
      return JSON.parse(Buffer.from(opened).toString("utf8")) as UploadMeta;
    } catch {
      // Missing, or sealed with a key that is gone: there is no such upload any more.
      return undefined;
    }
  }

  return {
    /** Everything in the folder. */
    async list(): Promise<FoundUpload[]> {
      const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return [];
        throw error;
      });
      const ids = new Set(
        names.map((name) => name.replace(/\.json$/, "")).filter((id) => idPattern.test(id)),
      );
      return await Promise.all(
        [...ids].map(async (id) => {
          const [body, meta] = await Promise.all([
            unlessMissing(stat(bodyOf(id))),
            unlessMissing(stat(metaOf(id))),
          ]);
          return {
            id,
            meta: body === undefined ? undefined : await readMeta(id),
            sizeOnDisk: body?.size ?? 0,
            usedAt: (meta ?? body)?.mtimeMs ?? 0,
          };
        }),
      );
    },

    /** Writes a body as it arrives. @throws what `source` throws */
    async write(id: string, source: AsyncIterable<Uint8Array>): Promise<void> {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const file = await open(bodyOf(id), "wx", 0o600);
      try {
        let index = 0;
        const writeChunk = async (bytes: Uint8Array): Promise<void> => {
          const sealed = sealer.seal(chunkName(id, index), bytes);
          const length = Buffer.alloc(lengthBytes);
          length.writeUInt32BE(sealed.byteLength);
          index += 1;
          await file.writev([length, sealed]);
        };
        for await (const chunk of inChunks(source)) await writeChunk(chunk);
      } finally {
        await file.close();
      }
    },

    async writeMeta(id: string, meta: UploadMeta): Promise<void> {
      const sealed = sealer.seal(metaName(id), Buffer.from(JSON.stringify(meta)));
      await writeFile(metaOf(id), sealed, { mode: 0o600 });
    },

    /** @throws ParleyError as {@link Sealer.open} does; an Error with code `ENOENT` where there is no such file */
    async read(id: string, signal?: AbortSignal): Promise<Buffer> {
      const stored = await readFile(bodyOf(id), signal === undefined ? {} : { signal });
      const chunks: Uint8Array[] = [];
      for (let at = 0; at + lengthBytes <= stored.length;) {
        const end = at + lengthBytes + stored.readUInt32BE(at);
        chunks.push(sealer.open(chunkName(id, chunks.length), stored.subarray(at + lengthBytes, end)));
        at = end;
      }
      return Buffer.concat(chunks);
    },

    /** Marks a file as used at `time`. */
    async touch(id: string, time: Date): Promise<void> {
      await utimes(metaOf(id), time, time);
    },

    /** Files that are not there are ignored. */
    async remove(id: string): Promise<void> {
      await rm(metaOf(id), { force: true });
      await rm(bodyOf(id), { force: true });
    },
  };
}

async function* inChunks(source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of source) {
    parts.push(part);
    size += part.byteLength;
    if (size < chunkBytes) continue;
    yield Buffer.concat(parts);
    parts = [];
    size = 0;
  }
  if (size > 0) yield Buffer.concat(parts);
}
