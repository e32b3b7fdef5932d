import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { ReplyAddress } from "../../../../src/core/events.ts";
import type { Reply } from "../../../../src/core/reply.ts";
import type { DiscordApi } from "../../../../src/platforms/discord/transport/api.ts";
import { createLimits } from "../../../../src/platforms/delivery/limits.ts";
import {
  createDiscordLimits,
  createSending,
  lanes,
} from "../../../../src/platforms/discord/transport/delivery.ts";
import type { Person } from "../../../simulators/discord/people.ts";
import { fasterRateLimits } from "../../../simulators/discord/rate-limits.ts";
import {
  type ChannelHandle,
  createDiscordSimulator,
  type DiscordSimulator,
} from "../../../simulators/discord/simulator.ts";
import { createManualClock } from "../../../support/manual-clock.ts";
import { clock, createApi, createListLog, type Harness, startHarness, until } from "./harness.ts";

describe("rate limits without a Retry-After", () => {
  // discord.js sends a request again at once where a 429 has no Retry-After.
  let discord: DiscordSimulator;
  let api: DiscordApi;
  beforeEach(async () => {
    discord = await createDiscordSimulator({ rateLimits: fasterRateLimits(20) });
    api = createApi(discord, { clock });
  });
  afterEach(async () => {
    await discord.close();
  });

  const sent = (): number => discord.requests.length;

  const requests: Readonly<Record<string, (channelId: string) => Promise<unknown>>> = {
    "a read": (channelId: string) => api.getChannel(channelId),
    "a post": (channelId: string) => api.createMessage(channelId, { content: "x" }),
    "the commands": () => api.putCommands("0", []),
    "a response": () => api.respond("1", "token", { type: 5 }),
  };

  for (const [name, fault] of Object.entries({
    "from Cloudflare": { retryAfter: "absent" },
    "with an empty header": { retryAfter: "empty", retryAfterMs: 500 },
    "from Cloudflare, of all routes": { retryAfter: "absent", isGlobal: true },
    "with an empty header, of all routes": { retryAfter: "empty", retryAfterMs: 500, isGlobal: true },
  } as const)) {
    for (const [what, request] of Object.entries(requests)) {
      test(`a rate limit of ${what} ${name} is no hot loop`, async () => {
        const general = discord.channel("general");
        discord.fail({ status: 429, ...fault, times: 1 });
        const startedAt = clock.monotonic();
        await clock.passing(request(general.id).catch(() => undefined));
        expect(sent()).toBe(2);
        expect(clock.monotonic() - startedAt).toBeGreaterThan(490);
      });
    }
  }

  test("requests without an answer to wait for wait a second each time, and in the end are errors with a time", async () => {
    const general = discord.channel("general");
    const { id } = await api.createMessage(general.id, { content: "x" });
    discord.fail({ status: 429, retryAfter: "absent", times: 10 });
    const waits: unknown[] = [];
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const error = await clock
        .passing(
          api.editMessage(
            general.id,
            id,
            { content: "y" },
            { urgency: "growth", deadline: clock.monotonic() + 60_000 },
          ),
        )
        .catch((reason: unknown) => reason);
      waits.push((error as { retryAfterMs?: number }).retryAfterMs);
    }
    expect(waits).toEqual([1000, 1000, 1000]);
  });

  test("an interaction is responded to at once while Discord refuses all routes", async () => {
    const general = discord.channel("general");
    discord.fail({ status: 429, retryAfterMs: 30_000, isGlobal: true, times: 1 });
    const end = new AbortController();
    const waiting = api
      .createMessage(general.id, { content: "x" }, { signal: end.signal })
      .catch((error: unknown) => error);
    await until(() => sent() === 1);
    const startedAt = clock.monotonic();
    // The simulator knows no such interaction, and says so.
    await expect(api.respond("1", "token", { type: 5 })).rejects.toMatchObject({
      detail: { discordCode: 10062 },
    });
    expect(clock.monotonic() - startedAt).toBeLessThan(1000);
    expect(sent()).toBe(2);
    end.abort(new Error("over"));
    expect(await waiting).toMatchObject({ message: "over" });
  });

  test("requests that a header forbids wait for their turn, and Discord refuses none", async () => {
    await discord.close();
    discord = await createDiscordSimulator({ rateLimits: { others: { limit: 2, windowMs: 300 } } });
    api = createApi(discord);
    const general = discord.channel("general");
    const reading = Promise.all(Array.from({ length: 7 }, () => api.getChannel(general.id)));
    expect(await reading).toHaveLength(7);
    expect(discord.requests.map(({ status }) => status)).toEqual(Array.from({ length: 7 }, () => 200));
  });

  test("the client's own requests at the start wait too", async () => {
    const { simulator, close } = await startHarness({
      prepare: (one) => one.fail({ route: "/gateway/bot", status: 429, retryAfter: "absent", times: 1 }),
    });
    // The refused one, the one after it, and that of the library.
    expect(simulator.requests.filter(({ path }) => path === "/gateway/bot")).toHaveLength(3);
    await close();
  });
});

