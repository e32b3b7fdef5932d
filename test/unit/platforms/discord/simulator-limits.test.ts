import { afterEach, describe, expect, test } from "vitest";
import { connectRaw, type RawGatewayClient } from "../../../simulators/discord/raw-gateway-client.ts";
import { sendRaw } from "../../../simulators/discord/send-raw.ts";
import { soonAgain } from "../../../simulators/discord/session-starts.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../../../simulators/discord/simulator.ts";
import { createManualClock } from "../../../support/manual-clock.ts";
import { until } from "../../../simulators/discord/until.ts";

describe("the limits of the simulator", () => {
  const generous = { limit: 1000, windowMs: 1000 };

  // The simulator must not be more lenient than Discord.
  describe("the limits of the simulated Discord", () => {
    let discord: DiscordSimulator;
    afterEach(() => discord.close());

    const start = async (rateLimits: Parameters<typeof createDiscordSimulator>[0] = {}) => {
      discord = await createDiscordSimulator(rateLimits);
      return { ada: discord.person("Ada"), general: discord.channel("general") };
    };
    const ask = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
      sendRaw(discord, method, path, body, headers);

    test("typing is shown for ten seconds, or until the bot posts there", async () => {
      const { ada, general } = await start();
      const type = () => ask("POST", `/channels/${general.id}/typing`);
      expect(general.isTyping()).toBe(false);
      expect((await type()).status).toBe(204);
      expect(general.isTyping()).toBe(true);
      discord.advance(9900);
      expect(general.isTyping()).toBe(true);
      discord.advance(200);
      expect(general.isTyping()).toBe(false);
      await type();
      ada.sends({ channel: general, text: "hello?" });
      expect(general.isTyping()).toBe(true);
      await ask("POST", `/channels/${general.id}/messages`, { content: "here I am" });
      expect(general.isTyping()).toBe(false);
      // Typing that arrives after the message is shown again.
      await type();
      expect(general.isTyping()).toBe(true);
    });

    test("typing needs the permission to post", async () => {
      const { ada, general } = await start();
      const thread = discord.thread(general, ada);
      general.deny("SEND_MESSAGES_IN_THREADS");
      const inThread = await ask("POST", `/channels/${thread.id}/typing`);
      expect(inThread).toMatchObject({ status: 403, code: 50013 });
      expect((await ask("POST", `/channels/${general.id}/typing`)).status).toBe(204);
      general.deny("SEND_MESSAGES");
      expect(await ask("POST", `/channels/${general.id}/typing`)).toMatchObject({ status: 403, code: 50013 });
    });

    test("a channel has a hidden limit of new threads, whose Retry-After can be minutes", async () => {
      const { ada, general } = await start({ rateLimits: { threads: { limit: 2, windowMs: 300_000 } } });
      const open = async (channel: { readonly id: string }) => {
        const { id } = ada.sends({ channel, text: "x" });
        return ask("POST", `/channels/${channel.id}/messages/${id}/threads`, { name: "x" });
      };
      const first = await open(general);
      expect(first.status).toBe(201);
      // The headers are of another limit. Nothing announces this one.
      expect(Number(first.headers.get("x-ratelimit-limit"))).toBe(10);
      expect((await open(general)).status).toBe(201);
      const third = await open(general);
      expect(third.status).toBe(429);
      expect(Number(third.headers.get("retry-after"))).toBeGreaterThan(290);
      expect(third.headers.get("x-ratelimit-scope")).toBe("shared");
      expect(Number(third.headers.get("x-ratelimit-remaining"))).toBeGreaterThan(0);
      const withoutMessage = await ask("POST", `/channels/${general.id}/threads`, { name: "x", type: 11 });
      expect(withoutMessage.status).toBe(429);
      expect((await open(discord.channel("other"))).status).toBe(201);
      // Discord does not count 429s of shared limits.
      expect(discord.invalidRequests()).toBe(0);
    });

    test("a channel has a hidden limit of edits of messages older than an hour, with an error code of its own", async () => {
      const { general } = await start({ rateLimits: { oldEdits: { limit: 1, windowMs: 60_000 } } });
      const post = async () =>
        String((await ask("POST", `/channels/${general.id}/messages`, { content: "x" })).body["id"]);
      const edit = (id: string) => ask("PATCH", `/channels/${general.id}/messages/${id}`, { content: "y" });
      const old = await post();
      expect([(await edit(old)).status, (await edit(old)).status]).toEqual([200, 200]);
      discord.advance(3_600_001);
      const fresh = await post();
      expect((await edit(old)).status).toBe(200);
      const refused = await edit(old);
      expect(refused).toMatchObject({ status: 429, code: 30046 });
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(50);
      expect(Number(refused.headers.get("x-ratelimit-remaining"))).toBeGreaterThan(0);
      expect((await edit(fresh)).status).toBe(200);
      expect(discord.invalidRequests()).toBe(1);
    });

    test("direct messages can be opened too fast, which no header announces", async () => {
      const { ada } = await start({ rateLimits: { directMessages: { limit: 1, windowMs: 600_000 } } });
      const open = () => ask("POST", "/users/@me/channels", { recipient_id: ada.id });
      const first = await open();
      expect(first.status).toBe(200);
      expect(Number(first.headers.get("x-ratelimit-remaining"))).toBeGreaterThan(0);
      expect(await open()).toMatchObject({ status: 403, code: 40003 });
      expect(discord.invalidRequests()).toBe(1);
    });

    test("over all routes there are 50 requests a second; interactions and their messages are exempt", async () => {
      const clock = createManualClock();
      const { ada, general } = await start({ clock, rateLimits: { webhooks: generous, others: generous } });
      const command = { name: "ask", description: "Ask" };
      await ask("PUT", `/applications/${discord.botId}/commands`, [command]);
      const uses = Array.from({ length: 60 }, () => ada.usesCommand("ask", {}, { channel: general }));
      const open = { authorization: "" };
      for (const use of uses) {
        const { token } = use.interaction;
        expect(
          (await ask("POST", `/interactions/${use.id}/${token}/callback`, { type: 5 }, open)).status,
        ).toBe(204);
        const original = `/webhooks/${discord.botId}/${token}/messages/@original`;
        expect((await ask("PATCH", original, { content: "x" }, open)).status).toBe(200);
      }
      const statuses = await Promise.all(
        Array.from({ length: 60 }, async () => {
          const { status, headers } = await ask("GET", `/channels/${general.id}`);
          return { status, isGlobal: headers.get("x-ratelimit-global") };
        }),
      );
      // One request was the registration of the command.
      expect(statuses.filter(({ status }) => status === 200)).toHaveLength(49);
      expect(statuses.find(({ status }) => status === 429)).toEqual({ status: 429, isGlobal: "true" });
      await clock.advance(1000);
      expect((await ask("GET", `/channels/${general.id}`)).status).toBe(200);
    });

    test("401, 403 and 429 count as invalid requests, and 10,000 in ten minutes are a ban", async () => {
      const { general } = await start({ rateLimits: { invalidRequests: 3 } });
      general.deny("SEND_MESSAGES");
      const post = () => ask("POST", `/channels/${general.id}/messages`, { content: "x" });
      await ask("GET", "/users/@me", undefined, { authorization: "Bot wrong" });
      await post();
      expect(discord.invalidRequests()).toBe(2);
      await ask("GET", "/nowhere");
      expect(discord.invalidRequests()).toBe(2);
      await post();
      const banned = await ask("GET", "/users/@me");
      expect(banned.status).toBe(429);
      expect(banned.text).toContain("1015");
      expect(banned.headers.get("retry-after")).toBe(null);
      discord.advance(600_001);
      expect((await ask("GET", "/users/@me")).status).toBe(200);
      expect(discord.invalidRequests()).toBe(0);
    });

    test("a rate limit can come without Retry-After, from Cloudflare or with an empty header, also a global one", async () => {
      await start();
      const me = () => ask("GET", "/users/@me");
      discord.fail({ status: 429, retryAfter: "absent", times: 1 });
      expect(await me()).toMatchObject({ status: 429, text: "error code: 1015" });
      discord.fail({ status: 429, retryAfter: "empty", retryAfterMs: 400, isGlobal: true, times: 1 });
      const empty = await me();
      expect(empty.body).toMatchObject({ retry_after: 0.4, global: true });
      expect(empty.headers.get("retry-after")).toBe("");
      expect(empty.headers.get("x-ratelimit-global")).toBe("true");
    });

    test("a notification shows what was posted, not what it was edited to", async () => {
      const { general } = await start();
      const posted = await ask("POST", `/channels/${general.id}/messages`, { content: "first" });
      await ask("PATCH", `/channels/${general.id}/messages/${String(posted.body["id"])}`, {
        content: "second",
      });
      await ask("POST", `/channels/${general.id}/messages`, { content: "quiet", flags: 1 << 12 });
      expect(general.fromBot()).toMatchObject([
        { text: "second", notification: "first" },
        { text: "quiet", notification: undefined },
      ]);
    });

    test("a nonce counts for its author in every channel, for a few minutes", async () => {
      const { general } = await start();
      const random = discord.channel("random");
      const send = (channel: { readonly id: string }) =>
        ask("POST", `/channels/${channel.id}/messages`, { content: "x", nonce: "n1", enforce_nonce: true });
      const first = await send(general);
      expect((await send(random)).body).toMatchObject({ id: first.body["id"], channel_id: general.id });
      discord.advance(300_001);
      expect((await send(random)).body["channel_id"]).toBe(random.id);
    });
  });
});

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
