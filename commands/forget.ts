import { defineCommand } from "../src/assistant/commands.ts";

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
      description: "Yes, remove it; without this you are told first what would go",
    },
  },
  visibility: "private",
  run: async ({ options, services }) => {
    const where = options.where === "everywhere" ? "everywhere" : "here";
    const place =
      where === "here" ? "in this conversation" : "in all conversations, on every platform you use";
    if (options.confirm !== true) {
      await services.tell(
        `This removes for good what you said ${place}, with your pictures and voice notes. Where nobody else took part the whole conversation goes. What the chat platform itself keeps stays there.\n\nTo do it: \`/forget where:${where} confirm:yes\`. \`/export\` gives you a copy first.`,
      );
      return;
    }
    const { messages, blobs, conversations } = await services.forget(where);
    await services.tell(
      messages === 0 && conversations === 0
        ? `There was nothing of yours ${place}.`
        : `Removed ${place}: ${count(messages, "message")}, ${count(blobs, "file")}, ${count(conversations, "whole conversation")}.`,
    );
  },
});

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}