describe("two refusals of a second", () => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await startHarness();
  });
  afterEach(() => harness.close());

  for (const [where, retryAfter] of Object.entries({
    "a header": undefined,
    "the body alone": "empty",
  } as const))
    for (const method of ["POST", "PATCH"])
      test(`of ${method}, named in ${where}, delay the final text by no more than that`, async () => {
        const { simulator, receiver, platform } = harness;
        const ada = simulator.person("Ada");
        const direct = simulator.directMessages(ada);
        ada.sends({ channel: direct, text: "hello" });
        const { address } = await until(() => receiver.events[0]);
        const reply = platform.openReply(address, { saveAddress: () => Promise.resolve() });
        const fault = { method, route: "/messages", status: 429, retryAfterMs: 1000, times: 2 };
        simulator.fail(retryAfter === undefined ? fault : { ...fault, retryAfter });
        await reply.show();
        let text = "";
        let saidAt = 0;
        for (let words = 0; words < 60; words += 1) {
          text += "word ";
          reply.write({ text });
          saidAt = clock.monotonic();
          await clock.skip(60);
        }
        await reply.finish();
        expect(simulator.requests.filter(({ status }) => status === 429)).toHaveLength(2);
        expect(clock.monotonic() - saidAt).toBeLessThan(2500);
        expect(direct.fromBot().map((message) => message.text)).toEqual([text.trim()]);
      });
});

describe("requests in a second", () => {
  test.each([
    ["as Discord allows usually", undefined, 48],
    ["as it allows a large bot", 200, 192],
    ["of a process with a part of them", 25, 24],
    ["of one with hardly any", 1, 1],
  ])("requests at once, %s", async (_, requestsPerSecond, sentAtOnce) => {
    const limits = createDiscordLimits({ requestsPerSecond });
    const end = new AbortController();
    let sent = 0;
    const calls = Array.from({ length: 300 }, (_call, index) =>
      limits.send(
        {
          lanes: ["global", `posts ${index}`],
          method: "post",
          urgency: "final",
          deadline: performance.now() + 60_000,
          signal: end.signal,
        },
        () => {
          sent += 1;
          return Promise.resolve();
        },
      ),
    );
    const settled = Promise.allSettled(calls);
    await nextTurn();
    expect(sent).toBe(sentAtOnce);
    end.abort();
    await settled;
  });

  test("what is read is not held back below the number that Discord allows", async () => {
    const plenty = { limit: 1000, windowMs: 1000 };
    const discord = await createDiscordSimulator({ rateLimits: { others: plenty, globalPerSecond: 1000 } });
    const general = discord.channel("general");
    const read = async (requestsPerSecond?: number): Promise<number> => {
      const api = createApi(discord, requestsPerSecond === undefined ? {} : { requestsPerSecond });
      const startedAt = performance.now();
      await Promise.all(Array.from({ length: 60 }, () => api.getChannel(general.id)));
      return performance.now() - startedAt;
    };
    const usual = await read();
    expect(usual).toBeGreaterThan(900);
    expect(await read(500)).toBeLessThan(usual - 300);
    await discord.close();
  });
});

