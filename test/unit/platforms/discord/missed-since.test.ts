import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { acceptingNotice } from "../../../../src/core/error-messages.ts";
import { toSentence } from "../../../../src/platforms/discord/reply/content.ts";
import { inLanguage } from "../../../../src/words/translate.ts";
import { idAt, minute, now, setUp } from "./missed-setup.ts";

describe("missed messages", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("are none before a bot with a new store came", async () => {
    const mention = idAt(minute);
    const { missed, taken, asked, records } = setUp(
      { "channel 8": { known: [], channel: [mention] } },
      { [mention]: { mentions: [{ id: "bot" }] as never } },
    );
    missed.start();
    missed.guildAvailable("1", [{ id: "8", lastMessageId: mention }]);
    await vi.advanceTimersByTimeAsync(200);
    expect({ taken, asked }).toEqual({ taken: [], asked: [] });
    expect(await records.get("discord:session:0")).toBe(now);
  });

  it("are those since the last session that the store knows, also where it knows no conversation", async () => {
    const [before, after] = [idAt(40 * minute), idAt(20 * minute)];
    const mentions = [{ id: "bot" }] as never;
    const { missed, taken, records } = setUp(
      { "channel 8": { known: [], channel: [before, after] } },
      { [before]: { mentions }, [after]: { mentions } },
      undefined,
      now - 30 * minute,
    );
    missed.start();
    missed.guildAvailable("1", [{ id: "8", lastMessageId: after }]);
    await vi.advanceTimersByTimeAsync(59_000);
    expect(taken).toEqual([after]);
    // A process that dies before all is read leaves the mark to the next one.
    expect(await records.get("discord:session:0")).toBe(now - 30 * minute);
    await vi.advanceTimersByTimeAsync(2000);
    expect(await records.get("discord:session:0")).toBe(now);
  });

  it("are not noted as read while the store or Discord is away", async () => {
    const one = idAt(10 * minute);
    const { missed, taken, state, records } = setUp(
      { "discord:7": { known: [], channel: [one] } },
      {},
      undefined,
      now - 30 * minute,
    );
    state.storeFails = 1;
    missed.start();
    await vi.advanceTimersByTimeAsync(90_000);
    state.discordFails = 3;
    state.storeFails = 0;
    await vi.advanceTimersByTimeAsync(2000);
    expect(taken).toEqual([]);
    expect(await records.get("discord:session:0")).toBe(now - 30 * minute);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(taken).toEqual([one]);
    expect(await records.get("discord:session:0")).toBe(now);
  });

  it("are not those that the bot has answered with a reply, unless that says that they are not accepted yet", async () => {
    const [answered, told, missedOne] = [30, 20, 10].map((ago) => idAt(ago * minute)) as [
      string,
      string,
      string,
    ];
    const reply = (id: string, content: string) => ({
      author: { id: "bot", bot: true } as never,
      message_reference: { message_id: id } as never,
      content,
    });
    const replies = [answered, told].map((id) => `${BigInt(id) / 10n + 1n}9`) as [string, string];
    const { missed, taken } = setUp(
      { "discord:7": { known: [], channel: [answered, replies[0], told, replies[1], missedOne] } },
      {
        [replies[0]]: reply(answered, "42"),
        [replies[1]]: reply(told, toSentence(inLanguage("de", acceptingNotice)).content),
      },
    );
    missed.start();
    await vi.advanceTimersByTimeAsync(200);
    expect(taken).toEqual([told, missedOne]);
  });

  it("where one was not accepted, are looked for in its channel alone", async () => {
    const [thread, other] = [idAt(50 * minute), idAt(49 * minute)];
    const one = idAt(10 * minute);
    const { missed, taken, asked, state } = setUp({
      [`discord:${thread}`]: { known: [], channel: [one] },
      [`discord:${other}`]: { known: [], channel: [] },
    });
    missed.start();
    await vi.advanceTimersByTimeAsync(100);
    asked.splice(0);
    taken.splice(0);
    state.storeFails = 1;
    missed.lookAgain(thread, one, "1");
    await vi.advanceTimersByTimeAsync(5000);
    expect(asked).toEqual([]);
    state.storeFails = 0;
    await vi.advanceTimersByTimeAsync(5000);
    expect({ asked, taken }).toEqual({ asked: [thread], taken: [one] });
  });

  it("are, where the store was restored, not those that the bot has replied to", async () => {
    const [refused, missedOne] = [idAt(20 * minute), idAt(10 * minute)];
    const notice = `${BigInt(idAt(15 * minute)) / 10n}9`;
    const { missed, taken } = setUp(
      { "discord:7": { known: [], channel: [refused, notice, missedOne] } },
      {
        [notice]: {
          author: { id: "bot", bot: true } as never,
          message_reference: { message_id: refused } as never,
        },
      },
      { backedUpAt: now - 40 * minute, restoredAt: now - minute },
    );
    missed.start();
    await vi.advanceTimersByTimeAsync(200);
    expect(taken).toEqual([missedOne]);
  });

  it("are, of the time that a restored store does not know, only those after which the bot wrote nothing", async () => {
    const [early, answered, missedOne] = [idAt(50 * minute), idAt(30 * minute), idAt(10 * minute)];
    const answer = `${BigInt(idAt(29 * minute)) / 10n}8`;
    const restored = { backedUpAt: now - 40 * minute, restoredAt: now - minute };
    const { missed, taken } = setUp(
      { "discord:7": { known: [], channel: [early, answered, answer, missedOne] } },
      { [answer]: { author: { id: "bot", bot: true } as never } },
      restored,
    );
    missed.start();
    await vi.advanceTimersByTimeAsync(200);
    expect(taken).toEqual([early, missedOne]);
  });
});
