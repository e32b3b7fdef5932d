import { afterEach, describe, expect, test } from "vitest";
import { connectRaw, type RawGatewayClient } from "../../../simulators/discord/raw-gateway-client.ts";
import { sendRaw } from "../../../simulators/discord/send-raw.ts";
import { soonAgain } from "../../../simulators/discord/session-starts.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../../../simulators/discord/simulator.ts";
import { until } from "../../../simulators/discord/until.ts";

describe("gateway sessions of the simulated Discord", () => {
  let discord: DiscordSimulator;
  afterEach(() => discord.close());

  const open = async (path?: string): Promise<RawGatewayClient> => {
    const client = await connectRaw(discord.world.origin, path);
    await client.receives(10);
    return client;
  };
  const identified = async (shard: readonly [number, number]): Promise<RawGatewayClient> => {
    const client = await open();
    client.identify(discord.token, { shard });
    await client.receives("READY");
    return client;
  };
  const eventsOf = (client: RawGatewayClient): string[] =>
    client.packets.flatMap(({ t, d }) =>
      t === "MESSAGE_CREATE" ? [(d as { readonly content: string }).content] : [],
    );

  test("a shard gets what happens in its servers; direct messages go to the first", async () => {
    discord = await createDiscordSimulator({ sessionStarts: { ...soonAgain, recommendedShards: 2 } });
    const servers = [discord.server("A"), discord.server("B")];
    expect(servers.reduce((sum, server) => sum + server.shardOf(2), 0)).toBe(1);
    const shards = [await identified([0, 2]), await identified([1, 2])];
    const ada = discord.person("Ada");
    for (const server of servers) {
      server.join(ada);
      ada.sends({ channel: server.channel("general"), text: `to ${server.shardOf(2)}` });
    }
    ada.sends({ channel: discord.directMessages(ada), text: "in private" });
    await until(() => shards.flatMap((client) => eventsOf(client)).length === 2);
    // Direct messages need their intent.
    expect(shards.map((client) => eventsOf(client))).toEqual([["to 0"], ["to 1"]]);
    const direct = await open();
    direct.identify(discord.token, { shard: [0, 2], intents: (1 << 12) | (1 << 15) });
    await direct.receives("READY");
    ada.sends({ channel: discord.directMessages(ada), text: "again" });
    await until(() => eventsOf(direct).includes("again"));
    const ready = (await shards[1]?.receives("READY"))?.d as { shard: unknown; guilds: { id: string }[] };
    expect(ready.shard).toEqual([1, 2]);
    expect(ready.guilds.map(({ id }) => id)).toContain(servers.find((one) => one.shardOf(2) === 1)?.id);
    expect(ready.guilds.map(({ id }) => id)).not.toContain(servers.find((one) => one.shardOf(2) === 0)?.id);
  });

  test.each([[[2, 2]], [[-1, 2]], [[0, 0]], ["0,1"], [[0]]])("%j is no shard", async (shard) => {
    discord = await createDiscordSimulator({ sessionStarts: soonAgain });
    const client = await open();
    client.identify(discord.token, { shard });
    expect(await client.closed()).toBe(4010);
  });

  test("a shard with too many servers is refused", async () => {
    discord = await createDiscordSimulator({ sessionStarts: { ...soonAgain, maxGuildsPerShard: 2 } });
    discord.server("A");
    discord.server("B");
    const client = await open();
    client.identify(discord.token);
    expect(await client.closed()).toBe(4011);
    await identified([0, 2]);
  });

  test("shards of one bucket identify one after another, those of others at once", async () => {
    discord = await createDiscordSimulator({ sessionStarts: { maxConcurrency: 2, spacingMs: 60_000 } });
    await identified([0, 4]);
    await identified([1, 4]);
    const third = await open();
    third.identify(discord.token, { shard: [2, 4] });
    expect(await third.receives(9)).toMatchObject({ d: false });
    expect(discord.gateway.violations).toEqual(["shard 2 identified too soon"]);
  });

  test("the budget is counted down; one IDENTIFY more resets the token and ends all sessions", async () => {
    discord = await createDiscordSimulator({
      sessionStarts: { ...soonAgain, total: 2, recommendedShards: 3 },
    });
    const first = await identified([0, 1]);
    const response = await sendRaw(discord, "GET", "/gateway/bot");
    expect(response.body).toMatchObject({
      shards: 3,
      session_start_limit: { total: 2, remaining: 1, max_concurrency: 1 },
    });
    await identified([0, 1]);
    const third = await open();
    third.identify(discord.token);
    expect(await third.closed()).toBe(4004);
    expect(await first.closed()).toBe(4004);
    expect((await sendRaw(discord, "GET", "/gateway/bot")).status).toBe(401);
  });

  test("who sends more than 120 packets in a minute is disconnected", async () => {
    discord = await createDiscordSimulator({ sessionStarts: soonAgain });
    const client = await identified([0, 1]);
    for (let count = 0; count < 119; count++) client.send({ op: 1, d: null });
    await until(() => client.packets.filter(({ op }) => op === 11).length === 119);
    client.send({ op: 1, d: null });
    expect(await client.closed()).toBe(4008);
  });

  test("who sends no heartbeats is disconnected", async () => {
    discord = await createDiscordSimulator({ sessionStarts: soonAgain, heartbeatMs: 50 });
    const client = await identified([0, 1]);
    expect(await client.closed()).toBe(4009);
  });

  test("a session is resumed at its own address as long as its events are kept", async () => {
    discord = await createDiscordSimulator({ sessionStarts: soonAgain, resumeForMs: 1000 });
    const ada = discord.person("Ada");
    const general = discord.channel("general");
    const first = await identified([0, 1]);
    const { session_id: id, resume_gateway_url: url } = (await first.receives("READY")).d as {
      readonly session_id: string;
      readonly resume_gateway_url: string;
    };
    const resume = async (path: string): Promise<RawGatewayClient> => {
      const client = await open(path);
      client.send({ op: 6, d: { token: discord.token, session_id: id, seq: 1 } });
      return client;
    };
    first.close(4200);
    await until(() => !discord.gateway.isConnected());
    ada.sends({ channel: general, text: "meanwhile" });
    const second = await resume(new URL(url).pathname);
    await second.receives("RESUMED");
    expect(eventsOf(second)).toEqual(["meanwhile"]);
    expect(discord.gateway.violations).toEqual([]);
    second.close(4200);
    await until(() => !discord.gateway.isConnected());
    const third = await resume("/gateway");
    await third.receives("RESUMED");
    expect(discord.gateway.violations).toEqual(["RESUME elsewhere than at resume_gateway_url"]);
    third.close(4200);
    await until(() => !discord.gateway.isConnected());
    discord.advance(1001);
    expect(await (await resume("/resume")).receives(9)).toMatchObject({ d: false });
  });

  test("closing with 1000 ends a session", async () => {
    discord = await createDiscordSimulator({ sessionStarts: soonAgain });
    const first = await identified([0, 1]);
    const { session_id: id } = (await first.receives("READY")).d as { readonly session_id: string };
    first.close(1000);
    await until(() => !discord.gateway.isConnected());
    const second = await open("/resume");
    second.send({ op: 6, d: { token: discord.token, session_id: id, seq: 1 } });
    expect(await second.receives(9)).toMatchObject({ d: false });
  });
});
