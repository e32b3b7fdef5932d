import { once } from "node:events";
import { parentPort, workerData } from "node:worker_threads";
import { cutIntoParts, type CutInput } from "./cut-into-parts.ts";

// This is the entry of the thread that `cut-recording.ts` starts. It goes on when its last part was taken.
await cutIntoParts(workerData as CutInput, async (message) => {
  const port = parentPort!;
  const taken = once(port, "message");
  // The part is moved, not copied, since 20 MB take the other thread some time.
  port.postMessage(message, message.kind === "part" ? [message.part.bytes.buffer] : []);
  await taken;
});
parentPort?.close();
