import { defineCommand, modelOption } from "../src/core/command.ts";
import { describeRule } from "../src/core/rule-words.ts";
import { translate } from "../src/words/translate.ts";

export default defineCommand({
  name: "chat",
  description: "Open a new conversation with the model",
  options: {
    message: { kind: "string", description: "What you want to begin with" },
    model: modelOption("chat", "The model for this conversation"),
  },
  visibility: "public",
  spends: "chat",
  examples: ["/chat Help me to plan a trip to Oslo"],
  run: async ({ options, services }) => {
    const { message, model } = options;
    const { notices } = await services.openConversation({ message, model });
    const rule = await services.ruleHere();
    const opened = translate(message === undefined ? "chat.opened" : "chat.opened.go-on");
    const words = rule === undefined ? [] : [describeRule({ ...rule, isPeoples: false })];
    return await services.say([opened, ...words].join(" "), { notices });
  },
});