test("many requests that Discord refuses are a warning in the log", async () => {
  const plenty = { limit: 1000, windowMs: 1000 };
  const discord = await createDiscordSimulator({ rateLimits: { messages: plenty, globalPerSecond: 1000 } });
  const { log, lines } = createListLog();
  const limits = createLimits({ platform: "discord", limitOf: () => undefined });
  const api = createApi(discord, { log, limits });
  const secret = discord.channel("secret");
  secret.deny("SEND_MESSAGES");
  for (let count = 0; count < 500; count += 1)
    await expect(api.createMessage(secret.id, { content: "x" })).rejects.toMatchObject({
      code: "platform-forbidden",
    });
  expect(lines.filter(({ message }) => message.includes("refuses many requests"))).toHaveLength(1);
  await discord.close();
});

describe("old edits", () => {
  const hourMs = 3_600_000;

  // Discord takes few edits of messages older than an hour, and announces that limit in no header.
  describe("answers in messages older than an hour", () => {
    let harness: Harness;
    let ada: Person;
    let direct: ChannelHandle;
    afterEach(() => harness.close());

    const start = async (rateLimits: NonNullable<Parameters<typeof startHarness>[0]>["rateLimits"] = {}) => {
      harness = await startHarness({ rateLimits });
      ada = harness.simulator.person("Ada");
      direct = harness.simulator.directMessages(ada);
    };
    const open = (address: ReplyAddress, saved: ReplyAddress[] = []): Reply =>
      harness.platform.openReply(address, {
        saveAddress: async (grown) => void saved.push(structuredClone(grown)),
      });
    const ask = async (text: string): Promise<ReplyAddress> => {
      const { receiver, lines } = harness;
      const count = receiver.events.length + 1;
      ada.sends({ channel: direct, text });
      return (await until(() => receiver.events[count - 1], { explain: () => lines })).address;
    };
    const edits = () => harness.simulator.requests.filter(({ method }) => method === "PATCH");
    const editsOf = (id: string) => edits().filter(({ path }) => path.endsWith(`/messages/${id}`));
    const limited = () => harness.simulator.requests.filter(({ status }) => status === 429);

    /** Makes a reply that another process left unfinished two hours ago. */
    const leaveHalf = async (): Promise<{ address: ReplyAddress; id: string }> => {
      const saved: ReplyAddress[] = [];
      const half = open(await ask("one"), saved);
      await half.show();
      half.write({ text: "Half" });
      const shown = await until(() => direct.fromBot()[0]);
      await until(() => saved.length === 2);
      half.abandon();
      harness.simulator.advance(2 * hourMs);
      return { address: saved.at(-1)!, id: shown.id };
    };

    test("grow by no previews, and end in the same message", async () => {
      await start();
      const { address, id } = await leaveHalf();
      const resumed = open(address);
      const other = open(await ask("two"));
      await Promise.all([resumed.show(), other.show()]);
      const before = edits().length;
      let text = "";
      const streaming = setInterval(() => {
        text += "word ";
        for (const reply of [resumed, other]) reply.write({ text });
      }, 100);
      // The other answer, which is new, is edited four times meanwhile.
      await until(() => edits().length - editsOf(id).length >= before + 4, { timeoutMs: 15_000 });
      clearInterval(streaming);
      await Promise.all([resumed.finish(), other.finish()]);
      expect(limited()).toEqual([]);
      expect(editsOf(id).length).toBeLessThanOrEqual(3);
      expect(direct.fromBot().map((message) => message.text)).toEqual([text.trim(), text.trim()]);
    });

    test("that Discord refuses to edit hold up no new answer in the same channel", async () => {
      await start({ oldEdits: { limit: 0, windowMs: 300_000 } });
      const { address } = await leaveHalf();
      const resumed = open(address);
      void Promise.allSettled([resumed.show()]);
      await until(() => limited().length > 0);
      const other = open(await ask("two"));
      await other.show();
      other.write({ text: "New" });
      await until(() => direct.fromBot().some(({ text }) => text.startsWith("New")));
      const startedAt = clock.monotonic();
      other.write({ text: "New and whole." });
      await other.finish();
      expect(clock.monotonic() - startedAt).toBeLessThan(3000);
      expect(direct.fromBot().at(-1)?.text).toBe("New and whole.");
      // The limit is learned.
      expect(limited()).toHaveLength(1);
      resumed.abandon();
    });
  });
});

