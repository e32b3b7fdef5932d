import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { IncomingEvent, ReplyAddress } from "../../../../src/core/events.ts";
import type { Reply, ReplyFile } from "../../../../src/core/reply.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import type { Person } from "../../../simulators/discord/people.ts";
import type { ChannelHandle } from "../../../simulators/discord/simulator.ts";
import { type Harness, startHarness, until } from "./harness.ts";

describe("lost messages", () => {
  // Discord knows a nonce for a few minutes. The process that posted the message knows it for longer.
  const [restartMs, outageMs] = [2 * 60_000, 10 * 60_000];

  describe("a reply whose first message was posted and not saved, resumed minutes later", () => {
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

    /** Posts half an answer, and ends before it is saved. Resolves to the saved address. */
    async function crash(
      address: ReplyAddress,
      channel: () => ChannelHandle | undefined,
      { endsProcess = true, file }: { readonly endsProcess?: boolean; readonly file?: ReplyFile } = {},
    ) {
      let saved = address;
      const reply = harness.platform.openReply(address, {
        async saveAddress(grown) {
          if ((grown as { messages?: readonly unknown[] }).messages?.length === 0)
            saved = structuredClone(grown);
          else await new Promise(() => undefined);
        },
      });
      await reply.show();
      if (file !== undefined) await reply.attach(file);
      const before = channel()?.fromBot().length ?? 0;
      reply.write({ text: "Half" });
      await until(() => (channel()?.fromBot().length ?? 0) > before);
      reply.abandon();
      if (endsProcess) await harness.restart();
      harness.simulator.advance(endsProcess ? restartMs : outageMs);
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

    test("is edited by the process that posted it, as after an outage of the store", async () => {
      ada.sends({ channel: direct, text: "one" });
      const saved = await crash((await event(1)).address, () => direct, { endsProcess: false });
      await answer(saved, "The answer.");
      expect(direct.fromBot().map(({ text }) => text)).toEqual(["The answer."]);
    });

    test("is edited in direct messages where files were posted before it", async () => {
      ada.sends({ channel: direct, text: "one" });
      const bytes = await fixture("picture.png");
      const file = { name: "p.png", mediaType: "image/png", bytes, altText: "" };
      const saved = await crash((await event(1)).address, () => direct, { file });
      await answer(saved, "The answer.");
      expect(direct.fromBot().map(({ text }) => text)).toEqual(["", "The answer."]);
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

    test("is edited in the channel, as a reply", async () => {
      general.deny("CREATE_PUBLIC_THREADS");
      ada.sends({ channel: general, text: "what?", mentionBot: true });
      const saved = await crash((await event(1)).address, () => general);
      await answer(saved, "That.");
      expect(general.threads()).toEqual([]);
      expect(general.fromBot()).toHaveLength(1);
      expect(general.fromBot()[0]?.text).toMatch(/^That\./);
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
      harness.simulator.advance(restartMs);
      await answer(saved!, "Here.");
      expect(direct.fromBot().map(({ text }) => text)).toEqual(["Here."]);
    });
  });
});

describe("a reply that another process resumed while this one was paused", () => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await startHarness();
  });
  afterEach(() => harness.close());

  const open = (address: ReplyAddress) =>
    harness.platform.openReply(address, { saveAddress: () => Promise.resolve() });

  /** Sends a direct message to the bot, and returns the address of its reply. */
  const ask = async (name: string, count: number) => {
    const { simulator } = harness;
    const ada = simulator.person(name);
    const direct = simulator.directMessages(ada);
    ada.sends({ channel: direct, text: "hello" });
    const { address } = await until(() => harness.receiver.events[count - 1]);
    return { direct, address };
  };
  const answer = async (address: ReplyAddress, text: string) => {
    const reply = open(address);
    await reply.show();
    reply.write({ text });
    await reply.finish();
  };

  test("an edit that failed is not sent again once the reply is abandoned", async () => {
    const { simulator } = harness;
    const { direct, address } = await ask("Ada", 1);
    const reply = open(address);
    await reply.show();
    reply.write({ text: "First" });
    await until(() => direct.fromBot().length === 1);
    let arrive = (): void => {};
    let respond = (): void => {};
    const arrived = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    const held = new Promise<void>((resolve) => {
      respond = resolve;
    });
    const hold = () => {
      arrive();
      return held;
    };
    simulator.fail({ method: "PATCH", status: 502, until: hold, times: 1 });
    reply.write({ text: "Half" });
    await arrived;
    // The process was paused until here, and learns that it has lost its lease.
    respond();
    reply.abandon();
    const other = await ask("Ben", 2);
    await answer(other.address, "To Ben.");
    const edits = simulator.requests.filter(
      ({ method, path }) => method === "PATCH" && path.includes(direct.id),
    );
    expect(edits).toHaveLength(1);
    expect(direct.fromBot()).toMatchObject([{ text: "First" }]);
  });

  test("a placeholder whose nonce returns another process's answer does not replace it", async () => {
    const { direct, address } = await ask("Ada", 1);
    await answer(address, "The whole answer.");
    await harness.restart();
    // The process that was paused posts its placeholder with the same nonce.
    const reply = open(address);
    await reply.show();
    expect(direct.fromBot()).toMatchObject([{ text: "The whole answer." }]);
    reply.abandon();
  });

  test("a text whose nonce returns another one replaces it a second later, unless the reply was abandoned by then", async () => {
    const { simulator } = harness;
    const [lost, owned] = [await ask("Ada", 1), await ask("Ben", 2)];
    for (const { address } of [lost, owned]) await answer(address, "The whole answer.");
    await harness.restart();
    const paused = open(lost.address);
    paused.write({ text: "Half" });
    const posts = () =>
      simulator.requests.filter(({ method, path }) => method === "POST" && path.endsWith("/messages"));
    await until(() => posts().length === 3);
    paused.abandon();
    const resumed = open(owned.address);
    resumed.write({ text: "Another answer." });
    await resumed.finish();
    expect(owned.direct.fromBot()).toMatchObject([{ text: "Another answer." }]);
    expect(lost.direct.fromBot()).toMatchObject([{ text: "The whole answer." }]);
  });

  test("a reply whose messages are of another application's bot, after a change of the token, is posted anew", async () => {
    const { simulator } = harness;
    const { direct, address } = await ask("Ada", 1);
    const theirs = simulator.otherBotSends({ channel: direct, text: "Half" });
    const messages = [{ channelId: direct.id, messageId: theirs.id, isOwn: true }];
    await answer({ ...address, messages }, "The whole answer.");
    expect(direct.fromBot()).toMatchObject([{ text: "The whole answer." }]);
    const token = { id: "1", applicationId: "2", token: "t", isPrivate: false, userId: "3" };
    const interaction = { ...token, expiresAt: simulator.world.now() + 60_000, maxFileBytes: 1 };
    await answer({ ...address, eventId: "9", interaction }, "A command's answer.");
    expect(direct.fromBot().at(-1)).toMatchObject({ text: "A command's answer." });
  });
});

