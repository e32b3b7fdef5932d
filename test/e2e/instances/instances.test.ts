import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { answers, type SlowTurn } from "../../simulators/gateway/slow-gateway.ts";
import { has } from "../../support/requirements.ts";
import { runParley } from "../process/run-parley.ts";
import { startInstance } from "./instance.ts";
import { shortLeaseMs, useInstances } from "./instances.ts";

const start = useInstances();

/** Returns pairs of turns of one conversation that overlapped in time. */
function overlaps(turns: readonly SlowTurn[], conversationOf: (label: string) => string): string[] {
  const found: string[] = [];
  for (const [index, one] of turns.entries()) {
    for (const other of turns.slice(index + 1)) {
      const [a = "", b = ""] = [one.labels.at(-1), other.labels.at(-1)];
      if (conversationOf(a) !== conversationOf(b)) continue;
      if (other.startedAt < (one.endedAt ?? Infinity) && one.startedAt < (other.endedAt ?? Infinity))
        found.push(`${a} and ${b}`);
    }
  }
  return found;
}

describe.skipIf(!has("redis"))("several instances on one Redis", () => {
  it("answer every message once, and those of a conversation in order, whichever instance receives them", async () => {
    const world = await start(3, { platforms: ["slack", "discord"], durationMs: 200 });
    const { slack, discord, gateway } = world;
    const people = ["Ana", "Ben", "Cem"].map((name) => slack.person(name));
    const ada = discord.person("Ada");
    const roots = people.map((person, n) =>
      person.sends({ channel: person.directMessages, text: `first #s${n}x0` }),
    );
    ada.sends({ channel: discord.directMessages(ada), text: "first #d0x0" });
    for (const n of [0, 1, 2]) await world.answered(`#s${n}x0`);
    const labels = ["#d0x0", "#s0x0", "#s1x0", "#s2x0"];
    for (let round = 1; round <= 4; round++) {
      for (const [n, person] of people.entries()) {
        const label = `#s${n}x${round}`;
        person.sends({ channel: person.directMessages, thread: roots[n]!, text: `more ${label}` });
        labels.push(label);
      }
      ada.sends({ channel: discord.directMessages(ada), text: `more #d0x${round}` });
      labels.push(`#d0x${round}`);
      // Turns run in order of acceptance, which two instances may do concurrently.
      await slack.waitFor("all acknowledgements", () =>
        slack.deliveries.every(({ outcome }) => outcome !== "waiting"),
      );
    }
    for (const label of labels) {
      const shown = await world.answered(label);
      expect(shown.map(({ text }) => text)).toHaveLength(1);
    }
    expect(overlaps(gateway.turns, (label) => label.split("x")[0]!)).toEqual([]);
    // Slack delivered the events to different instances.
    expect(new Set(gateway.turns.map(({ from }) => from)).size).toBeGreaterThan(1);
    const last = gateway.turns.findLast(({ labels: all }) => all.at(-1)?.startsWith("#s0") === true);
    const said = (last?.messages ?? [])
      .filter((one) => one.startsWith("user: "))
      .flatMap((one) => one.match(/#s0x\d/g) ?? []);
    expect(said).toEqual(["#s0x0", "#s0x1", "#s0x2", "#s0x3", "#s0x4"]);
  });

  it("take over from a killed one, in the same message, within its lease and one round", async () => {
    const world = await start(2, { leaseMs: shortLeaseMs });
    const { slack, gateway } = world;
    const ana = slack.person("Ana");
    gateway.setHanging(true);
    const root = ana.sends({ channel: ana.directMessages, text: "hello #a" });
    const doomed = await world.whoAnswers("#a");
    const [half] = world.shown();
    doomed.kill();
    const killedAt = performance.now();
    gateway.setHanging(false);
    const shown = await world.answered("#a");
    expect(performance.now() - killedAt).toBeLessThan(shortLeaseMs + shortLeaseMs / 3 + 4000);
    expect(shown.map(({ id }) => id)).toEqual([half?.id]);
    ana.sends({ channel: ana.directMessages, thread: root, text: "and #b" });
    await world.answered("#b");
    expect(gateway.turns.at(-1)?.messages).toHaveLength(3);
  });

  it("post nothing twice after one was killed between its post and saving the address", async () => {
    const world = await start(1, { durationMs: 100, leaseMs: shortLeaseMs });
    const { slack } = world;
    await world.start({ diesBeforeAddress: true });
    const people = ["Ana", "Ben", "Cem", "Dan"].map((name) => slack.person(name));
    for (const [n, person] of people.entries()) {
      person.sends({ channel: person.directMessages, text: `hello #p${n}` });
    }
    for (const n of people.keys()) expect(await world.answered(`#p${n}`)).toHaveLength(1);
    expect(world.shown()).toHaveLength(people.length);
  });

  it("are not overwritten by a paused one that resumes", async () => {
    const world = await start(2, { leaseMs: shortLeaseMs });
    const { slack, gateway } = world;
    const ana = slack.person("Ana");
    gateway.setDuration(2500);
    ana.sends({ channel: ana.directMessages, text: "hello #a" });
    const paused = await world.whoAnswers("#a");
    paused.pause();
    gateway.setDuration(300);
    const shown = await world.answered("#a");
    const pausedFrom = gateway.turns[0]?.from;
    const before = slack.directMessages(ana).saidByBot();
    paused.resume();
    await paused.says(/lease lost/);
    await paused.says(/turn left open/);
    expect(gateway.turns).toHaveLength(2);
    // It had the time for an edit once it has answered something else. It may have to reconnect to Slack.
    const deadline = Date.now() + 45_000;
    for (let n = 0; gateway.turns.filter(({ from }) => from === pausedFrom).length < 2; n++) {
      expect(Date.now()).toBeLessThan(deadline);
      const ben = slack.person(`Ben${n}`);
      ben.sends({ channel: ben.directMessages, text: `hello #b${n}x` });
      await world.answered(`#b${n}x`);
    }
    expect(slack.directMessages(ana).saidByBot()).toEqual(before);
    expect(before.map(({ ts, text }) => ({ id: ts, text }))).toEqual(shown);
    expect(shown).toHaveLength(1);
  });

  for (const method of ["PATCH", "POST"] as const) {
    it(`are not overwritten on Discord by a paused one that resumes, whose ${method} was in flight`, async () => {
      const world = await start(2, { platforms: ["discord"], leaseMs: shortLeaseMs });
      const { discord, gateway } = world;
      const ada = discord.person("Ada");
      const channel = discord.directMessages(ada);
      const arrived = Promise.withResolvers<void>();
      const held = Promise.withResolvers<void>();
      const hold = () => {
        arrived.resolve();
        return held.promise;
      };
      discord.fail({ method, route: "/messages", status: 502, until: hold, times: 1 });
      gateway.setDuration(20_000);
      ada.sends({ channel, text: "hello #a" });
      await arrived.promise;
      const { from } = await vi.waitUntil(() => gateway.turns[0], { timeout: 10_000 });
      const paused = world.running[Number(from)]!;
      paused.pause();
      gateway.setDuration(300);
      const shown = await world.answered("#a");
      // The response is there when the process wakes.
      held.resolve();
      paused.resume();
      await paused.says(/turn left open/);
      gateway.setDuration(1500);
      ada.sends({ channel, text: "more #b" });
      await world.answered("#b");
      expect(world.shown().filter(({ id }) => shown.some((one) => one.id === id))).toEqual(shown);
      expect(shown).toHaveLength(1);
      expect(channel.fromBot()).toHaveLength(2);
    });
  }

  it("answer a Discord command once, in its place, while one of them drains", async () => {
    const world = await start(2, { platforms: ["discord"] });
    const { discord, gateway } = world;
    const ada = discord.person("Ada");
    const general = discord.channel("general");
    gateway.setHanging("#a");
    ada.sends({ channel: discord.directMessages(ada), text: "long #a" });
    const draining = await world.whoAnswers("#a");
    const stopping = draining.stop();
    const uses = Array.from({ length: 5 }, (_, n) =>
      ada.usesCommand("ask", { prompt: `why #c${n}x` }, { channel: general }),
    );
    // Each answer quotes its question.
    const texts = () => general.fromBot().map(({ text }) => text.replace(/^> .*\n\n/, ""));
    const isAnswered = () => uses.every((_, n) => texts().some((text) => answers(text, `#c${n}x`)));
    await vi.waitUntil(isAnswered, { timeout: 20_000 });
    gateway.setHanging(false);
    await world.answered("#a");
    await stopping;
    expect(texts()).toHaveLength(5);
    expect(general.fromBot().filter(({ isEphemeral }) => isEphemeral)).toEqual([]);
    expect(uses.map((use) => use.state())).toEqual(uses.map(() => "answered"));
  });

  it("stop an answer whose question is edited in whichever instance it is made, and answer once in the same message", async () => {
    const world = await start(3, { platforms: ["slack", "discord"], durationMs: 200 });
    const { slack, discord, gateway } = world;
    const ana = slack.person("Ana");
    const ada = discord.person("Ada");
    const direct = discord.directMessages(ada);
    gateway.setHanging(true);
    const said = ana.sends({ channel: ana.directMessages, text: "hello #s0x" });
    const sent = ada.sends({ channel: direct, text: "hello #d0x" });
    for (const label of ["#s0x", "#d0x"]) await world.whoAnswers(label);
    const before = world.shown().map(({ id }) => id);
    const isStopped = (label: string) =>
      gateway.turns.some(({ labels, endedAt }) => labels.includes(label) && endedAt !== undefined);
    ana.edits(said, "hello #s1x", { channel: ana.directMessages });
    // Every instance gets the edit, and one takes it in.
    ada.edits(sent, "hello #d1x");
    gateway.setHanging(false);
    for (const label of ["#s0x", "#d0x"])
      await vi.waitUntil(() => isStopped(label), { timeout: 10_000, interval: 50 });
    for (const label of ["#s1x", "#d1x"]) expect(await world.answered(label)).toHaveLength(1);
    expect(world.shown().map(({ id }) => id)).toEqual(before);
    for (const label of ["#s1x", "#d1x"])
      expect(gateway.turns.filter(({ labels }) => labels.at(-1) === label)).toHaveLength(1);

    // These are edits of answered messages, by whichever instance.
    ana.edits(said, "hello #s2x", { channel: ana.directMessages });
    ada.edits(sent, "hello #d2x");
    for (const label of ["#s2x", "#d2x"]) expect(await world.answered(label)).toHaveLength(1);
    expect(world.shown().map(({ id }) => id)).toEqual(before);
    expect(gateway.turns).toHaveLength(6);
  });
});

describe("two processes on one SQLite file", () => {
  it("are refused: the second says why, and the first continues", async () => {
    const folder = await mkdtemp(join(tmpdir(), "parley-two-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const settings = { STORE_URL: `sqlite:${join(folder, "parley.db")}` };
    const first = await startInstance({ settings });
    onTestFinished(() => first.remove());
    const second = await runParley({ folder, settings });
    expect(await second.ended).toBe(1);
    expect(second.output()).toMatch(/another process|in use/i);
    expect(second.output()).not.toContain("    at ");
    expect((await fetch(`${first.parley.url}/readyz`)).status).toBe(200);
  });
});
