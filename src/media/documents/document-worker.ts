import { parentPort, workerData } from "node:worker_threads";
import { DocumentError, type DocumentFormat } from "./document.ts";
import { convertDocument } from "./convert-document.ts";
import type { DocumentMessage } from "./read-document.ts";

// The entry of the worker thread that `read-document.ts` starts.
const { bytes, format } = workerData as { bytes: Uint8Array<ArrayBuffer>; format: DocumentFormat };
let message: DocumentMessage;
try {
  message = await convertDocument(bytes, format);
} catch (error) {
  // What the libraries throw says that they do not understand the file.
  message = { problem: error instanceof DocumentError ? error.problem : "damaged" };
}
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
parentPort?.postMessage(message);
