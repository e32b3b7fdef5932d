import { randomBytes } from "node:crypto";
import { open, readdir, readFile, rm, stat, writeFile, mkdir, utimes } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import { type Attachment, isClaimedSound } from "../../core/events.ts";
import type { Sealer } from "../../core/platform-module.ts";
import type { DownloadOptions } from "../../core/platform.ts";
import { createByteCollector, createByteLimit } from "../../support/byte-collector.ts";
import { expiryTime, systemClock } from "../../support/clock.ts";
import { unlessMissing } from "../../support/unless-missing.ts";
import { sharedPerson } from "./address.ts";

/** How long a file that was sent is kept after its last use, for recovery and Retry. */
const sentMs = 24 * 3_600_000;
/** How long a file that was not sent is kept. */
const unsentMs = 2 * 3_600_000;
/** Pages that were told of a picture or recording may still be loading it when its message is stored. */
export const shownMs = 30_000;
/** After this time, no process is writing a file that has no description. */
const brokenOffMs = 3_600_000;
/** Many empty or tiny files would use up the disk's inodes. */
const maxFiles = 1000;
/** The part of all files and bytes that one account may have, so that others have room too. */
const maxShareOfAccount = 1 / 4;
/** A slower upload is ended: fewer bytes a second on average than this, after `graceMs`. */
const slowest = { bytesPerSecond: 1024, graceMs: 15_000 };

/** The description of an upload beside its bytes. */
export interface UploadMeta {
  readonly name: string;
  readonly mediaType: string;
  readonly sizeBytes: number;
  readonly durationMs?: number;
  /** The `Author.id` of the sender. Absent for {@link sharedPerson}. */
  readonly owner?: string;
  /** Unix ms. */
  readonly createdAt: number;
  /** The message it was sent with, or `undefined` before that. */
  readonly sentIn?: {
    readonly conversationId: string;
    readonly messageKey: string;
    /** A call reads its files anew in each attempt, but a message only until it is stored. */
    readonly isCall: boolean;
  };
}

/** An uploaded file. Files are uploaded before their message is sent. */
export interface Upload extends UploadMeta {
  readonly id: string;
}

/** The options of {@link createUploads}. */
interface UploadOptions {
  readonly sealer: Sealer;
  /** The limit of one file. */
  readonly maxBytes: number;
  /** The limit of a file that claims to be a recording. The default is that of other files. */
  readonly maxRecordingBytes?: number;
  /** The limit of all files together, those that are being received included. */
  readonly maxTotalBytes: number;
  /** Nothing is kept for longer than this. For the default see {@link createUploads}. */
  readonly retentionMs?: number | undefined;
  readonly now?: () => number;
}

interface Entry {
  readonly meta: UploadMeta | undefined;
  readonly sizeOnDisk: number;
  readonly usedAt: number;
}

/**
 * Keeps uploaded files on disk, sealed, so that messages and their files survive a restart until they are
 * processed. A file is removed once its message is stored, and half a minute later if it is a picture or
 * recording, which pages load. At the latest it is removed a day after its last use, or two hours after if it
 * was not sent.
 */
