import { runBoundedProcess } from "../../support/bounded-worker.ts";
import { createFairSemaphore } from "../../support/queues.ts";
import type { CutInput, CutMessage, RecordingPart } from "./cut-into-parts.ts";

/** The limits for each part. Its samples are 20 MB, and some formats' decoders hold the file once more. */
const workerLimits = { timeoutMs: 60_000, maxHeapMb: 256, maxGrowthBytes: 500_000_000 };
const worker = new URL("./cut-worker.ts", import.meta.url);

/** How many long recordings run at once. Each has a process and some 200 MB while it is transcribed. */
const turns = createFairSemaphore({ max: 2, maxPerKey: 1 });

/**
 * When and how recordings are cut. Services commonly take 25 MB, and some at most 25 minutes. A part is WAV
 * of 32 kB a second, 19.2 MB.
 */
export const cutLimits = {
  wholeSeconds: 20 * 60,
  wholeBytes: 24_000_000,
  partSeconds: 10 * 60,
  maxSeconds: 4 * 60 * 60,
} as const;

/**
 * What became of a recording. `whole`: it need not be cut. `cut`: each part was handled, and after the
 * seconds `leftOutFrom` nothing was read. After `undecodable`, or a limit of the worker, parts may have been
 * handled before.
 */
export type CutOutcome =
  | { readonly kind: "whole"; readonly seconds: number }
  | { readonly kind: "cut"; readonly leftOutFrom?: number }
  | { readonly kind: "undecodable" | "timeout" | "memory" };

/**
 * Cuts a long recording where it is quiet, in its own process. Parts come in order, and the next one when
 * `onPart` has resolved, so that two are never in memory.
 * @param key who waits in turn, e.g. a person
 * @throws what `onPart` throws, or the signal's reason
 */
export async function cutRecording(
  input: CutInput,
  key: string,
  onPart: (part: RecordingPart) => Promise<void>,
  signal: AbortSignal,
): Promise<CutOutcome> {
  const release = await turns.acquire(key, 1, signal);
  let outcome: CutOutcome = { kind: "cut" };
  let failure: { readonly error: unknown } | undefined;
  const onMessage = async (posted: unknown): Promise<void> => {
    const message = posted as CutMessage;
    if (message.kind === "whole") outcome = message;
    if (message.kind === "left-out") outcome = { kind: "cut", leftOutFrom: message.fromSeconds };
    if (message.kind !== "part") return;
    try {
      await onPart(message.part);
    } catch (error) {
      failure = { error };
      throw error;
    }
  };
  try {
    const ended = await runBoundedProcess(worker, input, workerLimits, onMessage, signal);
    return ended === "done" ? outcome : { kind: ended };
  } catch (error) {
    signal.throwIfAborted();
    if (failure !== undefined) throw error;
    return { kind: "undecodable" };
  } finally {
    release();
  }
}
