import { defineCommand } from "../src/core/command.ts";

export default defineCommand({
  name: "reset",
  description: "Start over here: the model forgets what was said, people still see it",
  options: {},
  visibility: "public",
  run: async ({ services }) => {
    const isReset = await services.reset();
    await services.say(
      isReset ? "Started over. The model no longer sees what was said before." : "There was nothing yet.",
    );
  },
});
