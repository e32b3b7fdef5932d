import { expect, test } from "vitest";
import { createPostedMessages } from "../../../../src/platforms/slack/posted-messages.ts";
import type { SlackMessageInfo } from "../../../../src/platforms/slack/message-info.ts";
import type { MessageRef } from "../../../../src/platforms/slack/web-api.ts";

const channel = "D1";
const own: Partial<SlackMessageInfo> = { user: "UBOT" };
const refOf = (ts: string): MessageRef => ({ channel, ts });

/** Looks for the first message of a reply in a thread with these messages. `others`: what other turns show. */
async function findIn(messages: readonly SlackMessageInfo[], others: readonly string[] = []) {
  const posted = createPostedMessages(
    {
      // eslint-disable-next-line typescript/require-await -- pages in memory
      async *messagesAfter() {
        yield* messages;
      },
    },
    { key: "slack:T1:D1:100.0", channel, thread: "100.0", user: "U1", since: 100_000 },
    {
      botUserId: "UBOT",
      otherTurnsShow: (refs) => Promise.resolve(refs.filter(({ ts }) => others.includes(ts))),
    },
  );
  return await posted.find(0, []);
}

const marked = (mark: string) => ({ metadata: { event_payload: { mark } } });

test("a reply's message is known by its mark", async () => {
  const messages = [
    { ...own, ts: "101.0", ...marked("slack:T1:D1:100.0/0") },
    { ...own, ts: "102.0", ...marked("slack:T1:D1:99.0/0") },
    { ...own, ts: "103.0" },
  ];
  expect(await findIn(messages)).toEqual([refOf("101.0")]);
});

test("a stream that was started right before a crash is the bot's message without a mark", async () => {
  const messages = [
    { ...own, ts: "101.0" },
    { user: "U1", ts: "102.0" },
  ];
  expect(await findIn(messages)).toEqual([refOf("101.0")]);
});

test("the stream of another open turn of the thread is not taken for it", async () => {
  const messages = [
    { ...own, ts: "101.0" },
    { ...own, ts: "102.0" },
  ];
  expect(await findIn(messages, ["102.0"])).toEqual([refOf("101.0")]);
  expect(await findIn(messages, ["101.0", "102.0"])).toEqual([]);
});
