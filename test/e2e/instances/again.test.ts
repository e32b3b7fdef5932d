import { afterEach, describe, expect, it, vi } from "vitest";
import { has } from "../../support/requirements.ts";
import { startInstances, type Instances } from "./instances.ts";

let world: Instances | undefined;
afterEach(async () => {
  await world?.close();
  world = undefined;
});

/** The embedded gateway's models, which draw. */
const sandbox = { GATEWAY_BASE_URL: "", CHAT_MODEL: "" };

describe.skipIf(!has("redis"))("Again pressed twice, on Slack, with several instances on one Redis", () => {
  it("draws once, though each press comes to another instance", async () => {
    world = await startInstances(0);
    const { slack } = world;
    await world.start(sandbox);
    const ana = slack.person("Ana");
    const channel = slack.channel("general", [ana]);
    const withButtons = () =>
      channel.saidByBot().filter(({ buttons }) => buttons.some(({ label }) => label === "Again"));
    const pictures = () => channel.saidByBot().flatMap(({ files }) => files);
    const drawn = (count: number) =>
      vi.waitUntil(() => withButtons().length >= count, { timeout: 20_000, interval: 50 });
    await ana.usesCommand("/imagine", "a red fox size:64x64", { channel: channel.id });
    await drawn(1);
    await world.start(sandbox);
    const [picture] = withButtons();
    await Promise.all([1, 2].map(() => ana.clicks(picture!, "Again", { channel: channel.id })));
    await drawn(2);
    // Drawn after whatever the presses have begun.
    await ana.usesCommand("/imagine", "a blue fox size:64x64", { channel: channel.id });
    await vi.waitUntil(() => withButtons().some(({ text }) => text.includes("a blue fox")), {
      timeout: 20_000,
      interval: 50,
    });
    expect(pictures()).toHaveLength(3);
  });
});
