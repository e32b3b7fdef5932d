import { afterEach, beforeEach, expect, test } from "vitest";
import { createDiscordApi, type DiscordApi } from "../../../../src/platforms/discord/api.ts";
import { createDiscordScheduler, withDelivery } from "../../../../src/platforms/discord/delivery.ts";
import { createHttpAgent } from "../../../../src/platforms/discord/http-agent.ts";
import { clock, startHarness } from "./harness.ts";
import { fasterRateLimits } from "../../../simulators/discord/rate-limits.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../../../simulators/discord/simulator.ts";

// discord.js sends a request again at once where a 429 has no Retry-After.
let discord: DiscordSimulator;
let api: DiscordApi;
let agent: ReturnType<typeof createHttpAgent>;
beforeEach(async () => {
  discord = await createDiscordSimulator({ rateLimits: fasterRateLimits(20) });
  agent = createHttpAgent();
  const scheduler = createDiscordScheduler(undefined, undefined, clock);
  const plain = createDiscordApi({ token: discord.token, apiUrl: discord.apiUrl, agent, clock });
  api = withDelivery(plain, scheduler, discord.world.now, clock);
});
afterEach(async () => {
  await agent.close();
  await discord.close();
});

const sent = (): number => discord.requests.length;

/** The library waits before reads, the scheduler before what is shown. */
const requests = {
  "a read": (channelId: string) => api.getChannel(channelId),
  "a post": (channelId: string) => clock.passing(api.createMessage(channelId, { content: "x" })),
} as const;

for (const [name, fault] of Object.entries({
  "from Cloudflare": { retryAfter: "absent" },
  "with an empty header": { retryAfter: "empty", retryAfterMs: 500 },
  "from Cloudflare, of all routes": { retryAfter: "absent", isGlobal: true },
  "with an empty header, of all routes": { retryAfter: "empty", retryAfterMs: 500, isGlobal: true },
} as const)) {
  for (const [what, request] of Object.entries(requests)) {
    test(`a rate limit of ${what} ${name} is no hot loop`, async () => {
      const general = discord.channel("general");
      discord.fail({ status: 429, ...fault, times: 1 });
      const startedAt = clock.monotonic();
      await request(general.id);
      expect(sent()).toBe(2);
      expect(clock.monotonic() - startedAt).toBeGreaterThan(490);
    });
  }
}

test("requests without an answer to wait for wait longer each time, and in the end are errors with a time", async () => {
  const general = discord.channel("general");
  const { id } = await api.createMessage(general.id, { content: "x" });
  discord.fail({ status: 429, retryAfter: "absent", times: 10 });
  const waits: unknown[] = [];
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const error = await clock
      .passing(
        api.editMessage(
          general.id,
          id,
          { content: "y" },
          { urgency: "preview", deadline: clock.monotonic() + 60_000 },
        ),
      )
      .catch((reason: unknown) => reason);
    waits.push((error as { retryAfterMs?: number }).retryAfterMs);
  }
  expect(waits).toEqual([1000, 2000, 4000]);
});

test("the client's own requests at the start wait too", async () => {
  const { simulator, close } = await startHarness({
    prepare: (one) => one.fail({ route: "/gateway/bot", status: 429, retryAfter: "absent", times: 1 }),
  });
  expect(simulator.requests.filter(({ path }) => path === "/gateway/bot")).toHaveLength(2);
  await close();
});
