import { randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Attachment } from "../../core/events.ts";
import type { DownloadOptions } from "../../core/platform.ts";

const idPattern = /^[0-9a-f]{32}$/;
/** An unsent file waits this long for its message; a sent one stays this long for a Retry. */
const keepMs = 24 * 3_600_000;

interface UploadMeta {
  readonly name: string;
  readonly mediaType: string;
  readonly sizeBytes: number;
  readonly durationMs?: number;
  /** The conversation that it was sent in. */
  readonly conversationId?: string;
}

/** A file put on the server before its message is sent. */
export interface Upload extends UploadMeta {
  readonly id: string;
}

/**
 * Files on disk between the picker and the assistant, so that a message outlives a restart with its files.
 * Each is kept for a day after it was last used, then removed; together they take at most `maxTotalBytes`.
 */
export function createUploads(directory: string, limits: { maxBytes: number; maxTotalBytes: number }) {
  const pathOf = (id: string) => join(directory, id);

  async function find(id: string): Promise<Upload | undefined> {
    if (!idPattern.test(id)) return undefined;
    try {
      const meta = JSON.parse(await readFile(`${pathOf(id)}.json`, "utf8")) as UploadMeta;
      return { id, ...meta };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  async function totalBytes(): Promise<number> {
    let total = 0;
    for (const file of await readdir(directory))
      total += (await statOrNone(join(directory, file)))?.size ?? 0;
    return total;
  }

  return {
    find,

    /**
     * Writes a request's body to disk as it comes.
     * @throws ParleyError `attachment-too-large`, `attachment-empty`, `store-unavailable` (disk)
     */
    async save(
      request: IncomingMessage,
      claimed: { name: string; mediaType: string; durationMs?: number },
    ): Promise<Upload> {
      const announced = Number(request.headers["content-length"] ?? 0);
      if (announced > limits.maxBytes) throw tooLarge(claimed.name, limits.maxBytes);
      await mkdir(directory, { recursive: true, mode: 0o700 });
      if ((await totalBytes()) + announced > limits.maxTotalBytes) {
        throw new ParleyError("attachment-too-large", "the uploads directory is full", {
          detail: { name: claimed.name, maxBytes: limits.maxTotalBytes },
        });
      }
      const id = randomBytes(16).toString("hex");
      let sizeBytes = 0;
      const cap = new Transform({
        transform(chunk: Buffer, _encoding, done) {
          sizeBytes += chunk.length;
          done(sizeBytes > limits.maxBytes ? tooLarge(claimed.name, limits.maxBytes) : null, chunk);
        },
      });
      try {
        await pipeline(request, cap, createWriteStream(pathOf(id), { flags: "wx", mode: 0o600 }));
        if (sizeBytes === 0) {
          throw new ParleyError("attachment-empty", "an empty upload", { detail: { name: claimed.name } });
        }
        const meta: UploadMeta = { ...claimed, sizeBytes };
        await writeFile(`${pathOf(id)}.json`, JSON.stringify(meta), { mode: 0o600 });
        return { id, ...meta };
      } catch (cause) {
        await rm(pathOf(id), { force: true });
        if (isParleyError(cause)) throw cause;
        throw new ParleyError("store-unavailable", "an upload could not be written", { cause });
      }
    },

    /** @throws ParleyError `attachment-gone`, `attachment-too-large` */
    async read(attachment: Attachment, options: DownloadOptions): Promise<Uint8Array> {
      const id = uploadIdOf(attachment);
      const upload = id === undefined ? undefined : await find(id);
      if (upload === undefined) {
        throw new ParleyError("attachment-gone", "the upload is not there any more", {
          detail: { name: attachment.name },
        });
      }
      if (upload.sizeBytes > options.maxBytes) throw tooLarge(upload.name, options.maxBytes);
      const bytes = await readFile(pathOf(upload.id), { signal: options.signal });
      await this.touch(upload.id);
      return bytes;
    },

    async bytesOf(id: string): Promise<Buffer> {
      return await readFile(pathOf(id));
    },

    /** Notes where a file was sent, which starts the day of keeping anew. */
    async assign({ id, ...meta }: Upload, conversationId: string): Promise<void> {
      await writeFile(`${pathOf(id)}.json`, JSON.stringify({ ...meta, conversationId }), { mode: 0o600 });
    },

    /** Removes the files that were sent in a conversation. */
    async removeFrom(conversationId: string): Promise<void> {
      const files = await readdir(directory).catch(() => []);
      for (const id of files.filter((file) => idPattern.test(file))) {
        if ((await find(id))?.conversationId === conversationId) await this.remove(id);
      }
    },

    /** Starts the day of keeping anew: it was read. */
    async touch(id: string): Promise<void> {
      const now = new Date();
      await utimes(`${pathOf(id)}.json`, now, now);
    },

    async remove(id: string): Promise<void> {
      if (!idPattern.test(id)) return;
      await rm(`${pathOf(id)}.json`, { force: true });
      await rm(pathOf(id), { force: true });
    },

    /** Removes what has waited for more than a day, and bytes that never got their description. */
    async sweep(now: number = Date.now()): Promise<number> {
      let removed = 0;
      const files = await readdir(directory).catch(() => []);
      for (const id of files.filter((file) => idPattern.test(file))) {
        const used = (await statOrNone(`${pathOf(id)}.json`)) ?? (await statOrNone(pathOf(id)));
        if (used === undefined || now - used.mtimeMs <= keepMs) continue;
        await this.remove(id);
        removed += 1;
      }
      return removed;
    },
  };
}

export type Uploads = ReturnType<typeof createUploads>;

/** The attachment that an upload becomes in an event. */
export function toAttachment(upload: Upload): Attachment {
  const { id, name, mediaType, sizeBytes, durationMs } = upload;
  return {
    id,
    name,
    mediaType,
    sizeBytes,
    ...(durationMs === undefined ? {} : { durationMs }),
    source: { uploadId: id },
  };
}

function uploadIdOf(attachment: Attachment): string | undefined {
  const source = attachment.source;
  if (typeof source !== "object" || source === null || !("uploadId" in source)) return undefined;
  return typeof source.uploadId === "string" ? source.uploadId : undefined;
}

async function statOrNone(path: string) {
  return await stat(path).catch(() => undefined);
}

function tooLarge(name: string, maxBytes: number): ParleyError {
  return new ParleyError("attachment-too-large", `upload over ${maxBytes} bytes`, {
    detail: { name, maxBytes },
  });
}
