import type { APIMessage } from "discord.js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { IncomingEvent } from "../../../../src/core/events.ts";
import type { ChannelHandle } from "../../../simulators/discord/simulator.ts";
import type { SeenMessage } from "../../../simulators/discord/transcript.ts";
import type { Person } from "../../../simulators/discord/people.ts";
import { createReplyChains } from "../../../../src/platforms/discord/reply-chains.ts";
import { createListLog, startHarness, type Harness, until } from "./harness.ts";

describe("conversations without a thread", () => {
  let harness: Harness;
  let ada: Person;
  let general: ChannelHandle;
  beforeEach(async () => {
    harness = await startHarness();
    ada = harness.simulator.person("Ada");
    general = harness.simulator.channel("general");
    general.deny("CREATE_PUBLIC_THREADS");
  });
  afterEach(() => harness.close());

  const event = (count: number): Promise<IncomingEvent> =>
    until(() => harness.receiver.events[count - 1], { explain: () => harness.lines });
  const answer = async ({ address }: IncomingEvent, text: string): Promise<SeenMessage[]> => {
    const before = general.fromBot().length;
    const reply = harness.platform.openReply(address, { saveAddress: () => Promise.resolve() });
    await reply.show();
    reply.write({ text });
    await reply.finish();
    return general.fromBot().slice(before);
  };
  const long = (word: string): string =>
    Array.from({ length: 60 }, (_, n) => `Paragraph ${n}. ${`${word} `.repeat(10)}`).join("\n\n");

  test("a chain of replies is one conversation, also in the middle of it and after a restart", async () => {
    ada.sends({ channel: general, text: "one", mentionBot: true });
    const first = await event(1);
    const [one] = await answer(first, "1");
    harness.receiver.known.add(first.conversationId);
    ada.sends({ channel: general, text: "two", replyTo: one! });
    const [two] = await answer(await event(2), "2");
    const asked = ada.sends({ channel: general, text: "three", replyTo: two! });
    expect((await event(3)).conversationId).toBe(first.conversationId);
    const [three] = await answer(await event(3), "3");
    // Without what the first process remembers.
    const { restart } = harness;
    await restart();
    harness.receiver.known.add(first.conversationId);
    ada.sends({ channel: general, text: "four", replyTo: three! });
    expect(await event(1)).toMatchObject({ conversationId: first.conversationId, text: "four" });
    expect(three?.replyTo).toBe(asked.id);
  });

  test("a reply to any message of a long answer goes on", async () => {
    ada.sends({ channel: general, text: "one", mentionBot: true });
    const first = await event(1);
    const shown = await answer(first, long("word"));
    expect(shown.length).toBeGreaterThan(1);
    harness.receiver.known.add(first.conversationId);
    ada.sends({ channel: general, text: "two", replyTo: shown.at(-1)! });
    expect((await event(2)).conversationId).toBe(first.conversationId);
  });

  test("a chain in which a question was deleted begins a new conversation", async () => {
    ada.sends({ channel: general, text: "one", mentionBot: true });
    const first = await event(1);
    const [one] = await answer(first, "1");
    harness.receiver.known.add(first.conversationId);
    const second = ada.sends({ channel: general, text: "two", replyTo: one! });
    const [two] = await answer(await event(2), "2");
    ada.deletes(second);
    await harness.restart();
    harness.receiver.known.add(first.conversationId);
    const next = ada.sends({ channel: general, text: "three", replyTo: two! });
    expect((await event(1)).conversationId).toBe(`discord:${next.id}`);
  });

  test("the deletion of a later question reaches the conversation of the first one", async () => {
    ada.sends({ channel: general, text: "one", mentionBot: true });
    const first = await event(1);
    const [one] = await answer(first, "1");
    harness.receiver.known.add(first.conversationId);
    const second = ada.sends({ channel: general, text: "two", replyTo: one! });
    const { key } = await event(2);
    ada.deletes(second);
    await until(() =>
      harness.receiver.deletedMessages.some(
        (one) => one.key === key && one.conversationId === first.conversationId,
      ),
    );
  });
});

test("a chain of 200 questions is found after a restart with one look-up of its last one", async () => {
  const root = "discord:1";
  const accepted = new Map(Array.from({ length: 200 }, (_, n) => [`${n + 1}`, root]));
  let reads = 0;
  const chains = createReplyChains({
    api: {
      getMessage: () => {
        reads += 1;
        return Promise.reject(new Error("not asked"));
      },
    },
    isKnown: async (id) => id === root,
    acceptedIn: async (questionId) => accepted.get(questionId),
    botId: () => "bot",
    log: createListLog().log,
  });
  const answer = {
    id: "1000",
    channel_id: "2000",
    author: { id: "bot" },
    message_reference: { message_id: "200" },
  };
  expect(await chains.find(answer as APIMessage)).toBe(root);
  expect(reads).toBe(0);
});
