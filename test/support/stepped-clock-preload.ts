import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

// This is preloaded with --import (see clock-stepper.ts). It shifts the wall clock of this process by the
// number of milliseconds in the file that the query names. `performance.now` and timers go on as they are,
// like the system's monotonic clock.
const url = new URL(import.meta.url);
const file = url.searchParams.get("file") ?? fileURLToPath(new URL("offset", url));
const readEveryMs = 10;

const SystemDate = Date;
const systemNow = Date.now;
let offsetMs = 0;
let readAt = -Infinity;

function now(): number {
  const at = performance.now();
  if (at - readAt >= readEveryMs) {
    readAt = at;
    offsetMs = readOffset();
  }
  return systemNow() + offsetMs;
}

function readOffset(): number {
  try {
    const read = Number(readFileSync(file, "utf8"));
    return Number.isFinite(read) ? read : offsetMs;
  } catch {
    // The file is gone: the test is over, and the clock keeps its offset.
    return offsetMs;
  }
}

class SteppedDate extends SystemDate {
  static override now = now;

  constructor(...values: [] | [number | string | Date]) {
    // With several numbers, `Date` reads them as year, month and so on.
    super(...((values.length === 0 ? [now()] : values) as [number]));
  }
}

globalThis.Date = new Proxy(SteppedDate, {
  // Called without `new`, it returns text.
  apply: () => new SystemDate(now()).toString(),
}) as unknown as DateConstructor;
