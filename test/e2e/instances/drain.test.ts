import { until } from "../../simulators/discord/until.ts";
import { afterEach, describe, expect, it, vi } from "vitest";
import { answers } from "../../simulators/gateway/slow-gateway.ts";
import { has } from "../../support/requirements.ts";
import { startInstances, type Instances } from "./instances.ts";

let world: Instances | undefined;
afterEach(async () => {
  await world?.close();
  world = undefined;
});

/** Words that a person must not read of something that is answered. */
const refusals = /try again|restarting|nothing would be kept|not kept|could not take/i;

describe.skipIf(!has("redis"))("while an instance drains", () => {
  it("Slack delivers everything to the other one: messages, commands and mentions, without a word about it", async () => {
    world = await startInstances(2);
    const { slack, gateway } = world;
    const ana = slack.person("Ana");
    const ideas = slack.channel("ideas", [ana]);
    gateway.setDuration(8000);
    ana.sends({ channel: ana.directMessages, text: "long #a" });
    const draining = await world.whoAnswers("#a");
    gateway.setDuration(200);
    draining.process.kill("SIGTERM");
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
    expect(draining.process.exitCode).toBe(null);
    for (const label of labels) {
      const isAnswered = () =>
        world?.shown().some(({ text }) => answers(text.replace(/^(?:.* wrote:\n+)?> .*\n\n/, ""), label));
      await vi.waitUntil(isAnswered, { timeout: 20_000 });
    }
    await world.answered("#a");
    expect(await draining.ended).toBe(0);
    expect(world.shown().filter(({ text }) => refusals.test(text))).toEqual([]);
    expect(slack.badAcks).toEqual([]);
  });

  it("alone, what comes is answered by the next start, or was refused in true words", async () => {
    world = await startInstances(1, { platforms: ["slack", "discord"] });
    const { slack, discord, gateway } = world;
    const ana = slack.person("Ana");
    const ada = discord.person("Ada");
    const general = discord.channel("general");
    gateway.setDuration(5000);
    ana.sends({ channel: ana.directMessages, text: "long #a" });
    const draining = await world.whoAnswers("#a");
    gateway.setDuration(200);
    draining.process.kill("SIGTERM");
    await slack.waitFor("a closed socket", () => slack.connections === 0);
    const root = ana.sends({ channel: ana.directMessages, text: "late #s" });
    // The first one in a server, a channel and a conversation that the store does not know.
    ada.sends({ channel: general, text: "late #m", mentionBot: true });
    // The socket is closed a moment before commands are refused.
    const told = () => general.fromBot().find(({ text }) => /restarting/.test(text));
    let uses = 0;
    while (told() === undefined) {
      const use = ada.usesCommand("ask", { prompt: `late #c${(uses += 1)}` }, { channel: general });
      await until(() => use.state() === "answered");
    }
    await world.answered("#a");
    expect(await draining.ended).toBe(0);
    expect(told()).toMatchObject({ isEphemeral: true });
    await world.start();
    // Slack redelivers one minute after the second attempt.
    slack.clock.advance(61_000);
    expect(await world.answered("#m")).toHaveLength(1);
    expect(await world.answered("#s")).toHaveLength(1);
    expect(slack.directMessages(ana).saidByBot(root)).toHaveLength(1);
    expect(world.shown().some(({ text }) => answers(text, `#c${uses}`))).toBe(false);
  });
});
