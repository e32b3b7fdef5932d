import { defineCommand } from "../src/core/command.ts";
import { translate } from "../src/words/translate.ts";

export default defineCommand({
  name: "reset",
  description: "Start over here: the model forgets what was said, people still see it",
  options: {},
  visibility: "public",
  run: async ({ services }) => {
    const isReset = await services.reset();
    return await services.say(translate(isReset ? "reset.done" : "reset.nothing"));
  },
});
