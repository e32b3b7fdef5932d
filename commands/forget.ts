import { defineCommand } from "../src/core/command.ts";
import type { ErasureReport } from "../src/core/storage.ts";

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
    // Who somebody is on another platform is not known.
    const place = where === "here" ? "in this conversation" : "in all your conversations on this platform";
    if (options.confirm !== true && !isConfirmed) {
      const found = await services.countForgettable(where);
      if (isNothing(found)) {
        await services.say(`There is nothing of yours ${place}.`, { isStored: false });
        return;
      }
      await services.say(
        `This removes for good ${sumOf(found)} ${place}. Where nobody else took part the whole conversation goes, with the answers; elsewhere only what you said. What the chat platform itself keeps stays there. \`/export\` gives you a copy first.\n\nIf there is no button: \`/forget where:${where} confirm:yes\``,
        { confirm: found.messages === 0 ? "Remove" : `Remove ${count(found.messages, "message")}` },
      );
      return;
    }
    const removed = await services.forget(where);
    await services.say(
      isNothing(removed) ? `There was nothing of yours ${place}.` : `Removed ${place}: ${sumOf(removed)}.`,
      { isStored: false },
    );
  },
});

function isNothing({ messages, conversations, settings = 0 }: ErasureReport): boolean {
  return messages === 0 && conversations === 0 && settings === 0;
}

/** "12 messages and 3 files (1 whole conversation)" */
function sumOf({ messages, blobs, conversations, settings = 0 }: ErasureReport): string {
  const parts = [
    count(messages, "message"),
    ...(blobs === 0 ? [] : [count(blobs, "file")]),
    ...(settings === 0 ? [] : [count(settings, "setting")]),
  ].join(" and ");
  return conversations === 0 ? parts : `${parts} (${count(conversations, "whole conversation")})`;
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}