export function createUploads(directory: string, options: UploadOptions) {
  const { maxTotalBytes, retentionMs = Infinity, now = () => systemClock.now() } = options;
  const maxBytesOf = (claimed: Pick<Attachment, "name" | "mediaType" | "durationMs">): number =>
    isClaimedSound(claimed) ? (options.maxRecordingBytes ?? options.maxBytes) : options.maxBytes;
  const files = createUploadFiles(directory, options.sealer);
  let loading: Promise<Map<string, Entry>> | undefined;
  /** From when on nobody needs the files of a message, by its key and in Unix ms. */
  const neededUntil = new Map<string, number>();
  let inProgress = 0;
  /** The bytes of all files, those that are being received included. */
  let usedBytes = 0;

  /** Returns all files by id, read from disk once. */
  function entries(): Promise<Map<string, Entry>> {
    loading ??= files.list().then(
      (found) => {
        for (const { sizeOnDisk } of found) usedBytes += sizeOnDisk;
        return new Map(
          found.map(({ id, ...entry }) => [
            id,
            { ...entry, usedAt: Math.max(entry.usedAt, entry.meta?.createdAt ?? 0) },
          ]),
        );
      },
      (cause: unknown) => {
        loading = undefined;
        throw new ParleyError("store-unavailable", "uploads directory could not be read", { cause });
      },
    );
    return loading;
  }

  async function find(id: string): Promise<Upload | undefined> {
    const meta = (await entries()).get(id)?.meta;
    return meta === undefined ? undefined : { id, ...meta };
  }

  async function remove(id: string): Promise<void> {
    const all = await entries();
    const entry = all.get(id);
    if (entry === undefined) return;
    await files.remove(id);
    if (all.delete(id)) usedBytes -= entry.sizeOnDisk;
  }

  /** Removes the files that were sent and fulfil the condition. Returns how many. */
  async function removeSent(
    isMeant: (sentIn: NonNullable<UploadMeta["sentIn"]>, isShown: boolean) => boolean,
  ): Promise<number> {
    const meant = [...(await entries())].filter(
      ([, { meta }]) => meta?.sentIn !== undefined && isMeant(meta.sentIn, isShownByPages(meta)),
    );
    for (const [id] of meant) await remove(id);
    return meant.length;
  }

  async function saveMeta({ id, ...meta }: Upload): Promise<void> {
    const all = await entries();
    const entry = all.get(id);
    if (entry === undefined) return;
    await files.writeMeta(id, meta);
    all.set(id, { ...entry, meta, usedAt: now() });
  }

  /** Whether an account has used its share. The shared account stands for everybody and may use all. */
  function isShareUsed(all: ReadonlyMap<string, Entry>, owner = sharedPerson.author.id): boolean {
    if (owner === sharedPerson.author.id) return false;
    const own = [...all.values()].filter(({ meta }) => meta?.owner === owner);
    const bytes = own.reduce((sum, { sizeOnDisk }) => sum + sizeOnDisk, 0);
    return own.length >= maxFiles * maxShareOfAccount || bytes >= maxTotalBytes * maxShareOfAccount;
  }

  /** Counts a body against the limits as it arrives. */
  async function* counted(
    request: IncomingMessage,
    { name, maxBytes }: { readonly name: string; readonly maxBytes: number },
    received: { bytes: number },
  ) {
    const startedAt = now();
    const limit = createByteLimit(maxBytes);
    // `destroyOnReturn` would close the socket, and so lose the answer that says what is wrong.
    const chunks = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
    for await (const chunk of chunks) {
      received.bytes += chunk.length;
      usedBytes += chunk.length;
      if (!limit.take(chunk)) throw tooLarge(name, maxBytes);
      if (usedBytes > maxTotalBytes) throw full(name, maxTotalBytes);
      const elapsedMs = now() - startedAt;
      if (elapsedMs > slowest.graceMs && received.bytes < (slowest.bytesPerSecond * elapsedMs) / 1000)
        throw new ParleyError("attachment-unreadable", "upload is too slow", { detail: { name } });
      yield chunk;
    }
  }

  return {
    /** Returns `undefined` when there is no such upload. */
    find,
    /** Removes a file. Unknown ids are ignored. */
    remove,

    /**
     * Writes a request's body to disk.
     * @throws ParleyError `attachment-too-large`, `attachment-empty`, `store-unavailable` (disk error)
     */
    async save(
      request: IncomingMessage,
      claimed: { name: string; mediaType: string; durationMs?: number; owner?: string },
    ): Promise<Upload> {
      const all = await entries();
      const maxBytes = maxBytesOf(claimed);
      const announced = Number(request.headers["content-length"] ?? 0);
      if (announced > maxBytes) throw tooLarge(claimed.name, maxBytes);
      if (all.size + inProgress >= maxFiles || usedBytes + announced > maxTotalBytes)
        throw full(claimed.name, maxTotalBytes);
      if (isShareUsed(all, claimed.owner)) throw full(claimed.name, maxTotalBytes * maxShareOfAccount);
      const id = randomBytes(16).toString("hex");
      const received = { bytes: 0 };
      inProgress += 1;
      try {
        await files.write(id, counted(request, { name: claimed.name, maxBytes }, received));
        if (received.bytes === 0)
          throw new ParleyError("attachment-empty", "upload is empty", { detail: { name: claimed.name } });
        const meta: UploadMeta = { ...claimed, sizeBytes: received.bytes, createdAt: now() };
        await files.writeMeta(id, meta);
        all.set(id, { meta, sizeOnDisk: received.bytes, usedAt: now() });
        return { id, ...meta };
      } catch (cause) {
        usedBytes -= received.bytes;
        await files.remove(id);
        if (isParleyError(cause)) throw cause;
        throw new ParleyError("store-unavailable", "upload could not be written", { cause });
      } finally {
        inProgress -= 1;
      }
    },

    /**
     * Returns the bytes of an attachment made by {@link toAttachment}.
     * @throws ParleyError `attachment-gone`, `attachment-too-large`, `store-corrupt`
     */
    async read(attachment: Attachment, { maxBytes: wanted, signal }: DownloadOptions): Promise<Uint8Array> {
      const upload = await find(uploadIdOf(attachment) ?? "");
      if (upload === undefined) {
        throw new ParleyError("attachment-gone", "upload not found", {
          detail: { name: attachment.name },
        });
      }
      if (upload.sizeBytes > wanted) throw tooLarge(upload.name, wanted);
      const bytes = await this.bytesOf(upload, signal);
      await files.touch(upload.id, new Date(now()));
      const all = await entries();
      const entry = all.get(upload.id);
      if (entry !== undefined) all.set(upload.id, { ...entry, usedAt: now() });
      return bytes;
    },

    /** Returns the bytes of an upload. @throws ParleyError `attachment-gone`, `store-corrupt` */
    async bytesOf({ id, name, sizeBytes }: Upload, signal?: AbortSignal): Promise<Buffer> {
      let bytes: Buffer;
      try {
        bytes = await files.read(id, signal);
      } catch (cause) {
        if ((cause as NodeJS.ErrnoException).code !== "ENOENT") throw cause;
        throw new ParleyError("attachment-gone", "upload not found", { detail: { name }, cause });
      }
      if (bytes.length !== sizeBytes) throw new ParleyError("store-corrupt", "an upload was cut off");
      return bytes;
    },

    /** Saves which message a file is sent with. It counts as a use. */
    async assign(upload: Upload, sentIn: NonNullable<UploadMeta["sentIn"]>): Promise<void> {
      await saveMeta({ ...upload, sentIn });
    },

    /** Makes the files count as not sent, because the message was not accepted. */
    async release({ sentIn: _sentIn, ...upload }: Upload): Promise<void> {
      await saveMeta(upload);
    },

    /** Removes the files that were sent in a conversation. */
    async removeFrom(conversationId: string): Promise<void> {
      await removeSent((sentIn) => sentIn.conversationId === conversationId);
    },

    /** Removes everything of a person, even what was not sent. Unreadable files are removed as well. */
    async removeOf(owner: string): Promise<void> {
      for (const [id, { meta }] of await entries())
        if (meta === undefined || isOf(meta, owner)) await remove(id);
    },

    /**
     * Removes the files of messages that are stored and need them no more. Pages may be loading pictures and
     * recordings, so {@link sweep} removes those 30 s later. Files of calls stay. Returns whether a sweep is
     * due.
     */
    async markStored(messageKeys: ReadonlySet<string>): Promise<boolean> {
      await removeSent(
        ({ messageKey, isCall }, isShown) => !isCall && !isShown && messageKeys.has(messageKey),
      );
      let isDue = false;
      for (const { meta } of (await entries()).values()) {
        const { messageKey, isCall } = meta?.sentIn ?? {};
        if (messageKey === undefined || isCall === true || !messageKeys.has(messageKey)) continue;
        if ((neededUntil.get(messageKey) ?? 0) > now()) continue;
        neededUntil.set(messageKey, now() + shownMs);
        isDue = true;
      }
      return isDue;
    },

    /** Removes the files of all stored messages now, because there are no pages any more. */
    async removeStored(): Promise<void> {
      await removeSent(({ messageKey, isCall }) => !isCall && neededUntil.has(messageKey));
    },

    /**
     * Lets the next sweep remove the files of this message, whose reply is final. They are not removed at
     * once, since a call whose end is not recorded yet is run again after a crash.
     */
    expireOf(messageKey: string): void {
      neededUntil.set(messageKey, now());
    },

    /** Removes expired files and the remains of uploads that broke off. Returns how many. */
    async sweep(): Promise<number> {
      // The clock may be wrong.
      if (expiryTime() === undefined) return 0;
      const at = now();
      const expired = [...(await entries())].filter(([, { meta, usedAt }]) => {
        if (meta === undefined) return at - usedAt > brokenOffMs;
        if (meta.sentIn !== undefined && at >= (neededUntil.get(meta.sentIn.messageKey) ?? Infinity))
          return true;
        const keepMs = meta.sentIn === undefined ? unsentMs : sentMs;
        return at - usedAt > keepMs || at - meta.createdAt > retentionMs;
      });
      for (const [key, until] of neededUntil) if (at >= until) neededUntil.delete(key);
      for (const [id] of expired) await remove(id);
      return expired.length;
    },
  };
}

