import { once } from "node:events";
import { constants, setPriority } from "node:os";
import { type HostedRun, type HostMessage, runBoundedWorker } from "./bounded-worker.ts";

// This is the entry of the process that `bounded-worker.ts` starts. It runs one thread and ends with Parley.
process.once("disconnect", () => process.exit());
// Ctrl+C in a terminal reaches this process too, but Parley finishes its turns first.
process.on("SIGINT", () => undefined);
try {
  // Answers are more urgent than decoders, whose processor time is bounded anyway.
  setPriority(constants.priority.PRIORITY_LOW);
} catch {
  // A sandbox such as that of deploy/parley.service may forbid this. The priority then stays normal.
}

const send = (message: HostMessage): void => void process.send?.(message);

const pieces: Uint8Array[] = [];
process.on("message", (message: Uint8Array | HostedRun | "continue") => {
  if (message === "continue") return;
  if (message instanceof Uint8Array) pieces.push(message);
  else void run(message);
});

async function run({ module, input, sizeBytes, limits }: HostedRun): Promise<void> {
  const bytes = new Uint8Array(sizeBytes);
  let at = 0;
  for (const piece of pieces.splice(0)) {
    bytes.set(piece, at);
    at += piece.length;
  }
  const onMessage = async (posted: unknown): Promise<void> => {
    const taken = once(process, "message");
    send({ posted });
    await taken;
  };
  // This signal never aborts, because Parley kills the process instead.
  const { signal } = new AbortController();
  try {
    send({
      outcome: await runBoundedWorker(new URL(module), { ...input, bytes }, limits, onMessage, signal),
    });
  } catch (error) {
    send({ failure: String(error) });
  }
}
