import { Worker } from "node:worker_threads";

/** Limits of {@link runBoundedWorker}. */
export interface WorkerLimits {
  readonly timeoutMs: number;
  /** JavaScript heap of the worker. */
  readonly maxHeapMb: number;
  /** Growth of the whole process while the worker runs, in bytes: typed arrays are outside of the heap. */
  readonly maxGrowthBytes: number;
}

/** How often the memory is measured: a decoder allocates a gigabyte in less than a second. */
const watchMs = 20;

/**
 * Runs a module in a worker thread with `input` as its `workerData`. Each message it posts is passed to `onMessage`.
 * Resolves to `done`, or to the limit that it exceeded, once the thread has ended and its memory is free.
 * @throws the error that the module throws; the signal's reason
 */
export async function runBoundedWorker(
  module: URL,
  input: { readonly bytes: Uint8Array<ArrayBuffer> },
  limits: WorkerLimits,
  onMessage: (message: unknown) => void,
  signal: AbortSignal,
): Promise<"done" | "timeout" | "memory"> {
  signal.throwIfAborted();
  const { maxHeapMb, maxGrowthBytes, timeoutMs } = limits;
  const before = process.memoryUsage.rss();
  const worker = new Worker(module, {
    workerData: input,
    transferList: [input.bytes.buffer],
    resourceLimits: { maxOldGenerationSizeMb: maxHeapMb, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 },
    // Tokens and keys of the process are none of the decoders' business.
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
  const timer = setTimeout(() => end("timeout"), timeoutMs);
  const watch = setInterval(() => {
    if (process.memoryUsage.rss() - before > maxGrowthBytes) end("memory");
  }, watchMs);
  const abort = (): void => void worker.terminate();
  signal.addEventListener("abort", abort, { once: true });
  try {
    await new Promise<void>((resolve) => {
      worker.on("message", onMessage);
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
