import { afterEach, describe, expect, it, vi } from "vitest";
import { has } from "../../support/requirements.ts";
import { startInstances, type Instances } from "./instances.ts";

let world: Instances | undefined;
afterEach(async () => {
  await world?.close();
  world = undefined;
});

describe.skipIf(!has("redis"))("Stop that another instance gets than the one that answers", () => {
  /** A long answer in a channel, and a press of its Stop button that only the other instance can get. */
  async function stopped(signal: "SIGTERM" | "SIGKILL", { isSlacks = false } = {}) {
    const running = (world = await startInstances(2));
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
    answering.process.kill(signal);
    await slack.waitFor("a closed socket", () => slack.connections === 1);
    const pressedAt = performance.now();
    if (isSlacks) ana.pressesStop(ideas.id, thread);
    else await ana.clicks(message, "Stop", { channel: ideas.id });
    const end = () => ideas.saidByBot().find(({ smallPrint }) => smallPrint.includes("Stopped by Ana."));
    const session = () => slack.sessionIn(ideas.id, thread);
    return { running, message, pressedAt, end, session };
  }

  it("ends the request there within about a second, and the words stay", async () => {
    const { running, message, pressedAt, end } = await stopped("SIGTERM");
    await vi.waitUntil(() => running.gateway.turns[0]?.endedAt !== undefined, {
      timeout: 10_000,
      interval: 10,
    });
    // The marks are read every 0.7 s; the rest is for a loaded machine.
    expect(performance.now() - pressedAt).toBeLessThan(4000);
    const shown = await running.slack.waitFor("the end", end);
    expect(shown).toMatchObject({ ts: message.ts });
    expect(shown.body).toContain("re #a");
    expect(shown.buttons.map(({ label }) => label)).toEqual(["Regenerate", "Other model", "Details"]);
    expect(running.gateway.turns).toHaveLength(1);
  });

  it("ends it too where it is Slack's own, and the session is not at work any more", async () => {
    const { running, message, end, session } = await stopped("SIGTERM", { isSlacks: true });
    expect(await running.slack.waitFor("the end", end)).toMatchObject({ ts: message.ts });
    await running.slack.waitFor("the session", () => session()?.status === "active");
  });

  it("of one that was killed ends the reply, and the turn is not run again", async () => {
    const { running, message, end } = await stopped("SIGKILL");
    const shown = await running.slack.waitFor("the end", end, 20_000);
    expect(shown).toMatchObject({ ts: message.ts });
    expect(running.gateway.turns).toHaveLength(1);
    expect(running.shown().filter(({ text }) => text.includes("Stopped"))).toHaveLength(1);
  });
});
