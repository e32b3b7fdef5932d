import { defineCommand } from "../src/core/command.ts";
import { describeRule } from "../src/core/rule-words.ts";
import { translate } from "../src/words/translate.ts";

export default defineCommand({
  name: "dismiss",
  description: "Send me away from this thread",
  options: {},
  visibility: "public",
  needsOthers: true,
  run: async ({ services }) => {
    await services.leaveThread();
    const rule = (await services.ruleHere()) ?? { answerTo: "addressed", isPeoples: true };
    return await services.say(translate("dismiss.done", { rule: describeRule(rule) }));
  },
});
