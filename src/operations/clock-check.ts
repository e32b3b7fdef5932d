import { right, wrong, type Finding } from "../core/checks.ts";

/** What a service's clock showed, and this machine's when the response arrived. Unix ms. */
export interface NotedDate {
  readonly service: string;
  readonly serviceMs: number;
  readonly localMs: number;
}

/** `Date` headers have whole seconds, and responses take their time. */
const maxDifferenceMs = 30_000;

/** Compares this machine's clock with those of services. Empty without a date. */
export function toClockFindings(dates: readonly NotedDate[]): Finding[] {
  const differences = dates.map(({ service, serviceMs, localMs }) => ({ service, ms: localMs - serviceMs }));
  const [nearest] = differences.toSorted((a, b) => Math.abs(a.ms) - Math.abs(b.ms));
  if (nearest === undefined) return [];
  // Services that agree with this machine clear it; one whose own clock is wrong does not blame it.
  if (Math.abs(nearest.ms) <= maxDifferenceMs)
    return [right("Time", `agrees with ${nearest.service}'s clock`)];
  return [
    wrong(
      "Time",
      `this machine's clock is ${toWords(Math.abs(nearest.ms))} ${nearest.ms < 0 ? "behind" : "ahead of"} ${nearest.service}'s`,
      "turn on time synchronisation: timedatectl set-ntp true",
    ),
  ];
}

function toWords(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} seconds`;
  if (seconds < 2 * 3600) return `${Math.round(seconds / 60)} minutes`;
  return seconds < 2 * 86_400
    ? `${Math.round(seconds / 3600)} hours`
    : `${Math.round(seconds / 86_400)} days`;
}
