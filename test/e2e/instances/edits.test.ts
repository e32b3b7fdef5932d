import { afterEach, describe, expect, it, vi } from "vitest";
import { has } from "../../support/requirements.ts";
import { startInstances, type Instances } from "./instances.ts";

let world: Instances | undefined;
afterEach(async () => {
  await world?.close();
  world = undefined;
});

describe.skipIf(!has("redis"))("an edited question and several instances on one Redis", () => {
  it("stops the answer in whichever instance it is made, and is answered once in the same message", async () => {
    world = await startInstances(3, { platforms: ["slack", "discord"], durationMs: 200 });
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

    // Answered ones, by whichever instance.
    ana.edits(said, "hello #s2x", { channel: ana.directMessages });
    ada.edits(sent, "hello #d2x");
    for (const label of ["#s2x", "#d2x"]) expect(await world.answered(label)).toHaveLength(1);
    expect(world.shown().map(({ id }) => id)).toEqual(before);
    expect(gateway.turns).toHaveLength(6);
  });
});
