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
/** Lifetime after the last use. A sent file is kept for a Retry. */
const keepMs = 24 * 3_600_000;

interface UploadMeta {
  readonly name: string;
  readonly mediaType: string;
  readonly sizeBytes: number;
  readonly durationMs?: number;
  /** The conversation it was sent in; `undefined` before. */
  readonly conversationId?: string;
}

/** An uploaded file. Files are uploaded before their message is sent. */
export interface Upload extends UploadMeta {
  readonly id: string;
}

/**
 * Uploaded files on disk, so that messages and their files survive a restart until they are processed. A file is
 * removed a day after its last use. `maxTotalBytes` limits all files together.
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
    /** `undefined` when there is no such upload. */
    find,

    /**
     * Streams a request's body to disk.
     * @throws ParleyError `attachment-too-large`, `attachment-empty`, `store-unavailable` (disk error)
     */
    async save(
      request: IncomingMessage,
      claimed: { name: string; mediaType: string; durationMs?: number },
    ): Promise<Upload> {
      const announced = Number(request.headers["content-length"] ?? 0);
      if (announced > limits.maxBytes) throw tooLarge(claimed.name, limits.maxBytes);
      await mkdir(directory, { recursive: true, mode: 0o700 });
      if ((await totalBytes()) + announced > limits.maxTotalBytes) {
        throw new ParleyError("attachment-too-large", "uploads directory is full", {
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
          throw new ParleyError("attachment-empty", "upload is empty", { detail: { name: claimed.name } });
        }
        const meta: UploadMeta = { ...claimed, sizeBytes };
        await writeFile(`${pathOf(id)}.json`, JSON.stringify(meta), { mode: 0o600 });
        return { id, ...meta };
      } catch (cause) {
        await rm(pathOf(id), { force: true });
        if (isParleyError(cause)) throw cause;
        throw new ParleyError("store-unavailable", "upload could not be written", { cause });
      }
    },

    /**
     * The bytes of an attachment made by {@link toAttachment}.
     * @throws ParleyError `attachment-gone`, `attachment-too-large`
     */
    async read(attachment: Attachment, options: DownloadOptions): Promise<Uint8Array> {
      const id = uploadIdOf(attachment);
      const upload = id === undefined ? undefined : await find(id);
      if (upload === undefined) {
        throw new ParleyError("attachment-gone", "upload not found", {
          detail: { name: attachment.name },
        });
      }
      if (upload.sizeBytes > options.maxBytes) throw tooLarge(upload.name, options.maxBytes);
      const bytes = await readFile(pathOf(upload.id), { signal: options.signal });
      await this.touch(upload.id);
      return bytes;
    },

    /** The bytes of an upload that exists. */
    async bytesOf(id: string): Promise<Buffer> {
      return await readFile(pathOf(id));
    },

    /** Saves the conversation that a file was sent in. Counts as a use. */
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

    /** Counts as a use. */
    async touch(id: string): Promise<void> {
      const now = new Date();
      await utimes(`${pathOf(id)}.json`, now, now);
    },

    /** Removes a file. Unknown ids are ignored. */
    async remove(id: string): Promise<void> {
      if (!idPattern.test(id)) return;
      await rm(`${pathOf(id)}.json`, { force: true });
      await rm(pathOf(id), { force: true });
    },

    /** Removes expired files and the remains of uploads that broke off. Returns how many. */
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

/** @see {@link createUploads} */
export type Uploads = ReturnType<typeof createUploads>;

/** Converts an upload to an event's attachment. */
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