export type Uploads = ReturnType<typeof createUploads>;

/** Whether this person sent it. */
export function isOf(
  { owner = sharedPerson.author.id }: Pick<UploadMeta, "owner">,
  authorId: string,
): boolean {
  return owner === authorId;
}

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

/** Whether pages load the file itself. They show other files by name. */
function isShownByPages({ mediaType }: UploadMeta): boolean {
  return /^(image|audio|video)\//.test(mediaType);
}

function uploadIdOf(attachment: Attachment): string | undefined {
  const source = attachment.source;
  if (typeof source !== "object" || source === null || !("uploadId" in source)) return undefined;
  return typeof source.uploadId === "string" ? source.uploadId : undefined;
}

function full(name: string, maxBytes: number): ParleyError {
  return new ParleyError("attachment-too-large", "uploads directory is full", { detail: { name, maxBytes } });
}

function tooLarge(name: string, maxBytes: number): ParleyError {
  return new ParleyError("attachment-too-large", `upload over ${maxBytes} bytes`, {
    detail: { name, maxBytes },
  });
}

const idPattern = /^[0-9a-f]{32}$/;
/** How many bytes are sealed at once. An upload needs no more memory than this. */
const chunkBytes = 1024 * 1024;
const lengthBytes = 4;

/** A file on disk as it was found at the start. */
interface FoundUpload {
  readonly id: string;
  /** `undefined` where the file was not completed, or cannot be opened with the keys. */
  readonly meta: UploadMeta | undefined;
  readonly sizeOnDisk: number;
  /** Unix ms. */
  readonly usedAt: number;
}

