import { defineCommand } from "../src/core/command.ts";
import type { ErasureReport } from "../src/core/storage.ts";
import { translate } from "../src/words/translate.ts";

export default defineCommand({
  name: "forget",
  description: "Remove what you said, here or everywhere, for good",
  options: {
    where: {
      kind: "string",
      choices: ["here", "everywhere"],
      description: "This conversation, or all of them",
    },
    confirm: {
      kind: "boolean",
      description: "Yes, remove it at once; without this you are asked first",
    },
  },
  visibility: "private",
  examples: ["/forget where:here"],
  run: async ({ options, services, isConfirmed }) => {
    const where = options.where === "everywhere" ? "everywhere" : "here";
    // The bot does not know who somebody is on another platform.
    const place = translate(`forget.${where}`);
    if (options.confirm !== true && !isConfirmed) {
      const found = await services.countForgettable(where);
      if (isNothing(found)) {
        return await services.say(translate("forget.nothing", { place }), { isStored: false });
      }
      return await services.say(
        [
          translate((await services.help()).isForOne ? "forget.ask.alone" : "forget.ask", {
            what: sumOf(found),
            place,
          }),
          translate("forget.or-write", { command: `\`/forget where:${where} confirm:yes\`` }),
        ].join("\n\n"),
        {
          confirm:
            found.messages === 0
              ? translate("forget.button")
              : translate("forget.button.count", { count: found.messages }),
        },
      );
    }
    const removed = await services.forget(where);
    return await services.say(
      isNothing(removed)
        ? translate("forget.was-nothing", { place })
        : translate("forget.removed", { place, what: sumOf(removed) }),
      { isStored: false },
    );
  },
});

function isNothing({ messages, conversations, settings, ratings }: ErasureReport): boolean {
  return messages === 0 && conversations === 0 && settings === 0 && ratings === 0;
}

/** "12 messages and 3 files (1 whole conversation)" */
function sumOf({ messages, blobs, conversations, settings, ratings }: ErasureReport): string {
  const parts = [
    translate("forget.messages", { count: messages }),
    ...(blobs === 0 ? [] : [translate("forget.files", { count: blobs })]),
    ...(settings === 0 ? [] : [translate("forget.settings", { count: settings })]),
    ...(ratings === 0 ? [] : [translate("forget.ratings", { count: ratings })]),
  ].join(translate("forget.and"));
  return conversations === 0 ? parts : translate("forget.conversations", { parts, count: conversations });
}
