import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createDiscordApi, type DiscordApi } from "../../../../src/platforms/discord/api.ts";
import { createHttpAgent } from "../../../../src/platforms/discord/http-agent.ts";
import { createInvalidRequestGuard } from "../../../../src/platforms/discord/invalid-requests.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../../../simulators/discord/simulator.ts";
import { createManualClock, type ManualClock } from "../../../support/manual-clock.ts";
import { createListLog } from "./harness.ts";

// 10,000 requests that Discord refuses in ten minutes ban the address.
describe("requests that Discord refuses", () => {
  let discord: DiscordSimulator;
  let api: DiscordApi;
  let agent: ReturnType<typeof createHttpAgent>;
  let listed: ReturnType<typeof createListLog>;
  let clock: ManualClock;
  beforeEach(async () => {
    const generous = { limit: 1000, windowMs: 1000 };
    discord = await createDiscordSimulator({
      rateLimits: { messages: generous, others: generous, threads: { limit: 0, windowMs: 1000 } },
    });
    agent = createHttpAgent();
    listed = createListLog();
    clock = createManualClock();
    const guard = createInvalidRequestGuard({
      log: listed.log,
      limits: { slow: 5, stop: 10 },
      clock,
    });
    api = createDiscordApi({ token: discord.token, apiUrl: discord.apiUrl, agent, guard });
  });
  afterEach(async () => {
    await agent.close();
    await discord.close();
  });

  const advance = async (ms: number): Promise<void> => {
    await clock.advance(ms);
    discord.advance(ms);
  };
  const closedChannel = (name: string) => {
    const channel = discord.channel(name);
    channel.deny("SEND_MESSAGES");
    return channel;
  };
  const post = (channel: { readonly id: string }) => api.createMessage(channel.id, { content: "x" });
  const refused = { code: "platform-forbidden", detail: { discordCode: 50013 } };

  test("are not repeated once there are many, and the others go on", async () => {
    const secret = closedChannel("secret");
    for (let count = 0; count < 20; count += 1) await expect(post(secret)).rejects.toMatchObject(refused);
    expect(discord.invalidRequests()).toBe(5);
    await post(discord.channel("general"));
    expect(listed.lines.filter(({ level }) => level === "warn")).toHaveLength(1);
    // A permission that was granted is seen after a minute.
    discord.world.channels.get(secret.id)?.denied.clear();
    await expect(post(secret)).rejects.toMatchObject(refused);
    await advance(60_001);
    await post(secret);
    await post(secret);
  });

  test("are answered again as long as there are few", async () => {
    const secret = closedChannel("secret");
    await expect(post(secret)).rejects.toMatchObject(refused);
    discord.world.channels.get(secret.id)?.denied.clear();
    await post(secret);
  });

  test("stop all requests but responses to interactions far below the number that bans", async () => {
    for (let count = 0; count < 15; count += 1)
      await Promise.allSettled([post(closedChannel(`secret-${count}`))]);
    expect(discord.invalidRequests()).toBe(10);
    const general = discord.channel("general");
    const sent = discord.requests.length;
    await expect(post(general)).rejects.toMatchObject({
      code: "platform-unreachable",
      retryAfterMs: expect.any(Number),
    });
    await expect(api.getChannel(general.id)).rejects.toMatchObject({ code: "platform-unreachable" });
    expect(discord.requests).toHaveLength(sent);
    expect(listed.lines.filter(({ level }) => level === "error")).toHaveLength(1);
    await expect(api.respond("1", "token", { type: 5 })).rejects.toMatchObject({ code: "platform-rejected" });
    await advance(600_001);
    await post(general);
  });

  test("by a limit that all bots of a channel share are not counted", async () => {
    const general = discord.channel("general");
    for (let count = 0; count < 12; count += 1) {
      const opening = api.startThread(general.id, undefined, { name: "x", type: 11, archiveMinutes: 1440 });
      await expect(opening).rejects.toMatchObject({ code: "platform-unreachable" });
    }
    expect(discord.requests.filter(({ status }) => status === 429)).toHaveLength(12);
    await post(general);
    expect(listed.lines).toEqual([]);
  });
});
