import type { Use } from "../../simulators/discord/people.ts";
import { until } from "../../simulators/discord/until.ts";
import { describe, expect, it, vi } from "vitest";
import { answers } from "../../simulators/gateway/slow-gateway.ts";
import { has } from "../../support/requirements.ts";
import type { Instance } from "./instance.ts";
import { shortLeaseMs, useInstances } from "./instances.ts";

const start = useInstances();

/** Returns the instance that hears Discord. */
function hears(running: readonly Instance[]): Instance {
  return running.find((one) => one.output().includes("this instance hears the shard"))!;
}

/** Words that a person must not read about something that is answered. */
const refusals = /try again|restarting|nothing would be kept|not kept|could not take/i;

describe.skipIf(!has("redis"))("while an instance drains", () => {
  it("Slack delivers everything to the other one: messages, commands and mentions, without a word about it", async () => {
    const world = await start(2, { durationMs: 100 });
    const { slack, gateway } = world;
    const ana = slack.person("Ana");
    const ideas = slack.channel("ideas", [ana]);
    gateway.setHanging("#a");
    ana.sends({ channel: ana.directMessages, text: "long #a" });
    const draining = await world.whoAnswers("#a");
    const stopping = draining.stop();
    await slack.waitFor("a closed socket", () => slack.connections === 1, 3000);
    const labels: string[] = [];
    for (let n = 0; n < 4; n++) {
      labels.push(`#m${n}x`, `#t${n}x`, `#c${n}x`);
      const { length } = slack.deliveries;
      ana.sends({ channel: ana.directMessages, text: `new #m${n}x` });
      ana.sends({ channel: ideas.id, text: `mention #t${n}x`, mentionBot: true });
      const use = await ana.usesCommand("/ask", `why #c${n}x`, { channel: ideas.id });
      expect(use.kind).toBe("acknowledged");
      await slack.waitFor("the deliveries", () =>
        slack.deliveries.slice(length).every(({ outcome }) => outcome !== "waiting"),
      );
    }
    expect(draining.hasEnded()).toBe(false);
    gateway.setHanging(false);
    for (const label of labels) {
      const isAnswered = () =>
        world.shown().some(({ text }) => answers(text.replace(/^(?:.* wrote:\n+)?> .*\n\n/, ""), label));
      await vi.waitUntil(isAnswered, { timeout: 20_000 });
    }
    await world.answered("#a");
    await stopping;
    expect(world.shown().filter(({ text }) => refusals.test(text))).toEqual([]);
    expect(slack.badAcks).toEqual([]);
  });

  it("alone, it hears nothing more, and what is said meanwhile is answered by the next start", async () => {
    const world = await start(1, { platforms: ["slack", "discord"], durationMs: 100 });
    const { slack, discord, gateway } = world;
    const ana = slack.person("Ana");
    const ada = discord.person("Ada");
    const general = discord.channel("general");
    gateway.setHanging("#a");
    ana.sends({ channel: ana.directMessages, text: "long #a" });
    const draining = await world.whoAnswers("#a");
    const stopping = draining.stop();
    await slack.waitFor("a closed socket", () => slack.connections === 0);
    await until(() => !discord.gateway.isConnected());
    const root = ana.sends({ channel: ana.directMessages, text: "late #s" });
    // This is the first one in a server, a channel and a conversation that the store does not know.
    ada.sends({ channel: general, text: "late #m", mentionBot: true });
    gateway.setHanging(false);
    await world.answered("#a");
    await stopping;
    await world.start();
    // Slack redelivers one minute after the second attempt.
    slack.clock.advance(61_000);
    expect(await world.answered("#m")).toHaveLength(1);
    expect(await world.answered("#s")).toHaveLength(1);
    expect(slack.directMessages(ana).saidByBot(root)).toHaveLength(1);
  });
});

