import { createHash } from "node:crypto";
import type { RawFile } from "discord.js";
import type { Json } from "../../core/events.ts";
import type { ReplyFile } from "../../core/platform.ts";
import { fitFiles } from "./files.ts";

/** Uploads of files in messages; a repeated one posts only what was not posted before. */
export interface Uploads {
  /**
   * Calls `post` for each message that the files need, one after another, with a nonce that stays the same when the call
   * is repeated for the same array.
   * Resolves to the references of all messages.
   * @throws what `post` throws: the next call goes on with that message
   */
  run(
    files: readonly ReplyFile[],
    maxFileBytes: number,
    post: (batch: RawFile[], nonce: string) => Promise<Json>,
  ): Promise<readonly Json[]>;
}

interface Batch {
  readonly files: RawFile[];
  readonly nonce: string;
}

/**
 * @see {@link Uploads}
 * @param eventId of the event that is answered: a process that resumes the reply uses the same nonces
 */
export function createUploads(eventId: string | undefined): Uploads {
  /** What is left to post of each, and what was posted. */
  const pending = new WeakMap<readonly ReplyFile[], { readonly left: Batch[]; readonly refs: Json[] }>();

  function nonceOf(batch: readonly RawFile[]): string {
    if (eventId === undefined) return randomNonce();
    const hash = createHash("sha256");
    for (const { data } of batch) hash.update(data as Uint8Array);
    // An event's id has up to 20 characters, a nonce 25.
    return `${eventId}.${hash.digest("hex").slice(0, 4)}`;
  }

  return {
    async run(files, maxFileBytes, post) {
      let uploading = pending.get(files);
      if (uploading === undefined) {
        const fitted = await fitFiles(files, maxFileBytes);
        uploading = { left: fitted.map((batch) => ({ files: batch, nonce: nonceOf(batch) })), refs: [] };
        pending.set(files, uploading);
      }
      const { left, refs } = uploading;
      for (let batch = left[0]; batch !== undefined; batch = left[0]) {
        refs.push(await post(batch.files, batch.nonce));
        left.shift();
      }
      return refs;
    },
  };
}

/** A nonce for a message that no other process posts. */
export function randomNonce(): string {
  return crypto.randomUUID().replaceAll("-", "").slice(0, 25);
}
