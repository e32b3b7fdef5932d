import { describe } from "vitest";
import { tellStoriesOver } from "../../e2e/slack/slack-story.ts";

// The same stories as over the socket: whoever uses Slack sees no difference.
tellStoriesOver("http");

describe("over HTTP: conversations", async () => {
  await import("./conversation.test.ts");
});
describe("over HTTP: commands", async () => {
  await import("./commands.test.ts");
});
describe("over HTTP: the store", async () => {
  await import("./store.test.ts");
});
describe("over HTTP: access", async () => {
  await import("./access.test.ts");
});
