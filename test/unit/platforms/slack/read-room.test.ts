import { expect, it } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createRoomReader } from "../../../../src/platforms/slack/intake/read-room.ts";
import { systemClock } from "../../../../src/support/clock.ts";

/** Reads direct messages for which Slack fails with this error, or has none. */
async function readDirect(slackError?: string): Promise<unknown> {
  const readRoom = createRoomReader({
    api: {
      async page() {
        if (slackError === undefined) return { messages: [], cursor: "" };
        throw new ParleyError("platform-rejected", slackError, { detail: { slackError } });
      },
    },
    identity: { teamId: "T1", userId: "U1" },
    names: {} as never,
    read: () => Promise.reject(new Error("there is nothing to read")),
    clock: systemClock,
  });
  const address = { key: "slack:T1:D1:1.0", channel: "D1", user: "U2", since: 0 };
  return await readRoom(address, { maxMessages: 10, signal: new AbortController().signal });
}

it("tells the bot's direct messages from those of other people, which Slack hides from it", async () => {
  expect(await readDirect()).toBe("alone");
  expect(await readDirect("channel_not_found")).toBe("unreadable");
});

it("takes direct messages for the bot's own where Slack does not say", async () => {
  expect(await readDirect("ratelimited")).toBe("alone");
});
