import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { createDiscordScheduler } from "../../../../src/platforms/discord/delivery.ts";
import { createDiscordSimulator } from "../../../simulators/discord/simulator.ts";
import { createDiscordApi } from "../../../../src/platforms/discord/api.ts";
import { createHttpAgent } from "../../../../src/platforms/discord/http-agent.ts";

test.each([
  ["as Discord allows usually", undefined, 48],
  ["as it allows a large bot", 200, 192],
  ["of a process with a part of them", 25, 24],
  ["of one with hardly any", 1, 1],
])("requests at once, %s", async (_, requestsPerSecond, sentAtOnce) => {
  const scheduler = createDiscordScheduler(undefined, requestsPerSecond);
  const end = new AbortController();
  let sent = 0;
  const calls = Array.from({ length: 300 }, (_call, index) =>
    scheduler.send(
      {
        lanes: ["global", `posts ${index}`],
        method: "post",
        urgency: "final",
        deadline: performance.now() + 60_000,
        signal: end.signal,
      },
      () => {
        sent += 1;
        return Promise.resolve();
      },
    ),
  );
  const settled = Promise.allSettled(calls);
  await nextTurn();
  expect(sent).toBe(sentAtOnce);
  end.abort();
  await settled;
});

test("what is read is not held back below the number that Discord allows", async () => {
  const plenty = { limit: 1000, windowMs: 1000 };
  const discord = await createDiscordSimulator({ rateLimits: { others: plenty, globalPerSecond: 1000 } });
  const agent = createHttpAgent();
  const general = discord.channel("general");
  const read = async (requestsPerSecond?: number): Promise<number> => {
    const api = createDiscordApi({
      token: discord.token,
      apiUrl: discord.apiUrl,
      agent,
      ...(requestsPerSecond === undefined ? {} : { requestsPerSecond }),
    });
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: 60 }, () => api.getChannel(general.id)));
    return performance.now() - startedAt;
  };
  const usual = await read();
  expect(usual).toBeGreaterThan(900);
  expect(await read(500)).toBeLessThan(usual - 300);
  await agent.close();
  await discord.close();
});