describe("a resumed reply", () => {
  let harness: Harness;
  let ada: Person;
  beforeEach(async () => {
    harness = await startHarness();
    ada = harness.simulator.person("Ada");
  });
  afterEach(() => harness.close());

  /** Returns a text that takes a message for each of these parts. */
  const toText = (parts: readonly string[]) =>
    parts.map((part) => `${part} ${"word ".repeat(290)}`).join("\n\n");
  const shownParts = (channel: ChannelHandle) => channel.fromBot().map(({ text }) => /^\w*/.exec(text)?.[0]);

  function open(address: ReplyAddress) {
    const saved = [address];
    const reply = harness.platform.openReply(address, {
      saveAddress: async (grown) => void saved.push(structuredClone(grown)),
    });
    return { reply, saved };
  }

  for (const canRead of [true, false])
    test(`to a command ends the message that was posted and not saved, ${canRead ? "and posts no other" : "and is shown where the channel cannot be read"}`, async () => {
      const general = harness.simulator.channel("general");
      ada.usesCommand("ask", { prompt: "why?" }, { channel: general });
      const { address } = await until(() => harness.receiver.events[0]);
      let saved = address;
      const reply = harness.platform.openReply(address, {
        stop: { kind: "stop", key: "s" },
        async saveAddress(grown) {
          if (((grown as { messages?: readonly unknown[] }).messages?.length ?? 0) > 1)
            await new Promise(() => undefined);
          saved = structuredClone(grown);
        },
      });
      await reply.show();
      reply.write({ text: toText(["One", "Half"]) });
      await until(() => general.fromBot().length === 2);
      reply.abandon();
      if (!canRead) general.deny("VIEW_CHANNEL");
      const resumed = harness.platform.openReply(saved, { saveAddress: async () => {}, isResumed: true });
      await resumed.show();
      resumed.write({ text: toText(["One", "Two", "Three"]) });
      await resumed.finish();
      expect(shownParts(general)).toEqual(
        canRead ? ["One", "Two", "Three"] : ["One", "Half", "Two", "Three"],
      );
      expect(general.fromBot().flatMap(({ buttons }) => buttons)).toHaveLength(canRead ? 0 : 1);
    });

  test("that began with a file keeps its first message where it posts a second one", async () => {
    const direct = harness.simulator.directMessages(ada);
    ada.sends({ channel: direct, text: "one" });
    const { reply, saved } = open((await until(() => harness.receiver.events[0])).address);
    await reply.show();
    const bytes = await fixture("picture.png");
    await reply.attach({ name: "p.png", mediaType: "image/png", bytes, altText: "" });
    reply.write({ text: "Half" });
    await until(() => direct.fromBot().length === 2 && saved.length === 4);
    reply.abandon();
    const resumed = open(saved.at(-1)!);
    await resumed.reply.show();
    resumed.reply.write({ text: toText(["One", "Two"]) });
    await resumed.reply.finish();
    expect(shownParts(direct)).toEqual(["", "One", "Two"]);
  });
});

