import { parentPort, workerData } from "node:worker_threads";
import { decoderOf, readFormat, type Recording } from "../../media/recordings/recording-format.ts";

// This is the entry of the worker thread that `sandbox.ts` starts. It posts what the headers say, then a
// counted length where they name none. The sound is decoded in pieces, since some formats decode to 100,000
// times their size.
const chunkBytes = 4096;
const maxSeconds = 900;

const { bytes, mediaType, container } = workerData as Recording;
const format = await readFormat(bytes, mediaType);
post(format);
if (format.duration === undefined) post({ ...format, duration: await countSeconds() });

async function countSeconds(): Promise<number> {
  const { default: decode } = await import("audio-decode");
  let seconds = 0;
  for await (const { channelData, sampleRate } of decode(chunks(), decoderOf(container, format))) {
    seconds += (channelData[0]?.length ?? 0) / sampleRate;
    if (seconds >= maxSeconds) break;
  }
  return seconds;
}

async function* chunks(): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}

function post(message: object): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(message);
}
