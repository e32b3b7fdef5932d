import { afterEach, describe, expect, it } from "vitest";
import { answers, startSlowGateway, type SlowGateway } from "../simulators/gateway/slow-gateway.ts";
import {
  createDiscordSimulator,
  type ChannelHandle,
  type DiscordSimulator,
} from "../simulators/discord/simulator.ts";
import { until } from "../simulators/discord/until.ts";
import { runParley, type RunningParley } from "../e2e/process/run-parley.ts";

let discord: DiscordSimulator;
let gateway: SlowGateway;
let parley: RunningParley | undefined;
afterEach(async () => {
  await parley?.remove();
  parley = undefined;
  await Promise.all([gateway.close(), discord.close()]);
});

async function start(
  simulator: Parameters<typeof createDiscordSimulator>[0] = {},
  durationMs = 600,
): Promise<void> {
  [discord, gateway] = await Promise.all([createDiscordSimulator(simulator), startSlowGateway(durationMs)]);
  parley = await runParley({
    settings: {
      DISCORD_TOKEN: discord.token,
      DISCORD_API_URL: discord.apiUrl,
      GATEWAY_BASE_URL: gateway.baseUrl,
      GATEWAY_API_KEY: "any",
      CHAT_MODEL: "m",
      GATEWAY_CONCURRENCY: "500",
      GATEWAY_CONCURRENCY_PERSON: "50",
    },
  });
  await parley.says(/Ready\./);
}

/** Calls `act` so many times a second. Resolves after the last call. */
function atRate(perSecond: number, count: number, act: (index: number) => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const startedAt = performance.now();
  let done = 0;
  const timer = setInterval(() => {
    const due = Math.min(count, Math.floor(((performance.now() - startedAt) / 1000) * perSecond) + 1);
    while (done < due) act(done++);
    if (done < count) return;
    clearInterval(timer);
    resolve();
  }, 10);
  return promise;
}

describe("20 mentions a second for 20 seconds, under Discord's limits", () => {
  it("are all answered within 10 s of the gateway's last words, without one refused request", async () => {
    await start({}, 1500);
    gateway.setThinking(300);
    const people = Array.from({ length: 40 }, (_, n) => discord.person(`Person ${n}`));
    const channels = people.map((_, n) => discord.channel(`channel-${n}`));
    const count = 400;
    const places = (): ChannelHandle[] => channels.flatMap((channel) => [channel, ...channel.threads()]);
    await atRate(20, count, (index) => {
      const text = `question #q${index}`;
      people[index % 40]?.sends({ channel: channels[index % 40]!, text, mentionBot: true });
    });
    const shown = (): string[] => places().flatMap((place) => place.fromBot().map(({ text }) => text));
    const isAnswer = (text: string): boolean => /^re #q\d+ \.{6}/.test(text);
    await until(() => shown().filter(isAnswer).length >= count, {
      timeoutMs: 30_000,
      explain: () => ({ answered: shown().filter(isAnswer).length, output: parley?.output().slice(-2000) }),
    });
    expect(shown().filter((text) => !isAnswer(text))).toEqual([]);
    expect(shown()).toHaveLength(count);

    const endedAt = new Map(gateway.turns.map(({ labels, endedAt: at }) => [labels[0], at ?? Infinity]));
    const waits = new Map<string, number>();
    for (const { json, at, status } of discord.requests) {
      const text = typeof json["content"] === "string" ? json["content"] : "";
      const label = /^re (#q\d+) \.{6}/.exec(text)?.[1];
      if (label !== undefined && status === 200 && !waits.has(label))
        waits.set(label, at - (endedAt.get(label) ?? Infinity));
    }
    expect(waits.size).toBe(count);
    expect(Math.max(...waits.values())).toBeLessThan(10_000);
    expect(discord.requests.filter(({ status }) => status === 429)).toEqual([]);
    expect(discord.invalidRequests()).toBe(0);
    // Discord's rate limit leaves room for the threads of some questions.
    expect(channels.flatMap((channel) => channel.threads()).length).toBeGreaterThan(count / 5);
  });
});

describe("an answer to come", () => {
  it("is announced by typing alone: a mention, a thread and a direct message notify with its first words", async () => {
    await start();
    // A process that has just started takes a while for its first turn.
    gateway.setThinking(1500);
    const ada = discord.person("Ada");
    const general = discord.channel("general");
    const direct = discord.directMessages(ada);
    const talk = async (place: () => ChannelHandle | undefined, label: string): Promise<void> => {
      await until(() => place()?.isTyping(), { explain: () => parley?.output() });
      await until(() => place()?.fromBot().at(-1)?.text.startsWith(`re ${label}`));
      expect(place()?.isTyping()).toBe(false);
      await until(() => answers(place()?.fromBot().at(-1)?.text ?? "", label));
      expect(place()?.isTyping()).toBe(false);
      expect(place()?.fromBot().at(-1)?.notification).toMatch(new RegExp(`^re ${label}`));
    };
    const thread = () => general.threads()[0];
    ada.sends({ channel: general, text: "what? #a", mentionBot: true });
    await talk(thread, "#a");
    ada.sends({ channel: thread()!, text: "and then? #b" });
    await talk(thread, "#b");
    ada.sends({ channel: direct, text: "hello #c" });
    await talk(() => direct, "#c");
    const everything = [general, thread()!, direct].flatMap((place) => place.fromBot());
    expect(everything.flatMap(({ text, earlier }) => [text, ...earlier]).join("\n")).not.toContain(
      "Thinking",
    );
    expect(general.typingCount()).toBe(0);
  });
});

describe("a channel in which Discord refuses new threads for minutes", () => {
  it("gets its answers at once, as replies, and replies to them go on", async () => {
    await start({ rateLimits: { threads: { limit: 1, windowMs: 300_000 } } }, 100);
    const ada = discord.person("Ada");
    const ben = discord.person("Ben");
    const general = discord.channel("general");
    const answered = (label: string, place: () => ChannelHandle | undefined = () => general) =>
      until(
        () =>
          place()
            ?.fromBot()
            .find(({ text }) => text.startsWith(`re ${label} ......`)),
        {
          timeoutMs: 5000,
          explain: () => ({ shown: general.transcript(), output: parley?.output() }),
        },
      );
    ada.sends({ channel: general, text: "one #a", mentionBot: true });
    await answered("#a", () => general.threads()[0]);
    const asked = ben.sends({ channel: general, text: "two #b", mentionBot: true });
    const first = await answered("#b");
    expect(first).toMatchObject({ replyTo: asked.id });
    expect(first.text).toContain("Reply to this message to go on.");
    ben.sends({ channel: general, text: "three #c", replyTo: first });
    const second = await answered("#c");
    ada.sends({ channel: general, text: "four #d", replyTo: second });
    await answered("#d");
    expect(gateway.turns.at(-1)?.messages.filter((message) => message.startsWith("user"))).toHaveLength(3);
    expect(general.threads()).toHaveLength(1);
  });
});