describe.skipIf(!has("redis"))("Stop that another instance gets than the one that answers", () => {
  /** Begins a long answer in a channel, and presses Stop where only the other instance can get it. */
  async function stopped(how: "stop" | "kill", { isSlacks = false } = {}) {
    const running = await start(2, { leaseMs: how === "kill" ? shortLeaseMs : undefined });
    const { slack, gateway } = running;
    const ana = slack.person("Ana");
    const ideas = slack.channel("ideas", [ana]);
    gateway.setHanging(true);
    const thread = ana.sends({ channel: ideas.id, text: "long #a", mentionBot: true });
    const answering = await running.whoAnswers("#a");
    const message = await slack.waitFor("the Stop button", () =>
      ideas.saidByBot().find(({ buttons }) => buttons.some(({ label }) => label === "Stop")),
    );
    await slack.waitFor("Slack's Stop", () => slack.sessionIn(ideas.id, thread)?.hasStop);
    void answering[how]();
    await slack.waitFor("a closed socket", () => slack.connections === 1);
    const pressedAt = performance.now();
    if (isSlacks) ana.pressesStop(ideas.id, thread);
    else await ana.clicks(message, "Stop", { channel: ideas.id });
    const end = () => ideas.saidByBot().find(({ smallPrint }) => smallPrint.includes("Stopped by Ana."));
    const session = () => slack.sessionIn(ideas.id, thread);
    return { running, message, pressedAt, end, session };
  }

  it("ends the request there within about a second, and the words stay", async () => {
    const { running, message, pressedAt, end } = await stopped("stop");
    await vi.waitUntil(() => running.gateway.turns[0]?.endedAt !== undefined, {
      timeout: 10_000,
      interval: 10,
    });
    // The marks are read every 0.7 s. The rest is for a loaded machine.
    expect(performance.now() - pressedAt).toBeLessThan(4000);
    const shown = await running.slack.waitFor("the end", end);
    expect(shown).toMatchObject({ ts: message.ts });
    expect(shown.body).toContain("re #a");
    expect(shown.buttons.map(({ label }) => label)).toEqual([
      "Regenerate",
      "Other model",
      "Continue",
      "Details",
    ]);
    expect(running.gateway.turns).toHaveLength(1);
  });

  it("ends it too where it is Slack's own, and the session is not at work any more", async () => {
    const { running, message, end, session } = await stopped("stop", { isSlacks: true });
    expect(await running.slack.waitFor("the end", end)).toMatchObject({ ts: message.ts });
    await running.slack.waitFor("the session", () => session()?.status === "active");
  });

  it("of one that was killed ends the reply, and the turn is not run again", async () => {
    const { running, message, end } = await stopped("kill");
    const shown = await running.slack.waitFor("the end", end, 20_000);
    expect(shown).toMatchObject({ ts: message.ts });
    expect(running.gateway.turns).toHaveLength(1);
    expect(running.shown().filter(({ text }) => text.includes("Stopped"))).toHaveLength(1);
  });
});

describe.skipIf(!has("redis"))("Discord, which three instances share", () => {
  it("is handed over under 20 mentions a second: none is lost or doubled, and no command fails", async () => {
    const settings = { TURNS_PERSON_MINUTE: "1000" };
    const world = await start(3, { platforms: ["discord"], durationMs: 50, limitsFactor: 20, settings });
    const { discord, gateway } = world;
    const people = Array.from({ length: 10 }, (_, n) => discord.person(`Person ${n}`));
    const channels = Array.from({ length: 10 }, (_, n) => discord.channel(`room-${n}`));
    const hearing = hears(world.running);
    const labels: string[] = [];
    const uses: Use[] = [];
    let stopping: Promise<void> | undefined;
    for (let n = 0; n < 100; n++) {
      const channel = channels[n % channels.length]!;
      labels.push(`#m${n}x`);
      const person = people[n % people.length]!;
      person.sends({ channel, text: `hello #m${n}x`, mentionBot: true });
      if (n % 5 === 0) uses.push(person.usesCommand("models", {}, { channel }));
      if (n === 20) stopping = hearing.stop();
      await new Promise((resolve) => void setTimeout(resolve, 50));
    }
    await stopping;
    const asked = () => gateway.turns.flatMap(({ labels: all }) => all);
    const missing = () => labels.filter((label) => !asked().includes(label));
    await vi.waitUntil(() => missing().length === 0, { timeout: 30_000 }).catch(() => undefined);
    expect(missing()).toEqual([]);
    await until(() => uses.every((use) => use.state() === "answered"));
    for (const label of labels) expect(await world.answered(label)).toHaveLength(1);
    expect(labels.filter((label) => asked().filter((one) => one === label).length !== 1)).toEqual([]);
  });

  it("is heard again within nine seconds of a crash, and what was said meanwhile is answered", async () => {
    const world = await start(3, { platforms: ["discord"], durationMs: 50 });
    const { discord } = world;
    const ada = discord.person("Ada");
    const hearing = hears(world.running);
    ada.sends({ channel: discord.directMessages(ada), text: "hello #a" });
    await world.answered("#a");
    hearing.kill();
    const killedAt = performance.now();
    await until(() => !discord.gateway.isConnected());
    ada.sends({ channel: discord.directMessages(ada), text: "hello #b" });
    await vi.waitUntil(() => discord.gateway.isConnected(), { timeout: 30_000, interval: 10 });
    const gapMs = Math.round(performance.now() - killedAt);
    process.stdout.write(`Discord was not heard for ${gapMs} ms after a crash\n`);
    expect(gapMs).toBeLessThan(9000);
    expect(await world.answered("#b")).toHaveLength(1);
  });
});