/**
 * Keeps uploads on disk, sealed. `<id>` holds chunks, each with its length before it, and `<id>.json` holds
 * their description. Every chunk is bound to its upload and position, so that chunks cannot be exchanged.
 */
function createUploadFiles(directory: string, sealer: Sealer) {
  const bodyOf = (id: string) => join(directory, id);
  const metaOf = (id: string) => join(directory, `${id}.json`);
  const chunkName = (id: string, index: number) => `upload/${id}/${index}`;
  const metaName = (id: string) => `upload/${id}/meta`;

  async function readMeta(id: string): Promise<UploadMeta | undefined> {
    try {
      const opened = sealer.open(metaName(id), await readFile(metaOf(id)));
      return JSON.parse(Buffer.from(opened).toString("utf8")) as UploadMeta;
    } catch {
      // It is missing, or sealed with a key that is gone. Then the upload is gone too.
      return undefined;
    }
  }

  return {
    /** Lists everything in the folder. */
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

    /** @throws ParleyError as {@link Sealer.open} does, or an Error with code `ENOENT` without a file */
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

    /** Removes a file, or does nothing where there is none. */
    async remove(id: string): Promise<void> {
      await rm(metaOf(id), { force: true });
      await rm(bodyOf(id), { force: true });
    },
  };
}

async function* inChunks(source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  const content = createByteCollector(Infinity);
  for await (const part of source) {
    content.add(part);
    if (content.bytes() >= chunkBytes) yield content.take();
  }
  if (content.bytes() > 0) yield content.take();
}
