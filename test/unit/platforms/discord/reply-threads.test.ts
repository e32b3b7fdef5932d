import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ReplyAddress } from "../../../../src/core/events.ts";
import type { Reply } from "../../../../src/core/platform.ts";
import type { Person } from "../../../simulators/discord/people.ts";
import type { ChannelHandle } from "../../../simulators/discord/simulator.ts";
import { startHarness, type Harness, until } from "./harness.ts";

let harness: Harness;
let ada: Person;
let general: ChannelHandle;
beforeEach(async () => {
  harness = await startHarness();
  ada = harness.simulator.person("Ada");
  general = harness.simulator.channel("general");
});
afterEach(() => harness.close());

function open(address: ReplyAddress): { reply: Reply; saved: ReplyAddress[] } {
  const saved: ReplyAddress[] = [];
  const reply = harness.platform.openReply(address, {
    saveAddress: async (grown) => void saved.push(structuredClone(grown)),
  });
  return { reply, saved };
}

/** An answer to a mention, or to a message in its thread, that has begun to grow. */
async function begin(where: "mention" | "in its thread"): Promise<{ reply: Reply; thread: ChannelHandle }> {
  const { receiver } = harness;
  const root = ada.sends({ channel: general, text: "what?", mentionBot: true });
  await until(() => receiver.events.length === 1);
  if (where === "in its thread") {
    await harness.platform.openThread(receiver.events[0]!.address, { title: "what?" });
    ada.sends({ channel: { id: root.id }, text: "and?" });
    await until(() => receiver.events.length === 2);
  }
  const { reply } = open(receiver.events.at(-1)!.address);
  await reply.show();
  reply.write({ text: "Half" });
  const thread = await until(() => general.threads()[0]);
  await until(() => thread.fromBot().length === 1);
  return { reply, thread };
}

describe.each(["mention", "in its thread"] as const)("an answer that grows in a thread (%s)", (where) => {
  test("is completed where the thread was archived meanwhile", async () => {
    const { reply, thread } = await begin(where);
    thread.archive();
    reply.write({ text: "Half, and the rest." });
    await reply.finish();
    expect(thread.fromBot().map(({ text }) => text)).toEqual(["Half, and the rest."]);
    expect(general.fromBot()).toEqual([]);
  });

  test.each([{ archived: true }, { archived: false }])(
    "is completed in the channel where the thread was locked meanwhile ($archived)",
    async ({ archived }) => {
      const { reply, thread } = await begin(where);
      thread.archive({ locked: true, archived });
      reply.write({ text: "Half, and the rest." });
      await reply.finish();
      const [shown] = general.fromBot();
      expect(shown?.text).toMatch(/^Half, and the rest\.\n-# .*locked/);
      expect(shown?.replyTo).toBe(thread.id);
      expect(general.fromBot()).toHaveLength(1);
    },
  );

  test("a failure is shown in the channel too", async () => {
    const { reply, thread } = await begin(where);
    thread.archive({ locked: true });
    await reply.fail({ text: "The model gateway failed." });
    expect(general.fromBot()).toMatchObject([
      { text: expect.stringMatching(/^Half\n⚠️ The model gateway failed\./) },
    ]);
  });
});

test("nothing of a private thread comes into the channel", async () => {
  const { simulator, receiver } = harness;
  const thread = simulator.thread(general, ada, { isPrivate: true });
  ada.sends({ channel: thread, text: "what?", mentionBot: true });
  await until(() => receiver.events.length === 1);
  const { reply } = open(receiver.events[0]!.address);
  await reply.show();
  reply.write({ text: "Half" });
  await until(() => thread.fromBot().length === 1);
  thread.archive({ locked: true });
  reply.write({ text: "Half, and the rest." });
  await expect(reply.finish()).rejects.toMatchObject({ code: "platform-forbidden" });
  expect(general.fromBot()).toEqual([]);
});

test("the surplus of an answer that begins in a locked thread is not lost either", async () => {
  const { receiver } = harness;
  const root = ada.sends({ channel: general, text: "what?", mentionBot: true });
  await until(() => receiver.events.length === 1);
  await harness.platform.openThread(receiver.events[0]!.address, { title: "what?" });
  ada.sends({ channel: { id: root.id }, text: "and?" });
  await until(() => receiver.events.length === 2);
  general.threads()[0]?.archive({ locked: true });
  const { reply } = open(receiver.events[1]!.address);
  await reply.show();
  reply.write({ text: "All of it." });
  await reply.finish();
  expect(general.fromBot()).toMatchObject([{ text: expect.stringMatching(/^All of it\.\n-# .*locked/) }]);
});

test("without Read Message History the answer is no reply, and the log says what to grant", async () => {
  const { receiver } = harness;
  general.deny("READ_MESSAGE_HISTORY", "CREATE_PUBLIC_THREADS");
  ada.sends({ channel: general, text: "what?", mentionBot: true });
  await until(() => receiver.events.length === 1);
  const { reply } = open(receiver.events[0]!.address);
  await reply.show();
  reply.write({ text: "That." });
  await reply.finish();
  expect(general.fromBot()).toMatchObject([{ text: expect.stringMatching(/^That\./), replyTo: undefined }]);
  expect(harness.lines.some(({ fields }) => fields["permission"] === "Read Message History")).toBe(true);
});

test("the first answer in a thread that a command opened is one message, also where its address was not saved", async () => {
  const { receiver, platform } = harness;
  ada.usesCommand("chat", { message: "what?" }, { channel: general });
  await until(() => receiver.events.length === 1);
  const { address } = await platform.openThread(receiver.events[0]!.address, { title: "what?" });
  for (const run of ["first", "second"]) {
    const { reply } = open(address);
    await reply.show();
    reply.write({ text: `The ${run} run.` });
    await reply.finish();
  }
  expect(general.threads()[0]?.fromBot()).toMatchObject([{ text: "The second run." }]);
});
