import { afterEach, describe, expect, test } from "vitest";
import type { Platform } from "../../../../src/core/platform.ts";
import type { Records } from "../../../../src/core/storage.ts";
import { createDiscordPlatform } from "../../../../src/platforms/discord/platform.ts";
import type { ShardSettings } from "../../../../src/platforms/discord/transport/shards.ts";
import { soonAgain } from "../../../simulators/discord/session-starts.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../../../simulators/discord/simulator.ts";
import { allCommands } from "../../../support/commands.ts";
import { createSharedMemory } from "../../../support/memory-records.ts";
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

  const launch = (shards: ShardSettings, records?: Records): Process => {
    const { log, lines } = createListLog();
    const platform = createDiscordPlatform({
      token: discord.token,
      apiUrl: discord.apiUrl,
      commands: allCommands,
      shards,
      ...(records === undefined ? {} : { records, isShared: true }),
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

  describe("that several instances share", () => {
    const automatic: ShardSettings = { count: "auto", ids: undefined };

    test("are heard by one, while the others stand by and say who hears", async () => {
      discord = await createDiscordSimulator({ clock, sessionStarts: soonAgain });
      const { records } = createSharedMemory(clock);
      const hearing = launch(automatic, records);
      await clock.passing(hearing.started);
      const standby = launch(automatic, records);
      await clock.passing(standby.started);
      await clock.passing(clock.sleep(30_000));
      expect(discord.gateway.identified).toHaveLength(1);
      expect(hearing.platform.health()).toEqual({ state: "ready" });
      const { state, detail } = standby.platform.health();
      expect([state, detail]).toEqual(["ready", expect.stringMatching(/another instance \(.+\) hears/)]);
      const ada = discord.person("Ada");
      ada.sends({ channel: discord.directMessages(ada), text: "hello" });
      await until(() => hearing.receiver.events.length === 1);
      expect(standby.receiver.events).toEqual([]);
      expect(discord.requests.filter(({ method }) => method === "PUT")).toHaveLength(1);
    });

    test("are heard by the next one before the first stops: nothing is lost", async () => {
      discord = await createDiscordSimulator({ clock, sessionStarts: soonAgain });
      const { records } = createSharedMemory(clock);
      const first = launch(automatic, records);
      await clock.passing(first.started);
      const second = launch(automatic, records);
      await clock.passing(second.started);
      const ada = discord.person("Ada");
      const direct = discord.directMessages(ada);
      let sent = 0;
      const paused = new AbortController();
      const pausing = clock.passing(first.platform.pause()).finally(() => paused.abort());
      while (!paused.signal.aborted) {
        ada.sends({ channel: direct, text: `message ${sent++}` });
        expect(discord.gateway.connections()).toBeGreaterThan(0);
        await new Promise((resolve) => setImmediate(resolve));
      }
      await pausing;
      ada.sends({ channel: direct, text: `message ${sent++}` });
      const keys = () =>
        new Set([first, second].flatMap(({ receiver }) => receiver.events.map(({ key }) => key)));
      await until(() => keys().size === sent);
      expect(discord.gateway.identified).toHaveLength(2);
      expect(discord.gateway.connections()).toBe(1);
      expect(second.platform.health()).toEqual({ state: "ready" });
    });

    test("are free soon where the only instance stops, and a standby of later hears at once", async () => {
      discord = await createDiscordSimulator({ clock, sessionStarts: soonAgain });
      const { records } = createSharedMemory(clock);
      const alone = launch(automatic, records);
      await clock.passing(alone.started);
      const pausedAt = clock.monotonic();
      await clock.passing(alone.platform.pause());
      expect(clock.monotonic() - pausedAt).toBeLessThan(4000);
      expect(discord.gateway.connections()).toBe(0);
      const next = launch(automatic, records);
      await clock.passing(next.started);
      expect(discord.gateway.identified).toHaveLength(2);
      expect(next.platform.health()).toEqual({ state: "ready" });
    });

    test("spread over the instances, and those of one that dies are taken within nine seconds", async () => {
      discord = await createDiscordSimulator({ clock, sessionStarts: { ...soonAgain, maxConcurrency: 4 } });
      const { records } = createSharedMemory(clock);
      let isCut = false;
      const cut: Records = {
        ...records,
        update: (...given) => (isCut ? new Promise(() => {}) : records.update(...given)),
      };
      const doomed = launch({ count: 4, ids: undefined }, cut);
      const other = launch({ count: 4, ids: undefined }, records);
      await clock.passing(Promise.all([doomed.started, other.started]));
      expect(discord.gateway.identified).toHaveLength(4);
      const [here, there] = [doomed, other].map(({ platform }) => platform.health().connections?.length);
      expect([here, there]).toEqual([2, 2]);
      isCut = true;
      const diedAt = clock.monotonic();
      await until(() => discord.gateway.identified.length > 4, { timeoutMs: 60_000 });
      expect(clock.monotonic() - diedAt).toBeLessThan(9000);
      // The other one follows when Discord lets it identify.
      await until(() => other.platform.health().connections?.length === 4, { timeoutMs: 60_000 });
      await until(() => other.platform.health().state === "ready");
      isCut = false;
    });

    test("that are listed for another instance wait ten seconds for it", async () => {
      discord = await createDiscordSimulator({ clock, sessionStarts: { ...soonAgain, maxConcurrency: 2 } });
      const { records } = createSharedMemory(clock);
      const first = launch({ count: 2, ids: [0] }, records);
      await clock.passing(first.started);
      await clock.passing(clock.sleep(8000));
      expect(discord.gateway.identified.map(({ shard }) => shard)).toEqual([[0, 2]]);
      await until(() => discord.gateway.identified.length === 2, { timeoutMs: 20_000 });
      // Its own instance comes later, and finds it held.
      const second = launch({ count: 2, ids: [1] }, records);
      await clock.passing(second.started);
      expect(discord.gateway.identified).toHaveLength(2);
    });
  });
});
