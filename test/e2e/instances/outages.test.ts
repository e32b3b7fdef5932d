import { describe, expect, it, vi } from "vitest";
import { answers } from "../../simulators/gateway/slow-gateway.ts";
import { has } from "../../support/requirements.ts";
import { sleep } from "../../../src/support/clock.ts";
import { shortLeaseMs, useInstances, type Instances } from "./instances.ts";

const start = useInstances();

/** The instances wait this many times shorter for Redis than they would. */
const speed = 4;

/** The bot waits at most this long for Redis, twice, before a person is told. */
const toldWithinMs = 20_000;

/** Returns the answers to a label that people see. An answer to a command quotes its question. */
function answersTo(world: Instances, label: string): string[] {
  return world
    .shown()
    .map(({ text }) => text.replace(/^(?:.* wrote:\n+)?> .*\n\n/, ""))
    .filter((text) => answers(text, label));
}

const eventually = (look: () => boolean | undefined, timeout = 40_000) =>
  vi.waitUntil(look, { timeout, interval: 25 });

describe.skipIf(!has("redis"))(
  "what people are told while Redis is unavailable stays true when it is back",
  () => {
    it("where only the instance that hears Discord cannot reach it, another one takes over and answers once", async () => {
      const world = await start(1, { platforms: ["discord"], durationMs: 100, leaseMs: shortLeaseMs });
      const { discord } = world;
      const [cutOff] = world.running;
      const other = await world.start();
      const ada = discord.person("Ada");
      const channel = discord.directMessages(ada);
      const general = discord.channel("general");
      ada.sends({ channel, text: "before #a" });
      await world.answered("#a");
      cutOff!.storeLine.stall();
      ada.sends({ channel, text: "meanwhile #b" });
      ada.sends({ channel: general, text: "meanwhile #c", mentionBot: true });
      await other.says(/this instance hears the shard/);
      await world.answered("#b");
      await world.answered("#c");
      cutOff!.storeLine.resume();
      await cutOff!.says(/another instance hears the shard/);
      ada.sends({ channel, text: "after #d" });
      await world.answered("#d");
      expect([answersTo(world, "#b").length, answersTo(world, "#c").length]).toEqual([1, 1]);
    });

    it("where it was not written: it is answered once, when the store is back, after its author was told", async () => {
      const world = await start(1, { platforms: ["discord"], durationMs: 100, speed });
      const { discord, redis, running } = world;
      const ada = discord.person("Ada");
      const channel = discord.directMessages(ada);
      ada.sends({ channel, text: "before #a" });
      await world.answered("#a");
      await redis.kill();
      const late = ada.sends({ channel, text: "meanwhile #b" });
      const told = () => channel.fromBot().filter(({ replyTo }) => replyTo === late.id);
      await eventually(() => told().length > 0, toldWithinMs);
      await redis.start();
      await world.answered("#b");
      ada.sends({ channel, text: "after #c" });
      await world.answered("#c");
      await running[0]?.stop();
      await world.start();
      ada.sends({ channel, text: "after #d" });
      await world.answered("#d");
      expect(told()).toMatchObject([{ text: expect.stringContaining("may still get an answer") }]);
      expect(answersTo(world, "#b")).toHaveLength(1);
    });

    for (const how of ["hangs", "is killed"] as const) {
      it(`commands on both platforms are answered when it is back, without words that deny it: it ${how}`, async () => {
        const world = await start(1, { platforms: ["slack", "discord"], durationMs: 100, speed });
        const { slack, discord, redis } = world;
        await eventually(() => discord.world.commands.length > 0);
        const ana = slack.person("Ana");
        const ada = discord.person("Ada");
        const ideas = slack.channel("ideas", [ana]);
        const general = discord.channel("general");
        if (how === "hangs") redis.pause();
        else await redis.kill();
        ada.usesCommand("ask", { prompt: "why #d" }, { channel: general });
        const use = await ana.usesCommand("/ask", "why #s", { channel: ideas.id });
        expect(use.kind).toBe("acknowledged");
        await eventually(() => general.fromBot().length > 0);
        expect(world.shown().map(({ text }) => text)).toEqual([
          expect.stringContaining("may still get an answer"),
          expect.stringContaining("may still get an answer"),
        ]);
        if (how === "hangs") redis.resume();
        else await redis.start();
        await eventually(() => answersTo(world, "#d").length > 0 && answersTo(world, "#s").length > 0);
        expect(general.fromBot()).toHaveLength(1);
        expect(world.shown().filter(({ text }) => /not kept|nothing would be/.test(text))).toEqual([]);
        expect([answersTo(world, "#d").length, answersTo(world, "#s").length]).toEqual([1, 1]);
        expect(slack.badAcks).toEqual([]);
      });
    }
  },
);

describe.skipIf(!has("redis"))("several instances on one Redis that goes away", () => {
  it("continue when Redis is restarted during an answer", async () => {
    const world = await start(2);
    const { slack, gateway, redis } = world;
    const ana = slack.person("Ana");
    gateway.setDuration(1500);
    const root = ana.sends({ channel: ana.directMessages, text: "hello #a" });
    await world.whoAnswers("#a");
    await redis.kill();
    await redis.start();
    expect(await world.answered("#a")).toHaveLength(1);
    ana.sends({ channel: ana.directMessages, thread: root, text: "and #b" });
    expect(await world.answered("#b")).toHaveLength(1);
    expect(gateway.turns.at(-1)?.messages).toHaveLength(3);
  });

  it("tell people while Redis is unavailable for longer than the lease, lose nothing, and recover by themselves", async () => {
    const world = await start(2, { platforms: ["slack", "discord"], leaseMs: shortLeaseMs, speed });
    const { slack, discord, redis } = world;
    const ana = slack.person("Ana");
    const ada = discord.person("Ada");
    const root = ana.sends({ channel: ana.directMessages, text: "before #a" });
    ada.sends({ channel: discord.directMessages(ada), text: "before #b" });
    await world.answered("#a");
    await world.answered("#b");
    world.gateway.setHanging("#c");
    ana.sends({ channel: ana.directMessages, thread: root, text: "running #c" });
    await world.whoAnswers("#c");
    await redis.kill();
    ada.sends({ channel: discord.directMessages(ada), text: "meanwhile #d" });
    const channel = discord.directMessages(ada);
    // Discord does not redeliver, so the person is told. Slack redelivers what is not acknowledged.
    const told = () => channel.fromBot().filter(({ text }) => text.includes("may still get an answer"));
    await slack.waitFor("the notice about the store", () => told().length > 0, 20_000);
    ana.sends({ channel: ana.directMessages, thread: root, text: "meanwhile #e" });
    // This is how long Redis is unavailable.
    await sleep((shortLeaseMs * 2) / speed);
    expect(world.shown().some(({ text }) => answers(text, "#c"))).toBe(false);
    // Both instances received it, but one notice is shown.
    expect(told()).toHaveLength(1);
    await redis.start();
    world.gateway.setHanging(false);
    expect(await world.answered("#c")).toHaveLength(1);
    await slack.waitFor("an answer to the redelivered message", () => {
      // It is redelivered one minute after the second attempt, and five after the third.
      slack.clock.advance(20_000);
      return world.shown().some(({ text }) => answers(text, "#e"));
    });
    expect(await world.answered("#e")).toHaveLength(1);
    ada.sends({ channel, text: "after #f" });
    expect(await world.answered("#f")).toHaveLength(1);
  });
});
