import { defineCommand } from "../src/core/command.ts";
import { ParleyError } from "../src/core/errors.ts";
import { parseSince } from "../src/core/since.ts";
import { translate } from "../src/words/translate.ts";

export default defineCommand({
  name: "summarize",
  description: "Sum up what was said here",
  options: {
    what: { kind: "string", maxChars: 300, description: "What matters to you: decisions, what concerns me" },
    since: {
      kind: "string",
      maxChars: 40,
      description: "2h, 3d, today, yesterday or a date; without it the last 200",
    },
    private: { kind: "boolean", description: "No: everybody sees the summary" },
  },
  // Usually somebody catches up: to those who have said it all it would be noise.
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
    await services.summarize({ what: options.what, since });
  },
});