describe("uploads", () => {
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

  async function openReply(): Promise<Reply> {
    await until(() => harness.receiver.events.length === 1);
    const reply = harness.platform.openReply(harness.receiver.events[0]!.address, {
      saveAddress: () => Promise.resolve(),
    });
    await reply.show();
    return reply;
  }

  const pictures = async (count: number): Promise<ReplyFile[]> => {
    const bytes = await fixture("picture.png");
    return Array.from({ length: count }, (_, n) => ({
      name: `p${n}.png`,
      mediaType: "image/png",
      bytes,
      altText: `${n}`,
    }));
  };
  const shownFiles = (channel: ChannelHandle): string[] =>
    channel.fromBot().flatMap(({ files }) => files.map(({ name }) => name));

  test("an upload whose response is lost again and again is shown once", async () => {
    ada.sends({ channel: direct, text: "draw" });
    const reply = await openReply();
    // The fault occurs more often than one request is repeated.
    const fault = {
      method: "POST",
      route: "/channels/{channel_id}/messages",
      status: 502,
      afterEffect: true,
    };
    harness.simulator.fail({ ...fault, times: 6 });
    await Promise.all((await pictures(2)).map((file) => reply.attach(file)));
    await reply.finish();
    expect(shownFiles(direct)).toEqual(["p0.png", "p1.png"]);
  });

  test("where the second message of an upload fails, the first one is not posted again", async () => {
    ada.sends({ channel: direct, text: "draw" });
    const reply = await openReply();
    let posts = 0;
    const post = { method: "POST", route: "/channels/{channel_id}/messages" };
    harness.simulator.fail({
      ...post,
      status: 502,
      times: 1,
      afterEffect: true,
      until: async () => {
        posts += 1;
        harness.simulator.fail({ ...post, status: 502, times: 5 });
      },
    });
    await Promise.all((await pictures(12)).map((file) => reply.attach(file)));
    await reply.finish();
    expect(posts).toBe(1);
    expect(shownFiles(direct)).toHaveLength(12);
  });

  test("an upload of a command whose response is lost is shown once", async () => {
    ada.usesCommand("imagine", { prompt: "a fox" }, { channel: general });
    const reply = await openReply();
    reply.write({ text: "Here:" });
    await until(() => general.fromBot().some(({ text }) => text === "Here:"));
    harness.simulator.fail({
      method: "POST",
      route: "/webhooks/{webhook_id}/{webhook_token}",
      status: 502,
      afterEffect: true,
      times: 1,
    });
    await Promise.all((await pictures(2)).map((file) => reply.attach(file)));
    await reply.finish();
    expect(shownFiles(general)).toEqual(["p0.png", "p1.png"]);
  });

  test("a later piece of a command's answer whose response is lost is shown once", async () => {
    ada.usesCommand("ask", { prompt: "why?" }, { channel: general });
    const reply = await openReply();
    harness.simulator.fail({
      method: "POST",
      route: "/webhooks/{webhook_id}/{webhook_token}",
      status: 502,
      afterEffect: true,
      times: 1,
    });
    reply.write({
      text: Array.from({ length: 60 }, (_, n) => `Paragraph ${n}. ${"word ".repeat(10)}`).join("\n\n"),
    });
    await reply.finish();
    const whole = general
      .fromBot()
      .map(({ text }) => text)
      .join("\n");
    expect(whole.match(/Paragraph 59\./g)).toHaveLength(1);
    expect(new Set(general.fromBot().map(({ text }) => text)).size).toBe(general.fromBot().length);
  });
});
