import { afterEach, describe, expect, it } from "vitest";
import { createManifest } from "../../src/platforms/slack/install/manifest.ts";
import { createDiscordSimulator } from "../simulators/discord/simulator.ts";
import { answers, startSlowGateway } from "../simulators/gateway/slow-gateway.ts";
import { createSlackSimulator } from "../simulators/slack/simulator.ts";
import { createClockStepper } from "../support/clock-stepper.ts";
import { allCommands } from "../support/commands.ts";
import { runParley } from "../e2e/process/run-parley.ts";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const closing: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** Starts a bot whose clock can step, with a channel and with direct messages on each platform. */
async function startWorld(settings: Readonly<Record<string, string>> = {}) {
  const [slack, discord, gateway, clock] = await Promise.all([
    createSlackSimulator({ manifest: createManifest(allCommands, { socketMode: true }) }),
    createDiscordSimulator(),
    startSlowGateway(3000),
    createClockStepper(),
  ]);
  const parley = await runParley({
    nodeArgs: clock.nodeArgs,
    settings: {
      GATEWAY_BASE_URL: gateway.baseUrl,
      CHAT_MODEL: "m",
      SLACK_BOT_TOKEN: slack.botToken,
      SLACK_APP_TOKEN: slack.appToken,
      SLACK_API_URL: slack.apiUrl,
      DISCORD_TOKEN: discord.token,
      DISCORD_API_URL: discord.apiUrl,
      ...settings,
    },
  });
  closing.push(
    () => clock.remove(),
    () => gateway.close(),
    () => discord.close(),
    () => slack.close(),
    () => parley.remove(),
  );
  await parley.says(/Ready\./);
  await expect.poll(() => discord.world.commands.length).toBeGreaterThan(0);
  const [ana, ada, general] = [slack.person("Ana"), discord.person("Ada"), discord.channel("general")];
  const direct = discord.directMessages(ada);
  let root: string | undefined;
  const said: { id: string; channelId: string }[] = [];

  return {
    discord,
    gateway,
    clock,
    parley,
    general,
    /** Asks on both platforms and by a command, with the labels `#<name>s`, `#<name>d` and `#<name>c`. */
    ask(name: string) {
      const ts = ana.sends({
        channel: ana.directMessages,
        text: `hello #${name}s`,
        ...(root === undefined ? {} : { thread: root }),
      });
      root ??= ts;
      said.push(ada.sends({ channel: direct, text: `hello #${name}d` }));
      ada.usesCommand("ask", { prompt: `hello #${name}c` }, { channel: general });
    },
    /** Returns the bot's messages in their order in each place, without a command's quoted prompt. */
    shown: () => [
      ...slack
        .directMessages(ana)
        .saidByBot()
        .map(({ body }) => body),
      ...[...direct.fromBot(), ...general.fromBot()].map(({ text }) => text.replace(/^> .*\n+/, "")),
    ],
    /** Delivers the events of the messages again. */
    redeliver: () => {
      slack.redeliver("message");
      for (const message of said) discord.redeliver(message);
    },
  };
}

const steps = [
  { step: "+1 day", ms: dayMs },
  { step: "-1 day", ms: -dayMs },
];

describe("a clock that steps while answers stream", () => {
  it.each(steps)("$step: none breaks off, is lost or comes twice", async ({ ms }) => {
    const world = await startWorld();
    const { gateway, clock, parley } = world;
    world.ask("a");
    await expect.poll(() => gateway.turns.length).toBe(3);
    // Some of each answer is shown.
    await expect.poll(() => world.shown().filter((text) => text.includes("re #a")).length).toBe(3);
    await clock.stepBy(ms);
    const labels = ["#as", "#ad", "#ac"];
    const complete = () => labels.map((label) => world.shown().filter((text) => answers(text, label)).length);
    await expect.poll(complete, { timeout: 20_000 }).toEqual(labels.map(() => 1));
    // Events that are delivered again are recognized, and the next question is answered after the first.
    world.redeliver();
    world.ask("b");
    labels.push("#bs", "#bd", "#bc");
    await expect.poll(complete, { timeout: 20_000 }).toEqual(labels.map(() => 1));
    await clock.reset();
    world.redeliver();
    world.ask("c");
    labels.push("#cs", "#cd", "#cc");
    await expect.poll(complete, { timeout: 20_000 }).toEqual(labels.map(() => 1));
    expect(gateway.turns.map(({ labels: [label = ""] }) => label).toSorted()).toEqual(labels.toSorted());
    expect(world.shown()).toHaveLength(labels.length);
    expect(parley.output()).not.toMatch(/broke off|too old|"level":50/);
    expect(await parley.stop()).toBe(0);
  });
});
