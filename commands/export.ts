import { defineCommand } from "../src/core/command.ts";

export default defineCommand({
  name: "export",
  description: "Get this conversation as files",
  options: {},
  visibility: "private",
  run: ({ services }) => services.exportConversation(),
});
