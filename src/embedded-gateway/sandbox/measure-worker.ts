import { parentPort, workerData } from "node:worker_threads";
import type { Recording } from "../../media/recordings/recording-format.ts";
import { measureRecording } from "./measure-recording.ts";

// The entry of the worker thread that `listen.ts` starts.
await measureRecording(workerData as Recording, (measurement) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(measurement);
});
