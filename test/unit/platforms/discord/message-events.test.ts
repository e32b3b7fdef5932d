import { describe, expect, test } from "vitest";
import { fixture } from "../../../fixtures/fixtures.ts";
import { startHarness, until } from "./harness.ts";

describe("without the Message Content Intent", () => {
  test("the bot still connects, reports it, and receives mentions and direct messages", async () => {
    const harness = await startHarness({ messageContentAllowed: false });
    try {
      const { simulator, receiver, platform } = harness;
      expect(platform.health()).toEqual({
        state: "ready",
        detail: "without message contents: the Message Content Intent is off",
      });
      expect(harness.lines.some((line) => line.message.includes("Message Content Intent"))).toBe(true);
      const ada = simulator.person("Ada");
      const general = simulator.channel("general");
      ada.sends({ channel: general, text: "do you hear me?", mentionBot: true });
      ada.sends({ channel: simulator.directMessages(ada), text: "and here?" });
      await until(() => receiver.events.length === 2);
      expect(new Set(receiver.events.map((event) => event.kind === "message" && event.text))).toEqual(
        new Set(["do you hear me?", "and here?"]),
      );
    } finally {
      await harness.close();
    }
  });

  test("in its own thread a message without a mention is not answered; what is missing is said once", async () => {
    const harness = await startHarness({ messageContentAllowed: false });
    try {
      const { simulator, receiver } = harness;
      const ada = simulator.person("Ada");
      const general = simulator.channel("general");
      const root = ada.sends({ channel: general, text: "begin", mentionBot: true });
      await until(() => receiver.events.length === 1);
      await harness.platform.openThread(receiver.events[0]!.address, { title: "begin" });
      const [thread] = general.threads();
      for (const text of ["one", "two"]) ada.sends({ channel: thread!, text });
      ada.sends({ channel: thread!, extras: { poll: { question: "Tea?", answers: ["Yes", "No"] } } });
      const [told] = await until(() => thread!.fromBot().length > 0 && thread!.fromBot());
      expect(told?.text).toMatch(/Message Content Intent.*[Mm]ention me/);
      ada.sends({ channel: thread!, text: "three", mentionBot: true });
      await until(() => receiver.events.length === 2);
      // A later process reads in the thread that it was said.
      await harness.restart();
      harness.receiver.known.add(`discord:${root.id}`);
      ada.sends({ channel: thread!, text: "four" });
      ada.sends({ channel: thread!, text: "five", mentionBot: true });
      // It also looks through the bot's threads for missed messages; a store would know "three".
      await until(() => harness.receiver.events.length === 2);
      expect(receiver.events.map((event) => event.kind === "message" && event.text)).toEqual([
        "begin",
        "three",
      ]);
      // Its store is empty: it may look up what the first process has answered.
      const later = harness.receiver.events.map((event) => event.kind === "message" && event.text);
      expect(later.filter((text) => text !== "three" && text !== "begin")).toEqual(["five"]);
      expect(thread!.fromBot()).toHaveLength(1);
    } finally {
      await harness.close();
    }
  });

  test("a mention of the bot's role arrives without its text, and is not answered as if it had none", async () => {
    const harness = await startHarness({ messageContentAllowed: false });
    try {
      const { simulator, receiver } = harness;
      const roleId = simulator.botRole();
      const ada = simulator.person("Ada");
      const general = simulator.channel("general");
      ada.sends({ channel: general, text: `<@&${roleId}> what is this?` });
      await until(() => general.fromBot().length === 1, { explain: () => receiver.events });
      ada.sends({ channel: general, text: "", mentionBot: true });
      await until(() => receiver.events.length === 1);
      expect(receiver.events[0]).toMatchObject({ text: "@parley" });
    } finally {
      await harness.close();
    }
  });
});

test("polls, embeds, stickers and forwarded messages are read; nothing readable in a thread is no turn", async () => {
  const harness = await startHarness();
  try {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const direct = simulator.directMessages(ada);
    const general = simulator.channel("general");
    const forwards = ada.sends({
      channel: general,
      text: "their words",
      files: [{ name: "a.png", bytes: await fixture("picture.png"), altText: "A red house" }],
    });
    ada.sends({ channel: direct, extras: { poll: { question: "Tea?", answers: ["Yes", "No"] } } });
    ada.sends({ channel: direct, extras: { stickers: ["Wave"] } });
    ada.sends({
      channel: direct,
      extras: { embeds: [{ type: "rich", title: "Title", description: "About" }] },
    });
    ada.sends({ channel: direct, extras: { forwards } });
    await until(() => receiver.events.length === 4, { explain: () => receiver.events });
    expect(receiver.events.map((event) => event.kind === "message" && event.text)).toEqual([
      "> Poll:\n> Tea?\n> 1. Yes\n> 2. No",
      "> Sticker:\n> Wave",
      "> Embed:\n> Title\n> About",
      "> Forwarded message:\n> their words",
    ]);
    expect(receiver.events[3]).toMatchObject({ attachments: [{ name: "a.png", altText: "A red house" }] });
  } finally {
    await harness.close();
  }
});

test("a mention of the bot's role while it was offline is seen, although such messages do not name their server", async () => {
  const harness = await startHarness();
  try {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const roleId = simulator.botRole();
    const general = simulator.channel("general");
    const thread = simulator.thread(general, ada);
    // Stored without its places, by an earlier version.
    receiver.known.add(`discord:${thread.id}`);
    simulator.gateway.invalidateSession(false);
    await until(() => !simulator.gateway.isConnected());
    const sent = [thread, general].map((channel) =>
      ada.sends({ channel, text: `<@&${roleId}> what is ${channel.name}?` }),
    );
    await until(() => receiver.events.length === 2);
    const byKey = new Map(receiver.events.map((event) => [event.key, event]));
    expect(sent.map(({ id }) => byKey.get(`discord:${id}`))).toMatchObject([
      { text: "what is thread?", within: expect.arrayContaining([`discord:channel:${general.id}`]) },
      { text: "what is general?" },
    ]);
  } finally {
    await harness.close();
  }
});
