import { fork, type ChildProcess } from "node:child_process";
import type { runBoundedWorker, WorkerLimits } from "./bounded-worker.ts";

const host = new URL("./bounded-process-host.ts", import.meta.url);
/** The input is sent in pieces: to serialise 75 MB at once would hold up the event loop. */
const pieceBytes = 1_000_000;

/**
 * Tokens and keys are none of the decoders' business. The settings of glibc have it give back what is freed, measured:
 * 330 MB instead of 420 for a recording.
 */
const env = { MALLOC_ARENA_MAX: "1", MALLOC_MMAP_THRESHOLD_: "1048576" };

type Outcome = Awaited<ReturnType<typeof runBoundedWorker>>;

/** What the process is sent after its input, which comes in pieces. */
export interface HostedRun {
  readonly module: string;
  readonly input: object;
  readonly sizeBytes: number;
  readonly limits: WorkerLimits;
}

/** What the process sends: a message of the worker, or how it ended. */
export type HostMessage =
  | { readonly posted: unknown }
  | { readonly outcome: Outcome }
  | { readonly failure: string };

/**
 * Does what {@link runBoundedWorker} does, in a process of its own. For decoders of much memory: the C library keeps what
 * is freed in this process, in pieces for each thread, and gives it back when the process ends. The next message
 * of the worker comes after "continue".
 * @throws Error when the process ends without an outcome; otherwise as runBoundedWorker
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
    // Its memory is free when the caller goes on.
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
