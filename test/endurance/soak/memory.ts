import { readFileSync } from "node:fs";

/** Returns the resident memory of a process in bytes (Linux), or `undefined` where it has ended. */
export function residentBytes(pid: number | undefined): number | undefined {
  try {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}

/** Returns the median, or NaN without values. */
function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? (sorted[middle] ?? Number.NaN)
    : ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2;
}

/** Returns by which factor memory has grown from the second fifth of the samples to the last. */
export function growthOf(samples: readonly number[]): number {
  const fifth = Math.max(1, Math.floor(samples.length / 5));
  return medianOf(samples.slice(-fifth)) / medianOf(samples.slice(fifth, 2 * fifth));
}

/** Sums the resident memory of a process and its children in bytes (Linux). Shared memory counts for each. */
export function residentBytesOfFamily(pid: number | undefined): number | undefined {
  const own = residentBytes(pid);
  if (own === undefined) return undefined;
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
  return own + children.reduce((sum, child) => sum + (residentBytes(Number(child)) ?? 0), 0);
}
