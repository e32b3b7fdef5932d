import type { ReplyFile } from "../../core/platform.ts";

/** Uploads the files of a reply. */
export interface FileQueue {
  /** Resolves when the platform has the file; rejects with the error of the upload. */
  add(file: ReplyFile): Promise<void>;
  /** Resolves when no upload is in flight, successful or not. */
  idle(): Promise<void>;
  /** Number of uploaded files. */
  count(): number;
}

interface Waiting {
  readonly file: ReplyFile;
  resolve(): void;
  reject(error: unknown): void;
}

/** Uploads files in order. Files added in one tick or during an upload are uploaded together. */
export function createFileQueue(upload: (files: readonly ReplyFile[]) => Promise<void>): FileQueue {
  let waiting: Waiting[] = [];
  let running: Promise<void> | undefined;
  let count = 0;

  async function drain(): Promise<void> {
    // Collects the files that are added in this tick.
    await Promise.resolve();
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        await upload(batch.map(({ file }) => file));
        count += batch.length;
        for (const entry of batch) entry.resolve();
      } catch (error) {
        for (const entry of batch) entry.reject(error);
      }
    }
    running = undefined;
  }

  return {
    add: (file) =>
      new Promise((resolve, reject) => {
        waiting.push({ file, resolve, reject });
        running ??= drain();
      }),
    async idle() {
      for (let current = running; current !== undefined; current = running) await current;
    },
    count: () => count,
  };
}
