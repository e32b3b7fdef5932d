import { fork, type ChildProcess } from "node:child_process";
import { Worker } from "node:worker_threads";

/** The limits of {@link runBoundedWorker}. */
interface WorkerLimits {
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

const host = new URL("./bounded-process-host.ts", import.meta.url);
/** The input is sent in pieces, because serializing 75 MB at once would block the event loop. */
const pieceBytes = 1_000_000;

/** It has no tokens or keys, which decoders do not need. The settings make glibc return freed memory. */
const env = { MALLOC_ARENA_MAX: "1", MALLOC_MMAP_THRESHOLD_: "1048576" };

type Outcome = Awaited<ReturnType<typeof runBoundedWorker>>;

/** What the process receives after its input, which comes in pieces. */
export interface HostedRun {
  readonly module: string;
  readonly input: object;
  readonly sizeBytes: number;
  readonly limits: WorkerLimits;
}

/** A message of the process: one from the worker, or the worker's outcome. */
export type HostMessage =
  | { readonly posted: unknown }
  | { readonly outcome: Outcome }
  | { readonly failure: string };

/**
 * Does the same as {@link runBoundedWorker} in a separate process, for decoders that need much memory. The C
 * library keeps freed memory, and only returns it when the process ends. The worker sends its next message
 * after "continue".
 * @throws Error when the process ends without an outcome, and otherwise as runBoundedWorker
 */
export async function runBoundedProcess(
  module: URL,
  { bytes, ...input }: { readonly bytes: Uint8Array },
  limits: WorkerLimits,
  onMessage: (message: unknown) => void | Promise<void>,
  signal: AbortSignal,
): Promise<Outcome> {
  signal.throwIfAborted();
  const child = fork(host, { serialization: "advanced", execArgv: [], env, stdio: "ignore" });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const abort = (): void => void child.kill("SIGKILL");
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await new Promise<Outcome>((resolve, reject) => {
      child.once("error", reject);
      child.once("disconnect", () => reject(new Error("the process of a decoder has ended")));
      const handle = async (message: HostMessage): Promise<void> => {
        if ("outcome" in message) resolve(message.outcome);
        else if ("failure" in message) reject(new Error(message.failure));
        else {
          await onMessage(message.posted);
          await send(child, "continue");
        }
      };
      child.on("message", (message) => void handle(message as HostMessage).catch(reject));
      const run: HostedRun = { module: module.href, input, sizeBytes: bytes.length, limits };
      sendInput(child, bytes, run).catch(reject);
    });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", abort);
    child.kill("SIGKILL");
    // The caller continues only when the memory is free.
    if (child.pid !== undefined) await exited;
  }
}

async function sendInput(child: ChildProcess, bytes: Uint8Array, run: HostedRun): Promise<void> {
  for (let at = 0; at < bytes.length; at += pieceBytes)
    await send(child, bytes.subarray(at, at + pieceBytes));
  await send(child, run);
}

function send(child: ChildProcess, message: Uint8Array | HostedRun | "continue"): Promise<void> {
  return new Promise((resolve, reject) => {
    child.send(message, (error) => {
      if (error === null) resolve();
      else reject(error);
    });
  });
}
