import { expect, it } from "vitest";
import { createWorld, message, said } from "../../../support/fakes.ts";

// A thread has the id of the message it hangs on, on Discord and on Slack: its key may be the id of the conversation.
it("what was said in a thread before is sent with the message that the thread hangs on, when that is a question later", async () => {
  const world = await createWorld();
  try {
    for (const event of [message("My ship is a sloop."), message("Which is it?", { key: "fake:c1" })]) {
      await world.answered(event);
    }
    expect(said(world.gateway.requests.at(-1))).toEqual([
      "system: Be brief.",
      "user: My ship is a sloop.",
      "assistant: you said: My ship is a sloop.",
      "user: Which is it?",
    ]);
  } finally {
    await world.close();
  }
});
