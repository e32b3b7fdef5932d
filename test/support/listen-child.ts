import { readFileSync } from "node:fs";
import { describeRecording } from "../../src/embedded-gateway/sandbox/sandbox.ts";

// This listens to the file in argv[2]. It prints the description and the process's peak memory as JSON.
const bytes = readFileSync(process.argv[2] ?? "");
const before = process.memoryUsage.rss();
let description: string;
let longestGapMs = 0;
let last = performance.now();
const beat = setInterval(() => {
  longestGapMs = Math.max(longestGapMs, performance.now() - last);
  last = performance.now();
}, 5);
try {
  ({ description } = await describeRecording(
    bytes,
    { model: "sandbox/transcribe" },
    new AbortController().signal,
  ));
} catch (error) {
  description = String(error);
}
clearInterval(beat);
const peakBytes = readPeakKb() * 1024;
process.stdout.write(JSON.stringify({ description, growthBytes: peakBytes - before, longestGapMs }));

/** Reads Linux's `VmHWM`, since `resourceUsage().maxRSS` begins with the parent's memory. */
function readPeakKb(): number {
  if (process.platform !== "linux") return process.resourceUsage().maxRSS;
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1]);
}
