import { describe, expect, it } from "vitest";
import { createHeardMessages } from "../../../../src/platforms/discord/heard-messages.ts";

const botId = "1";

function setUp() {
  let time = 0;
  const heard = createHeardMessages(
    () => botId,
    () => time,
  );
  const hear = (id: number, { channel = "c", from = "7", mentions = false, guild = true } = {}) =>
    heard.hear({
      id: `${id}`,
      channel_id: channel,
      ...(guild ? { guild_id: "g" } : {}),
      author: { id: from },
      mentions: mentions ? [{ id: botId }] : [],
    });
  const isQuiet = (after: number, before: number, channel = "c") =>
    heard.isQuietBetween(channel, `${after}`, `${before}`);
  return { heard, hear, isQuiet, wait: (ms: number) => void (time += ms) };
}

describe("a channel in which the bot was mentioned", () => {
  it("is quiet between two messages where nobody but the bot said anything", () => {
    const { hear, isQuiet } = setUp();
    hear(10, { mentions: true });
    hear(11, { from: botId });
    hear(12, { mentions: true });
    hear(13);
    hear(14, { mentions: true });
    expect(isQuiet(10, 12)).toBe(true);
    expect(isQuiet(12, 14)).toBe(false);
    expect(isQuiet(13, 14)).toBe(true);
    expect(isQuiet(10, 12, "other")).toBe(false);
  });

  it("is not known to be quiet before the first mention, or for a message that was not delivered", () => {
    const { hear, isQuiet } = setUp();
    hear(9);
    hear(10, { mentions: true });
    expect(isQuiet(9, 10)).toBe(false);
    expect(isQuiet(10, 12)).toBe(false);
    hear(20, { channel: "direct", mentions: true, guild: false });
    hear(21, { channel: "direct", mentions: true, guild: false });
    expect(isQuiet(20, 21, "direct")).toBe(false);
  });

  it("is not known to be quiet once messages may be missing", () => {
    const { heard, hear, isQuiet } = setUp();
    for (const forget of [() => heard.forget(), () => heard.forget("c")]) {
      hear(10, { mentions: true });
      forget();
      hear(12, { mentions: true });
      expect(isQuiet(10, 12)).toBe(false);
      forget();
    }
    hear(10, { mentions: true });
    heard.forget("other");
    hear(12, { mentions: true });
    expect(isQuiet(10, 12)).toBe(true);
  });

  it("is not known to be quiet after a long pause, or with many messages since", () => {
    const { hear, isQuiet, wait } = setUp();
    hear(10, { mentions: true });
    wait(11 * 60_000);
    hear(12, { mentions: true });
    expect(isQuiet(10, 12)).toBe(false);
    hear(13, { mentions: true });
    expect(isQuiet(12, 13)).toBe(true);
    for (let id = 14; id < 60; id += 1) hear(id);
    expect(isQuiet(12, 13)).toBe(false);
    wait(11 * 60_000);
    hear(60);
    hear(61);
    expect(isQuiet(60, 61)).toBe(false);
  });
});
