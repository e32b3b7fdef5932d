const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const unitMs: Readonly<Record<string, number>> = { m: minuteMs, h: 60 * minuteMs, d: dayMs, w: 7 * dayMs };
/** Further back nothing is read. */
const maxMs = 366 * dayMs;

/**
 * Reads since when something is wanted: a duration back from `now` (`2h`, `3 days`), `today`, `yesterday` (their beginning,
 * UTC), or a date with or without a time, in UTC. Resolves to Unix ms. `undefined`: it is none of these, in the future,
 * or more than a year ago.
 */
export function parseSince(text: string, now: number): number | undefined {
  const since = toTime(text.trim().toLowerCase(), now);
  return since === undefined || Number.isNaN(since) || since > now || since < now - maxMs ? undefined : since;
}

function toTime(text: string, now: number): number | undefined {
  const midnight = Math.floor(now / dayMs) * dayMs;
  if (text === "today") return midnight;
  if (text === "yesterday") return midnight - dayMs;
  const duration = /^(\d{1,4}) ?(m|h|d|w)(?:in(?:ute)?s?|ours?|ays?|eeks?)?$/.exec(text) ?? undefined;
  if (duration !== undefined) return now - Number(duration[1]) * (unitMs[duration[2] ?? ""] ?? Number.NaN);
  const date = /^(\d{4}-\d\d-\d\d)(?:[ t](\d\d:\d\d))?$/.exec(text) ?? undefined;
  return date === undefined ? undefined : Date.parse(`${date[1]}T${date[2] ?? "00:00"}:00Z`);
}
