import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { IncomingEvent, ReplyAddress } from "../../../../src/core/events.ts";
import type { Person } from "../../../simulators/discord/people.ts";
import type { ChannelHandle } from "../../../simulators/discord/simulator.ts";
import { startHarness, type Harness, until } from "./harness.ts";

// Discord knows a nonce for a few minutes only.
const laterMs = 10 * 60_000;

describe("a reply whose first message was posted and not saved, resumed ten minutes later", () => {
  let harness: Harness;
  let ada: Person;
  let direct: ChannelHandle;
  let general: ChannelHandle;
  beforeEach(async () => {
    harness = await startHarness();
    ada = harness.simulator.person("Ada");
    direct = harness.simulator.directMessages(ada);
    general = harness.simulator.channel("general");
  });
  afterEach(() => harness.close());

  const event = (count: number): Promise<IncomingEvent> => until(() => harness.receiver.events[count - 1]);

  /** Shows and posts half an answer, and ends before it is saved. Resolves to the address that was saved. */
  async function crash(address: ReplyAddress, channel: () => ChannelHandle | undefined) {
    let saved = address;
    const before = channel()?.fromBot().length ?? 0;
    const reply = harness.platform.openReply(address, {
      async saveAddress(grown) {
        if ((grown as { messages?: readonly unknown[] }).messages?.length === 0)
          saved = structuredClone(grown);
        else await new Promise(() => undefined);
      },
    });
    await reply.show();
    reply.write({ text: "Half" });
    await until(() => (channel()?.fromBot().length ?? 0) > before);
    reply.abandon();
    await harness.restart();
    harness.simulator.advance(laterMs);
    return saved;
  }

  async function answer(address: ReplyAddress, text: string): Promise<void> {
    const reply = harness.platform.openReply(address, { saveAddress: () => Promise.resolve() });
    await reply.show();
    reply.write({ text });
    await reply.finish();
  }

  test("is edited in direct messages, and nothing of other turns", async () => {
    ada.sends({ channel: direct, text: "one" });
    const first = await event(1);
    await answer(first.address, "The first answer.");
    ada.sends({ channel: direct, text: "two" });
    const saved = await crash((await event(2)).address, () => direct);
    await answer(saved, "The second answer.");
    expect(direct.fromBot().map(({ text }) => text)).toEqual(["The first answer.", "The second answer."]);
  });

  test("is edited in the thread", async () => {
    ada.sends({ channel: general, text: "what?", mentionBot: true });
    const saved = await crash((await event(1)).address, () => general.threads()[0]);
    await answer(saved, "That.");
    expect(general.threads()).toHaveLength(1);
    expect(
      general
        .threads()[0]
        ?.fromBot()
        .map(({ text }) => text),
    ).toEqual(["That."]);
  });

  test("is edited in the channel, where a thread could be opened by now", async () => {
    const permission = "CREATE_PUBLIC_THREADS";
    general.deny(permission);
    ada.sends({ channel: general, text: "what?", mentionBot: true });
    const saved = await crash((await event(1)).address, () => general);
    harness.simulator.world.channels.get(general.id)?.denied.delete(permission);
    await answer(saved, "That.");
    expect(general.threads()).toEqual([]);
    expect(general.fromBot().map(({ text }) => text)).toEqual(["That."]);
  });

  test("is posted where there was none", async () => {
    ada.sends({ channel: direct, text: "one" });
    let saved: ReplyAddress | undefined;
    const reply = harness.platform.openReply((await event(1)).address, {
      saveAddress: async (grown) => void (saved = structuredClone(grown)),
    });
    await reply.show();
    reply.abandon();
    await harness.restart();
    harness.simulator.advance(laterMs);
    await answer(saved!, "Here.");
    expect(direct.fromBot().map(({ text }) => text)).toEqual(["Here."]);
  });

  test("is not the answer of another turn that this process has posted meanwhile", async () => {
    ada.sends({ channel: direct, text: "one" });
    let saved: ReplyAddress | undefined;
    const reply = harness.platform.openReply((await event(1)).address, {
      saveAddress: async (grown) => void (saved = structuredClone(grown)),
    });
    await reply.show();
    reply.abandon();
    await harness.restart();
    harness.simulator.advance(laterMs);
    ada.sends({ channel: direct, text: "two" });
    await answer((await event(1)).address, "The second answer.");
    await answer(saved!, "The first answer.");
    expect(direct.fromBot().map(({ text }) => text)).toEqual(["The second answer.", "The first answer."]);
  });

  test("is not the answer of another turn that another process has posted meanwhile", async () => {
    ada.sends({ channel: direct, text: "one" });
    let saved: ReplyAddress | undefined;
    const { address } = await event(1);
    const reply = harness.platform.openReply(address, {
      saveAddress: async (grown) => void (saved = structuredClone(grown)),
    });
    await reply.show();
    reply.abandon();
    ada.sends({ channel: direct, text: "two" });
    let shown: readonly string[] = [];
    const other = harness.platform.openReply((await event(2)).address, {
      saveAddress: async (grown) => void (shown = harness.platform.shownMessageKeys(grown)),
    });
    await other.show();
    other.write({ text: "The second answer." });
    await other.finish();
    await harness.restart();
    harness.simulator.advance(laterMs);
    const resumed = harness.platform.openReply(saved!, {
      saveAddress: () => Promise.resolve(),
      otherTurnsShow: async (keys) => keys.filter((key) => shown.includes(key)),
    });
    await resumed.show();
    resumed.write({ text: "The first answer." });
    await resumed.finish();
    expect(direct.fromBot().map(({ text }) => text)).toEqual(["The second answer.", "The first answer."]);
  });
});