describe("opening direct messages", () => {
  const opened = ({ requests }: Pick<DiscordSimulator, "requests">) =>
    requests.filter(({ template }) => template === "/users/@me/channels");

  // Discord suspects bots that open many direct messages, and says in no header how many it takes.
  describe("opening direct messages", () => {
    let discord: DiscordSimulator;
    let api: DiscordApi;
    beforeEach(async () => {
      discord = await createDiscordSimulator({
        rateLimits: { directMessages: { limit: 1, windowMs: 600_000 } },
      });
      api = createApi(discord);
    });
    afterEach(async () => {
      await discord.close();
    });

    test("too fast is refused for a while, not for good", async () => {
      await api.openDirectChannel(discord.person("Ada").id);
      const { id } = discord.person("Bob");
      await expect(api.openDirectChannel(id)).rejects.toMatchObject({
        code: "platform-unreachable",
        retryAfterMs: 30_000,
      });
      expect(opened(discord)).toHaveLength(2);
    });

    test("for a person without a common server is refused for good", async () => {
      const eve = discord.person("Eve", { isMember: false });
      const { id } = await api.openDirectChannel(eve.id);
      await expect(api.createMessage(id, { content: "x" })).rejects.toMatchObject({
        code: "platform-forbidden",
        detail: { discordCode: 50278 },
      });
    });
  });

  test("after Discord refused to open direct messages, refused people are not told for a while", async () => {
    const harness = await startHarness({
      rateLimits: { directMessages: { limit: 1, windowMs: 600_000 }, others: { limit: 100, windowMs: 1000 } },
    });
    const { simulator, receiver, lines } = harness;
    receiver.refusal = new ParleyError("access-denied", "refused", { detail: { because: "denied" } });
    const general = simulator.channel("general");
    for (const [index, name] of ["Ada", "Bob", "Cy", "Dan"].entries()) {
      simulator.person(name).sends({ channel: general, text: "hello", mentionBot: true });
      await until(() => lines.filter(({ message }) => message === "message refused").length > index);
    }
    receiver.refusal = undefined;
    simulator.person("Zoe").sends({ channel: general, text: "the last", mentionBot: true });
    await until(() => receiver.events.length > 0, { explain: () => lines });
    // Ada was told, and Bob could not be.
    expect(opened(simulator)).toHaveLength(2);
    expect(simulator.invalidRequests()).toBe(1);
    await harness.close();
  });
});

test("what is looked up after a start leaves room for answers, which come first", async () => {
  const sent: string[] = [];
  const never = new Promise<never>(() => undefined);
  const clock = createManualClock();
  const limits = createDiscordLimits({ clock });
  const note = (what: string) => () => {
    sent.push(what);
    return never;
  };
  const send = createSending(limits, clock);
  const read = { method: "read", action: "read", lanes: [lanes.global], isPatient: true };
  for (let n = 0; n < 60; n += 1) void send(read, note("look-up"), { urgency: "growth" });
  expect(limits.waitMs([lanes.global], "final")).toBe(0);
  void send({ method: "read", action: "read", lanes: [lanes.global] }, note("channel"));
  expect(sent).toEqual([...Array.from({ length: 38 }, () => "look-up"), "channel"]);
});
