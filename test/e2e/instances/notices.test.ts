import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { answers } from "../../simulators/gateway/slow-gateway.ts";
import { has } from "../../support/requirements.ts";
import { startStallingProxy } from "../../support/stalling-proxy.ts";
import { startInstances, type Instances } from "./instances.ts";

let world: Instances | undefined;
afterEach(async () => {
  await world?.close();
  world = undefined;
});

/** Waits at most this long for Redis, twice, before a person is told. */
const toldWithinMs = 20_000;

/** The answers to a label that people see. An answer to a command quotes its question. */
function answersTo(label: string): string[] {
  return (world?.shown() ?? [])
    .map(({ text }) => text.replace(/^(?:.* wrote:\n+)?> .*\n\n/, ""))
    .filter((text) => answers(text, label));
}

const eventually = (look: () => boolean | undefined, timeout = 40_000) =>
  vi.waitUntil(look, { timeout, interval: 25 });

describe.skipIf(!has("redis"))(
  "what people are told while Redis is unavailable stays true when it is back",
  () => {
    it("where only one instance cannot reach it, the other one answers and nobody is told anything", async () => {
      world = await startInstances(1, { platforms: ["discord"], durationMs: 100 });
      const { discord, redis } = world;
      const proxy = await startStallingProxy(redis.port);
      onTestFinished(() => proxy.close());
      const cutOff = await world.start({ STORE_URL: `redis://127.0.0.1:${proxy.port}` });
      const ada = discord.person("Ada");
      const channel = discord.directMessages(ada);
      const general = discord.channel("general");
      ada.sends({ channel, text: "before #a" });
      await world.answered("#a");
      proxy.stall();
      ada.sends({ channel, text: "meanwhile #b" });
      ada.sends({ channel: general, text: "meanwhile #c", mentionBot: true });
      await world.answered("#b");
      await world.answered("#c");
      const given = () => cutOff.output().match(/message not accepted/g)?.length;
      await eventually(() => given() === 2);
      proxy.resume();
      ada.sends({ channel, text: "after #d" });
      await world.answered("#d");
      expect(world.shown().filter(({ text }) => /store/.test(text))).toEqual([]);
      expect([answersTo("#b").length, answersTo("#c").length]).toEqual([1, 1]);
    });

    it("where it was not written: it is answered neither then, nor by the next start", async () => {
      world = await startInstances(1, { platforms: ["discord"], durationMs: 100 });
      const { discord, redis, running, gateway } = world;
      const ada = discord.person("Ada");
      const channel = discord.directMessages(ada);
      ada.sends({ channel, text: "before #a" });
      await world.answered("#a");
      await redis.kill();
      const lost = ada.sends({ channel, text: "meanwhile #b" });
      const told = () => channel.fromBot().filter(({ replyTo }) => replyTo === lost.id);
      await eventually(() => told().length > 0, toldWithinMs);
      await redis.start();
      // A new session looks for missed messages.
      discord.gateway.invalidateSession(false);
      ada.sends({ channel, text: "after #c" });
      await world.answered("#c");
      expect(await running[0]?.stop()).toBe(0);
      await world.start();
      ada.sends({ channel, text: "after #d" });
      await world.answered("#d");
      expect(told()).toHaveLength(1);
      expect(gateway.turns.flatMap(({ labels }) => labels)).not.toContain("#b");
    });

    for (const how of ["hangs", "is killed"] as const) {
      it(`commands on both platforms are answered when it is back, without words that deny it: it ${how}`, async () => {
        world = await startInstances(1, { platforms: ["slack", "discord"], durationMs: 100 });
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
          expect.stringContaining("if your command could be kept"),
          expect.stringContaining("if your command could be kept"),
        ]);
        if (how === "hangs") redis.resume();
        else await redis.start();
        await eventually(() => answersTo("#d").length > 0 && answersTo("#s").length > 0);
        expect(general.fromBot()).toHaveLength(1);
        expect(world.shown().filter(({ text }) => /not kept|nothing would be/.test(text))).toEqual([]);
        expect([answersTo("#d").length, answersTo("#s").length]).toEqual([1, 1]);
        expect(slack.badAcks).toEqual([]);
      });
    }
  },
);
