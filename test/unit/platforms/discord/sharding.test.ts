import { afterEach, describe, expect, test } from "vitest";
import type { Platform } from "../../../../src/core/platform.ts";
import { createDiscordPlatform } from "../../../../src/platforms/discord/platform.ts";
import type { ShardSettings } from "../../../../src/platforms/discord/transport/shards.ts";
import { soonAgain } from "../../../simulators/discord/session-starts.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../../../simulators/discord/simulator.ts";
import { allCommands } from "../../../support/commands.ts";
import { createRecordingReceiver, type RecordingReceiver } from "../../../support/recording-receiver.ts";
import { clock, createListLog, until, type LogLine, letIdentify } from "./harness.ts";

interface Process {
  readonly platform: Platform;
  readonly receiver: RecordingReceiver;
  readonly lines: LogLine[];
  readonly started: Promise<void>;
}

describe("shards", () => {
  let discord: DiscordSimulator;
  let processes: Process[] = [];
  afterEach(async () => {
    await Promise.all(processes.map(({ platform }) => platform.stop()));
    processes = [];
    await discord.close();
  });

  const launch = (shards: ShardSettings): Process => {
    const { log, lines } = createListLog();
    const platform = createDiscordPlatform({
      token: discord.token,
      apiUrl: discord.apiUrl,
      commands: allCommands,
      shards,
      log,
      now: discord.world.now,
      clock,
    });
    const receiver = createRecordingReceiver();
    const started = platform.start(receiver, receiver);
    started.catch(() => undefined);
    const process = { platform, receiver, lines, started };
    processes.push(process);
    return process;
  };
  const textsOf = ({ receiver }: Process): string[] =>
    receiver.events.map((event) => (event.kind === "message" ? event.text : `/${event.name}`)).sort();

  test("of one process answer everybody, and identify one after another", async () => {
    discord = await createDiscordSimulator({ clock, sessionStarts: { recommendedShards: 2 } });
    const servers = [discord.server("A"), discord.server("B")];
    const ada = discord.person("Ada");
    for (const server of servers) server.join(ada);
    const { platform, receiver, started } = launch({ count: "auto", ids: undefined });
    await until(() => platform.health().connections?.[0]?.state === "ready");
    expect(discord.gateway.identified).toHaveLength(1);
    expect(platform.health()).toMatchObject({
      state: "connecting",
      detail: "shard 1 of 2",
      connections: [
        { name: "shard 0", state: "ready" },
        { name: "shard 1", state: "connecting" },
      ],
    });
    // The first shard is served while the others wait for their turn.
    ada.sends({ channel: discord.directMessages(ada), text: "early" });
    await until(() => receiver.events.length === 1);
    // The library waits for five seconds of this machine.
    await until(() => platform.health().state === "ready", { timeoutMs: 120_000 });
    await started;
    expect(discord.gateway.violations).toEqual([]);
    expect(discord.gateway.identified.map(({ shard }) => shard)).toEqual([
      [0, 2],
      [1, 2],
    ]);
    expect(platform.health()).toMatchObject({ state: "ready" });
    await until(() => discord.world.commands.length > 0);
    for (const server of servers)
      ada.sends({ channel: server.channel("general"), text: server.id, mentionBot: true });
    await until(() => receiver.events.length === 3);
    expect(discord.requests.filter(({ method }) => method === "PUT")).toHaveLength(1);
  });

  test("of two processes share the work: each message is taken once, commands are registered once", async () => {
    discord = await createDiscordSimulator({ clock, sessionStarts: soonAgain });
    const servers = [discord.server("A"), discord.server("B")].sort((a, b) => a.shardOf(2) - b.shardOf(2));
    const ada = discord.person("Ada");
    for (const server of servers) server.join(ada);
    const [first, second] = [0, 1].map((id) => launch({ count: 2, ids: [id] })) as [Process, Process];
    await clock.passing(Promise.all([first.started, second.started]));
    expect(discord.gateway.violations).toEqual([]);
    await until(() => discord.world.commands.length > 0);
    for (const server of servers) {
      const channel = server.channel("general");
      ada.sends({ channel, text: `to ${server.shardOf(2)}`, mentionBot: true });
      ada.usesCommand("models", {}, { channel });
    }
    ada.sends({ channel: discord.directMessages(ada), text: "in private" });
    await until(() => first.receiver.events.length === 3 && second.receiver.events.length === 2);
    expect(textsOf(first)).toEqual(["/models", "in private", "to 0"]);
    expect(textsOf(second)).toEqual(["/models", "to 1"]);
    expect(discord.requests.filter(({ method }) => method === "PUT")).toHaveLength(1);
    expect(first.platform.health()).toMatchObject({ state: "ready" });
  });

  test("in direct messages members of another process's servers are no strangers", async () => {
    discord = await createDiscordSimulator({ clock, sessionStarts: soonAgain });
    const servers = [discord.server("A"), discord.server("B")].sort((a, b) => a.shardOf(2) - b.shardOf(2));
    const bo = discord.person("Bo", { isMember: false });
    servers[1]?.join(bo);
    const { receiver, started } = launch({ count: 2, ids: [0] });
    await clock.passing(started);
    bo.sends({ channel: discord.directMessages(bo), text: "hello" });
    await until(() => receiver.events.length === 1);
    expect(receiver.events[0]?.origin).toMatchObject({ isMember: true });
  });

  test("a lost connection of one shard is resumed at its own address; the others go on", async () => {
    discord = await createDiscordSimulator({ clock, sessionStarts: { ...soonAgain, maxConcurrency: 2 } });
    const servers = [discord.server("A"), discord.server("B")].sort((a, b) => a.shardOf(2) - b.shardOf(2));
    const ada = discord.person("Ada");
    const channels = servers.map((server) => {
      server.join(ada);
      return server.channel("general");
    });
    const { platform, receiver, started } = launch({ count: 2, ids: undefined });
    await clock.passing(started);
    discord.gateway.drop(1);
    await until(() => !discord.gateway.isConnected(1));
    for (const channel of channels) ada.sends({ channel, text: channel.id, mentionBot: true });
    await until(() => receiver.events.length === 1);
    expect(platform.health()).toMatchObject({
      state: "connecting",
      detail: "shard 1 of 2: reconnecting to Discord",
    });
    await until(() => receiver.events.length === 2);
    expect(discord.gateway.counts).toEqual({ identify: 2, resume: 1 });
    expect(discord.gateway.violations).toEqual([]);
  });

  test("a connection whose heartbeats are not acknowledged is opened again", async () => {
    discord = await createDiscordSimulator({ clock, heartbeatMs: 200 });
    const { receiver, started } = launch({ count: 1, ids: undefined });
    await clock.passing(started);
    discord.gateway.ignoreHeartbeats();
    const ada = discord.person("Ada");
    await until(() => discord.gateway.counts.resume === 1);
    ada.sends({ channel: discord.directMessages(ada), text: "hello" });
    await until(() => receiver.events.length === 1);
    expect(discord.gateway.counts.identify).toBe(1);
  });

  test("a session that can no longer be resumed is replaced, and what was missed is read", async () => {
    discord = await createDiscordSimulator({ clock, sessionStarts: soonAgain });
    const server = discord.server("A");
    const ada = discord.person("Ada");
    server.join(ada);
    const general = server.channel("general");
    const { receiver, started } = launch({ count: 1, ids: undefined });
    await clock.passing(started);
    discord.gateway.drop();
    await until(() => !discord.gateway.isConnected());
    letIdentify();
    discord.gateway.expireSessions();
    ada.sends({ channel: general, text: "meanwhile", mentionBot: true });
    await until(() => receiver.events.length === 1, { timeoutMs: 15_000 });
    expect(discord.gateway.counts).toEqual({ identify: 2, resume: 1 });
  });

  test("too few shards are a failure that says how to mend it, and not tried again", async () => {
    discord = await createDiscordSimulator({ clock, sessionStarts: { maxGuildsPerShard: 1 } });
    discord.server("A");
    const { platform, started } = launch({ count: 1, ids: undefined });
    await expect(started).rejects.toMatchObject({ code: "config" });
    expect(platform.health()).toMatchObject({ state: "failed" });
    expect(platform.health().detail).toContain("DISCORD_SHARDS");
    expect(discord.gateway.counts.identify).toBe(1);
  });
});
