import { defineCommand } from "../src/core/command.ts";
import { ParleyError } from "../src/core/errors.ts";
import { translate } from "../src/words/translate.ts";

export default defineCommand({
  name: "summarize",
  description: "Sum up what was said here",
  options: {
    what: {
      kind: "string",
      maxChars: 300,
      description: "What matters to you, such as: decisions, what concerns me",
    },
    since: {
      kind: "string",
      maxChars: 40,
      description: "2h, 3d, today, yesterday or a date; without it the last 200",
    },
    private: { kind: "boolean", description: "Only you see it; no: everybody does" },
  },
  // Usually somebody catches up, which would be noise for the people who wrote everything.
  visibility: "private",
  spends: "chat",
  examples: ["/summarize", "/summarize decisions since:2d", "/summarize since:yesterday private:no"],
  run: async ({ call, options, services }) => {
    const now = services.now();
    const since = options.since === undefined ? undefined : parseSince(options.since, now);
    if (options.since !== undefined && since === undefined) {
      throw new ParleyError("invalid-option", "since cannot be read", {
        detail: { command: call.name, option: "since", problem: translate("summarize.since") },
      });
    }
    return await services.summarize({ what: options.what, since });
  },
});

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const unitMs: Readonly<Record<string, number>> = { m: minuteMs, h: 60 * minuteMs, d: dayMs, w: 7 * dayMs };
/** Nothing older is read. */
const maxMs = 366 * dayMs;

/**
 * Reads a start time: a duration back from `now` (`2h`, `3 days`), the beginning of `today` or `yesterday`,
 * or a date with or without a time, all in UTC. Returns Unix ms, or `undefined` if it is none of these, in
 * the future, or more than a year ago.
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
