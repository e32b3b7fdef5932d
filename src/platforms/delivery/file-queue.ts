import type { ReplyFile } from "../../core/platform.ts";

/** Files on their way into a reply. */
export interface FileQueue {
  /** Resolves when the platform has it; rejects with what the upload failed with. */
  add(file: ReplyFile): Promise<void>;
  /** Resolves when nothing is on its way, whether it arrived or not. */
  idle(): Promise<void>;
  /** Files the platform has. */
  count(): number;
}

interface Waiting {
  readonly file: ReplyFile;
  resolve(): void;
  reject(error: unknown): void;
}

/** Uploads files in the order they come, together those that come together or while others are on their way. */
export function createFileQueue(upload: (files: readonly ReplyFile[]) => Promise<void>): FileQueue {
  let waiting: Waiting[] = [];
  let running: Promise<void> | undefined;
  let count = 0;

  async function drain(): Promise<void> {
    // Those that are added in the same breath go together.
    await Promise.resolve();
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        await upload(batch.map(({ file }) => file));
        count += batch.length;
        for (const one of batch) one.resolve();
      } catch (error) {
        for (const one of batch) one.reject(error);
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
