import { createFairSemaphore } from "../../support/queues.ts";
import { runBoundedProcess } from "../../support/bounded-worker.ts";

/** The documents whose text can be read. */
export type DocumentFormat = "pdf" | "docx" | "xlsx" | "pptx" | "odt" | "ods" | "odp";

/** What the text of a document does not contain. */
export type Omission =
  /** Content past the limit: only the first `read` of `count` were read. */
  | { readonly kind: "pages" | "slides" | "sheets"; readonly read: number; readonly count: number }
  /** Pages of a PDF without text, such as scans. `pages` are the first of them, from 1. */
  | { readonly kind: "blank-pages"; readonly count: number; readonly pages: readonly number[] }
  /** `count` is absent where it is not known. */
  | { readonly kind: "pictures"; readonly count?: number }
  /** Sheets of which only the first rows were read. */
  | { readonly kind: "rows"; readonly sheets: readonly string[] }
  | { readonly kind: "characters"; readonly read: number };

/** The text of a document as Markdown, and what it leaves out. */
export interface DocumentText {
  readonly text: string;
  readonly omissions: readonly Omission[];
}

/**
 * Why a document has no text. `too-large`: it unpacks to more than the limit. `timeout` and `memory`: reading
 * it took more than the worker may take. `damaged` also means a file of another kind than it seems.
 */
export type DocumentProblem = "encrypted" | "damaged" | "no-text" | "too-large" | "timeout" | "memory";

/** The error that is thrown inside the process. */
export class DocumentError extends Error {
  readonly problem: DocumentProblem;

  constructor(problem: DocumentProblem, cause?: unknown) {
    super(`document not read: ${problem}`, cause === undefined ? undefined : { cause });
    this.name = "DocumentError";
    this.problem = problem;
  }
}

/** The limits of one document. */
export const documentLimits = {
  /** The pages of a PDF. */
  pages: 200,
  slides: 200,
  sheets: 30,
  /** The characters of text in total. */
  chars: 100_000,
  /** What an office document may unpack to, without its pictures. */
  unpackedBytes: 64_000_000,
  /** The XML of a sheet. The rows after it are left out. 8 MB are some 100,000 cells. */
  sheetBytes: 8_000_000,
} as const;

/**
 * The process for one document. Its memory is free when it ends, and a hostile file takes no other's:
 * buffers, which a PDF of 1 kB can make of any size, are not part of a heap.
 */
const processLimits = { timeoutMs: 20_000, maxHeapMb: 384, maxGrowthBytes: 400_000_000 };
const worker = new URL("./document-worker.ts", import.meta.url);

/** Two documents at a time limit the memory, one of a person. Those who wait take turns. */
const turns = createFairSemaphore({ max: 2, maxPerKey: 1 });

/** The message that the worker posts. */
export type DocumentMessage = DocumentText | { readonly problem: DocumentProblem };

/**
 * Reads the text of a document in a process of its own, with at most 20 s, 400 MB, 200 pages and 100,000
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
    const input = { bytes, format };
    const outcome = await runBoundedProcess(
      worker,
      input,
      processLimits,
      (posted) => {
        message = posted as DocumentMessage;
      },
      signal,
    );
    return outcome === "done" ? message : { problem: outcome };
  } catch {
    signal.throwIfAborted();
    // The system ends a process where it is short of memory.
    return { problem: "memory" };
  } finally {
    release();
  }
}
