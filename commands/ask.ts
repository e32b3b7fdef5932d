import { defineCommand, modelOption } from "../src/core/command.ts";

export default defineCommand({
  name: "ask",
  description: "Ask the model one question, with a picture if you like",
  options: {
    prompt: { kind: "string", description: "What you want to know", required: true },
    image: { kind: "attachment", accepts: "image", description: "A picture to look at" },
    model: modelOption("chat"),
    private: { kind: "boolean", description: "Only you see the answer" },
  },
  visibility: "public",
  spends: "chat",
  messageCommand: { label: "Ask about this", asks: ["prompt", "model", "private"] },
  examples: ["/ask Why is the sky blue?", "/ask What is in this picture? image:https://example.com/cat.png"],
  run: ({ options, services }) =>
    services.answer({ text: options.prompt, image: options.image, model: options.model }),
});
