import type { GatewayMessageCreateDispatchData } from "discord.js";
import { afterEach, beforeEach, describe, expect, it, test, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createMessageIntake } from "../../../../src/platforms/discord/intake/messages.ts";
import { systemClock } from "../../../../src/support/clock.ts";
import { message, silentLog } from "../../../support/fakes.ts";
import { createRecordingReceiver } from "../../../support/recording-receiver.ts";
import { type Harness, startHarness, until, letIdentify } from "./harness.ts";
import { idAt, minute, now, setUp } from "./missed-setup.ts";

describe("missed messages", () => {
  describe("missed messages", () => {
    beforeEach(() => void vi.useFakeTimers());
    afterEach(() => void vi.useRealTimers());

    it("are those after the last stored one, oldest first", async () => {
      const thread = idAt(50 * minute);
      const [before, known, one, two] = [40, 30, 20, 10].map((ago) => idAt(ago * minute)) as [
        string,
        string,
        string,
        string,
      ];
      const { missed, taken } = setUp({
        // Earlier messages in a thread that the bot was mentioned in later were not for it.
        [`discord:${thread}`]: {
          known: [`discord:${known}`, `discord:${known}`],
          channel: [before, known, one, two],
        },
      });
      missed.start();
      await vi.advanceTimersByTimeAsync(100);
      expect(taken).toEqual([one, two]);
    });

    it("are found in a long conversation, too, in which much was said just before the session", async () => {
      const second = 1000;
      const thread = idAt(50 * minute);
      const early = Array.from({ length: 400 }, (_, n) => idAt(40 * minute - n * second));
      const late = Array.from({ length: 25 }, (_, n) => idAt((50 - n) * second));
      const lost = idAt(10 * second);
      const { missed, taken } = setUp({
        [`discord:${thread}`]: {
          known: [...early, ...late].map((id) => `discord:${id}`),
          channel: [...early, ...late, lost],
        },
      });
      missed.start();
      await vi.advanceTimersByTimeAsync(100);
      // Those before are known. Live ones of that minute may have been stored before earlier ones.
      expect(taken).toEqual([...late, lost].filter((id) => !id.endsWith("9")));
    });

    it("are one that was not accepted, and what came after it, although a later one is stored by now", async () => {
      const thread = idAt(50 * minute);
      const [one, two, three] = [30, 20, 10].map((ago) => idAt(ago * minute)) as [string, string, string];
      const { missed, taken } = setUp({
        [`discord:${thread}`]: { known: [`discord:${three}`], channel: [one, two, three] },
      });
      missed.start();
      // It is noted while a reading is under way that began behind it.
      await vi.advanceTimersByTimeAsync(5);
      missed.lookAgain(thread, two);
      await vi.advanceTimersByTimeAsync(100);
      expect(taken).toEqual([two, three]);
      taken.splice(0);
      missed.lookAgain(thread, three);
      missed.lookAgain(thread, two);
      await vi.advanceTimersByTimeAsync(100);
      expect(taken).toEqual([two, three]);
      missed.start();
      await vi.advanceTimersByTimeAsync(100);
      expect(taken).toEqual([two, three]);
    });

    it("come with the edits of what is read anyway, that of the last stored one included", async () => {
      const [old, known, one] = [40, 30, 20].map((ago) => idAt(ago * minute)) as [string, string, string];
      const edit = { edited_timestamp: new Date(now).toISOString() };
      const { missed, taken, edited } = setUp(
        { "discord:7": { known: [`discord:${known}`], channel: [old, known, one, `${one}9`, `${one}99`] } },
        {
          [old]: edit,
          [known]: edit,
          [one]: { ...edit },
          // These are of another app, and the bot's own.
          [`${one}9`]: { ...edit, author: { id: "app", bot: true } as never },
          [`${one}99`]: { ...edit, author: { id: "bot", bot: true } as never },
        },
      );
      missed.start();
      await vi.advanceTimersByTimeAsync(100);
      expect({ taken, edited }).toEqual({ taken: [one], edited: [known, one, `${one}9`] });
    });

    it("are ignored when older than an hour", async () => {
      const [old, recent] = [idAt(61 * minute), idAt(59 * minute)];
      const { missed, taken } = setUp({ "discord:1": { known: [], channel: [old, recent] } });
      missed.start();
      await vi.advanceTimersByTimeAsync(100);
      expect(taken).toEqual([recent]);
    });

    it("are read from at most 100 conversations, three at a time, 300 messages each", async () => {
      const channel = Array.from({ length: 400 }, (_, n) => `${BigInt(idAt(minute)) + BigInt(n) * 10n}`);
      const { missed, taken, asked, state } = setUp(
        Object.fromEntries(
          Array.from({ length: 150 }, (_, n) => [
            `discord:${n + 1}`,
            { known: [], channel: n === 0 ? channel : [] },
          ]),
        ),
      );
      missed.start();
      await vi.advanceTimersByTimeAsync(5000);
      expect({ asked: asked.length, most: state.maxConcurrent, taken: taken.length }).toEqual({
        asked: 102,
        most: 3,
        taken: 300,
      });
    });

    it("come before live messages of the same channel, and delay no other channel", async () => {
      const [one] = [idAt(minute)];
      const { missed, taken } = setUp({ "discord:7": { known: [], channel: [one] } });
      expect(missed.pending("7")).toBeUndefined();
      missed.start();
      const order: string[] = [];
      void missed.pending("8")?.then(() => order.push(`other channel, ${taken.length} taken`));
      void missed.pending("7")?.then(() => order.push(`same channel, ${taken.length} taken`));
      await vi.advanceTimersByTimeAsync(100);
      expect(order).toEqual(["other channel, 0 taken", "same channel, 1 taken"]);
      expect(missed.pending("7")).toBeUndefined();
    });

    it("are read before a live message, which waits for those of its channel", async () => {
      const { missed, taken, state } = setUp({ "discord:7": { known: [], channel: [idAt(minute)] } });
      expect(await missed.searchFirst("7")).toBe(false);
      state.storeFails = 1;
      missed.start();
      await vi.advanceTimersByTimeAsync(100);
      const refused = expect(missed.searchFirst("7")).rejects.toMatchObject({ code: "store-unavailable" });
      await vi.advanceTimersByTimeAsync(2500);
      await refused;
      state.storeFails = 0;
      const searched = missed.searchFirst("7");
      await vi.advanceTimersByTimeAsync(2020);
      expect(await searched).toBe(true);
      expect(taken).toHaveLength(1);
      await vi.advanceTimersByTimeAsync(20_000);
      expect(taken).toHaveLength(1);
      expect(await missed.searchFirst("7")).toBe(false);
    });

    it("are retried while the store is unavailable, until the bot stops", async () => {
      const { missed, taken, state } = setUp({ "discord:7": { known: [], channel: [idAt(minute)] } });
      state.storeFails = 1;
      missed.start();
      await vi.advanceTimersByTimeAsync(20_000);
      expect(taken).toEqual([]);
      state.storeFails = 0;
      await vi.advanceTimersByTimeAsync(20_000);
      expect(taken).toHaveLength(1);
      const stopped = setUp({ "discord:7": { known: [], channel: [idAt(minute)] } });
      stopped.state.storeFails = 1;
      stopped.missed.start();
      await vi.advanceTimersByTimeAsync(1000);
      stopped.stopping.abort();
      stopped.state.storeFails = 0;
      await vi.advanceTimersByTimeAsync(20_000);
      expect(stopped.taken).toEqual([]);
    });

    it("are found behind any number of commands, whose conversations have no channel", async () => {
      const missedOne = idAt(minute);
      const commands = Array.from({ length: 210 }, (_, n) => [
        `discord:command/${n}`,
        { known: [`discord:command/${n}`], channel: [] },
      ]);
      const { missed, taken, asked } = setUp({
        ...Object.fromEntries(commands),
        "discord:5": { known: [], channel: [missedOne] },
      });
      missed.start();
      await vi.advanceTimersByTimeAsync(100);
      expect({ taken, asked }).toEqual({ taken: [missedOne], asked: ["5"] });
    });

    it("are retried while Discord fails; live messages of the channel wait meanwhile, 30 s at most", async () => {
      for (const [failures, waitedMs] of [
        [4, 20_000],
        [40, 30_000],
      ] as const) {
        const one = idAt(minute);
        const { missed, taken, state } = setUp({ "discord:7": { known: [], channel: [one] } });
        state.discordFails = failures;
        missed.start();
        let live: number | undefined;
        const startedAt = performance.now();
        void missed.pending("7")?.then(() => {
          live = performance.now() - startedAt;
        });
        await vi.advanceTimersByTimeAsync(10 * minute);
        expect(taken).toEqual([one]);
        expect(live).toBeGreaterThan(5000);
        expect(live).toBeLessThanOrEqual(waitedMs);
      }
    });

    it("hold up live messages of the channel for 30 s altogether, however often they are waited for", async () => {
      const { missed, state } = setUp({ "discord:1": { known: [], channel: [] } });
      state.discordFails = 1000;
      missed.start();
      await vi.advanceTimersByTimeAsync(100);
      const taken = (async () => {
        await missed.pending("1");
        while (await missed.searchFirst("1"));
        return true;
      })();
      await vi.advanceTimersByTimeAsync(31_000);
      expect(await Promise.race([taken, Promise.resolve(false)])).toBe(true);
      expect(missed.pending("1")).toBeUndefined();
    });

    it("stay missed when later ones and commands were answered before the store could be searched", async () => {
      const [known, one, live] = [idAt(30 * minute), idAt(10 * minute), idAt(-minute)];
      const { missed, taken, state } = setUp({
        "discord:7": {
          known: [`discord:${known}`, `discord:command/${idAt(minute)}`, `discord:${live}`],
          channel: [known, one, live],
        },
      });
      state.storeFails = 1;
      missed.start();
      expect(missed.pending("7")).toBeDefined();
      // The store is unavailable, but live messages do not wait for it.
      await vi.advanceTimersByTimeAsync(100);
      expect(missed.pending("7")).toBeUndefined();
      state.storeFails = 0;
      await vi.advanceTimersByTimeAsync(5000);
      expect(taken).toEqual([one, live]);
    });

    it("are mentions in the channels that conversations are in, from the newest page of each", async () => {
      const [old, chatter, mention, role] = [61, 30, 20, 10].map((ago) => idAt(ago * minute)) as [
        string,
        string,
        string,
        string,
      ];
      const within = ["discord:guild:1", "discord:channel:8"];
      const { missed, taken, asked } = setUp(
        {
          "discord:7": { known: [], channel: [], within },
          "discord:command/6": { known: [], channel: [], within: ["discord:channel:9"] },
          "channel 8": { known: [], channel: [old, chatter, mention, role] },
        },
        {
          [old]: { mentions: [{ id: "bot" }] as never },
          [mention]: { mentions: [{ id: "bot" }] as never },
          [role]: { mention_roles: ["1"] },
        },
      );
      missed.start();
      await vi.advanceTimersByTimeAsync(200);
      expect(new Set(asked)).toEqual(new Set(["7", "8", "9"]));
      expect(taken).toEqual([mention, role]);
    });

    it("are mentions in other channels in which somebody wrote lately, a thousand of them, slowly", async () => {
      const mention = idAt(minute);
      const ids = Array.from({ length: 1100 }, (_, n) => `${n + 1}`);
      const { missed, taken, asked } = setUp(
        Object.fromEntries(
          ids.map((id) => [`channel ${id}`, { known: [], channel: id === "1100" ? [mention] : [] }]),
        ),
        { [mention]: { mentions: [{ id: "bot" }] as never } },
        undefined,
        now - 120 * minute,
      );
      missed.start();
      // The first fifty are older than an hour, and as many others are past the limit.
      const channels = ids.map((id) => ({ id, lastMessageId: idAt(61 * minute - Number(id) * 1200) }));
      missed.guildAvailable("1", channels);
      await vi.advanceTimersByTimeAsync(1000);
      expect(taken).toEqual([mention]);
      expect(asked.length).toBeLessThanOrEqual(11);
      await vi.advanceTimersByTimeAsync(150_000);
      expect(new Set(asked)).toEqual(new Set(ids.slice(-1000)));
      expect(asked).toHaveLength(1000);
    });

    it("are all messages in an active thread that the bot has opened, however old its conversation is", async () => {
      const [one, other] = [idAt(20 * minute), idAt(10 * minute)];
      const { missed, taken } = setUp(
        { "channel 8": { known: [], channel: [one] }, "channel 9": { known: [], channel: [other] } },
        {},
        undefined,
        now - 120 * minute,
      );
      missed.start();
      missed.guildAvailable("1", [
        { id: "8", lastMessageId: one, isOwnThread: true },
        { id: "9", lastMessageId: other, isOwnThread: false },
      ]);
      await vi.advanceTimersByTimeAsync(1000);
      expect(taken).toEqual([one]);
    });

    it("are not those whose thread the bot has opened", async () => {
      const [taken1, missedOne] = [idAt(20 * minute), idAt(10 * minute)];
      const mentions = [{ id: "bot" }] as never;
      const { missed, taken } = setUp(
        { "channel 8": { known: [], channel: [taken1, missedOne] } },
        {
          [taken1]: { mentions, thread: { id: taken1, owner_id: "bot" } as never },
          [missedOne]: { mentions },
        },
        undefined,
        now - 120 * minute,
      );
      missed.start();
      missed.guildAvailable("1", [{ id: "8", lastMessageId: missedOne }]);
      await vi.advanceTimersByTimeAsync(200);
      expect(taken).toEqual([missedOne]);
    });
  });
});

