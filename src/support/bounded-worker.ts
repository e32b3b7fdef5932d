import { Worker } from "node:worker_threads";

/** The limits of {@link runBoundedWorker}. */
export interface WorkerLimits {
  /** The time until it ends or posts a message whose handler returns a promise, and from then on anew. */
  readonly timeoutMs: number;
  /** The JavaScript heap of the worker. */
  readonly maxHeapMb: number;
  /** How many bytes the whole process may grow, because typed arrays are outside of the heap. */
  readonly maxGrowthBytes: number;
}

/** How often memory is measured. A decoder can allocate a gigabyte in less than a second. */
const watchMs = 20;

/**
 * Runs a module in a worker thread with `input` as its `workerData`. It passes each posted message to
 * `onMessage`. If that returns a promise, the worker gets the message "continue" when it resolves. Resolves
 * to `done` or to the exceeded limit, once the thread has ended and its memory is free.
 * @throws the error that the module or `onMessage` throws, or the signal's reason
 */
export async function runBoundedWorker(
  module: URL,
  input: { readonly bytes: Uint8Array<ArrayBuffer> },
  limits: WorkerLimits,
  onMessage: (message: unknown) => void | Promise<void>,
  signal: AbortSignal,
): Promise<"done" | "timeout" | "memory"> {
  signal.throwIfAborted();
  const { maxHeapMb, maxGrowthBytes, timeoutMs } = limits;
  const before = process.memoryUsage.rss();
  const worker = new Worker(module, {
    workerData: input,
    transferList: [input.bytes.buffer],
    resourceLimits: { maxOldGenerationSizeMb: maxHeapMb, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 },
    // Decoders do not need the tokens and keys of the process.
    env: {},
    stdout: true,
    stderr: true,
  });
  let outcome: "done" | "timeout" | "memory" = "done";
  let failure: unknown;
  const end = (reason: "timeout" | "memory"): void => {
    outcome = reason;
    void worker.terminate();
  };
  let timer = setTimeout(() => end("timeout"), timeoutMs);
  let isWaiting = false;
  const handle = async (message: unknown): Promise<void> => {
    const handled = onMessage(message);
    if (handled === undefined) return;
    isWaiting = true;
    clearTimeout(timer);
    await handled;
    isWaiting = false;
    timer = setTimeout(() => end("timeout"), timeoutMs);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    worker.postMessage("continue");
  };
  const watch = setInterval(() => {
    // Other work may make the process grow while the worker waits.
    if (!isWaiting && process.memoryUsage.rss() - before > maxGrowthBytes) end("memory");
  }, watchMs);
  const abort = (): void => void worker.terminate();
  signal.addEventListener("abort", abort, { once: true });
  try {
    await new Promise<void>((resolve) => {
      worker.on("message", (message) => {
        handle(message).catch((error: unknown) => {
          failure = error;
          void worker.terminate();
        });
      });
      worker.on("error", (error: Error & { readonly code?: string }) => {
        if (error.code === "ERR_WORKER_OUT_OF_MEMORY") outcome = "memory";
        else failure = error;
      });
      worker.once("exit", () => resolve());
    });
  } finally {
    clearTimeout(timer);
    clearInterval(watch);
    signal.removeEventListener("abort", abort);
  }
  signal.throwIfAborted();
  if (failure !== undefined && outcome === "done") throw failure;
  return outcome;
}
