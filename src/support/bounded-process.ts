import { fork, type ChildProcess } from "node:child_process";
import type { runBoundedWorker, WorkerLimits } from "./bounded-worker.ts";

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
