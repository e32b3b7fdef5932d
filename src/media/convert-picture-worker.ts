import { parentPort, workerData } from "node:worker_threads";
import { isParleyError } from "../core/errors.ts";
import { convertPicture, type ConvertMessage, type PictureInput } from "./image.ts";

// This is the entry of the worker thread that `image.ts` starts in its own process. It converts one picture.
let message: ConvertMessage;
try {
  message = { picture: await convertPicture(workerData as PictureInput) };
} catch (error) {
  if (!isParleyError(error)) throw error;
  message = { code: error.code, message: error.message, detail: error.detail };
}
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
parentPort?.postMessage(message);