describe("the order of missed messages", () => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await startHarness();
  });
  afterEach(() => harness.close());

  const received = (count: number) =>
    until(() => harness.receiver.events.length >= count && harness.receiver.events, {
      timeoutMs: 30_000,
      explain: () => ({ events: harness.receiver.events, log: harness.lines }),
    });

  test("live messages wait for missed ones that the store has kept from being found", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const direct = simulator.directMessages(ada);
    receiver.known.add(`discord:${direct.id}`);
    const count = (words: string) => harness.lines.filter(({ message }) => message === words).length;
    letIdentify();
    simulator.gateway.invalidateSession(false);
    await until(() => !simulator.gateway.isConnected());
    receiver.outage = new ParleyError("store-unavailable", "down");
    const missed = ada.sends({ channel: direct, text: "missed" });
    await until(() => count("missed messages not read yet") > 0, { timeoutMs: 15_000 });
    const live = ["one", "two", "three"].map((text) => ada.sends({ channel: direct, text }));
    await until(() => count("missed messages not read yet") > 1, { timeoutMs: 15_000 });
    receiver.outage = undefined;
    const events = await received(4);
    expect(events.map(({ key }) => key)).toEqual([missed, ...live].map(({ id }) => `discord:${id}`));
    expect(direct.fromBot()).toEqual([]);
  });

  test("missed messages keep their order when the first is not accepted at once", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const direct = simulator.directMessages(ada);
    receiver.known.add(`discord:${direct.id}`);
    letIdentify();
    simulator.gateway.invalidateSession(false);
    await until(() => !simulator.gateway.isConnected());
    const missed = ["one", "two", "three"].map((text) => ada.sends({ channel: direct, text }));
    const first = `discord:${missed[0]!.id}`;
    const isAccepted = receiver.receive.bind(receiver);
    const notAccepted = () => harness.lines.some(({ message }) => message === "message not accepted");
    receiver.receive = (event) =>
      event.kind !== "aside" && event.key === first && !notAccepted()
        ? Promise.reject(new ParleyError("store-unavailable", "down"))
        : isAccepted(event);
    const events = await received(3);
    expect(events.map(({ key }) => key)).toEqual(missed.map(({ id }) => `discord:${id}`));
    expect(direct.fromBot()).toEqual([]);
  }, 40_000);
});

test("a live message goes behind missed ones that are found while it is tried again", async () => {
  const receiver = createRecordingReceiver();
  const toMessage = (id: string) => ({ id, channel_id: "1" }) as GatewayMessageCreateDispatchData;
  let isSearched = false;
  const intake = createMessageIntake({
    receiver,
    events: {
      toEvent: ({ id }: { readonly id: string }) => Promise.resolve(message(id, { key: id })),
    } as never,
    channels: { open: () => undefined, channelIfReadable: () => Promise.resolve(undefined) } as never,
    api: {} as never,
    names: () => ({}) as never,
    languageOf: () => "en",
    lookUpLater: () => expect.unreachable(),
    lookUpFirst() {
      if (isSearched) return Promise.resolve(false);
      isSearched = true;
      intake.take(toMessage("11"), { isMissed: true });
      return Promise.reject(new ParleyError("store-unavailable", "not searched in time"));
    },
    signal: new AbortController().signal,
    clock: systemClock,
    log: silentLog,
  });
  intake.take(toMessage("12"));
  await vi.waitFor(() => expect(receiver.events).toHaveLength(2), { timeout: 5000 });
  expect(receiver.events.map(({ key }) => key)).toEqual(["11", "12"]);
});
