import { defineCommand } from "../src/core/command.ts";
import { translate } from "../src/words/translate.ts";

export default defineCommand({
  name: "dismiss",
  description: "Send me away from this thread",
  options: {},
  visibility: "public",
  run: async ({ services }) => {
    await services.leaveThread();
    await services.say(translate("dismiss.done"));
  },
});
