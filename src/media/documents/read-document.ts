import { createFairSemaphore } from "../../support/fair-semaphore.ts";
import { runBoundedWorker } from "../../support/bounded-worker.ts";
import type { DocumentFormat, DocumentProblem, DocumentText } from "./document.ts";

/** The worker for one document. It alone loads the libraries, whose memory is free when it ends. */
const workerLimits = { timeoutMs: 20_000, maxHeapMb: 384, maxGrowthBytes: 600_000_000 };
const worker = new URL("./document-worker.ts", import.meta.url);

/** One document at a time limits the memory. Those who wait take turns. */
const turns = createFairSemaphore({ max: 1, maxPerKey: 1 });

/** The message that the worker posts. */
export type DocumentMessage = DocumentText | { readonly problem: DocumentProblem };

/**
 * Reads the text of a document in a worker thread, with at most 20 s, 384 MB of heap, 200 pages and 100,000
 * characters. It never blocks the event loop. A document that cannot be read is a `problem`, not an error.
 * @param key who waits in turn, e.g. a person
 * @throws the signal's reason
 */
export async function readDocument(
  bytes: Uint8Array,
  format: DocumentFormat,
  key: string,
  signal: AbortSignal,
): Promise<DocumentMessage> {
  const release = await turns.acquire(key, 1, signal);
  try {
    let message: DocumentMessage = { problem: "damaged" };
    // The bytes are copied, since the thread takes their memory over.
    const input = { bytes: new Uint8Array(bytes), format };
    const outcome = await runBoundedWorker(
      worker,
      input,
      workerLimits,
      (posted) => {
        message = posted as DocumentMessage;
      },
      signal,
    );
    return outcome === "done" ? message : { problem: outcome };
  } finally {
    release();
  }
}
