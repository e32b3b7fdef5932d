import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ParleyError } from "../../../../src/core/errors.ts";
import { createDiscordApi, type DiscordApi } from "../../../../src/platforms/discord/api.ts";
import { createDiscordClock } from "../../../../src/platforms/discord/discord-clock.ts";
import { createHttpAgent } from "../../../../src/platforms/discord/http-agent.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../../../simulators/discord/simulator.ts";
import { setClockOff } from "../../../support/clock-off.ts";

const dayMs = 24 * 60 * 60_000;
const agent = createHttpAgent();
let simulator: DiscordSimulator;
let api: DiscordApi;
const clock = createDiscordClock();

beforeEach(async () => {
  simulator = await createDiscordSimulator({
    rateLimits: { edits: { limit: 2, windowMs: 800 }, messages: { limit: 2, windowMs: 800 } },
  });
  api = createDiscordApi({
    token: simulator.token,
    apiUrl: simulator.apiUrl,
    agent,
    onResponse: clock.observe,
  });
});

afterEach(async () => {
  vi.restoreAllMocks();
  await simulator.close();
});

async function post() {
  const channelId = simulator.channel("general").id;
  const { id } = await api.createMessage(channelId, { content: "0" });
  return (content: string) => api.editMessage(channelId, id, { content });
}

describe("a clock that was set back", () => {
  it("does not keep a rate limit closed", async () => {
    const edit = await post();
    await edit("1");
    await edit("2");
    await expect(edit("3")).rejects.toMatchObject({ code: "platform-unreachable" });
    setClockOff(-dayMs);
    // Discord still counts in its own time.
    await expect(edit("4")).rejects.toSatisfy((error: ParleyError) => (error.retryAfterMs ?? 0) < 10_000);
    await expect.poll(() => edit("5").then(() => "edited", String)).toBe("edited");
  });

  it("does not make a post wait for a day that waits for a rate limit", async () => {
    const channelId = simulator.channel("general").id;
    const send = () => api.createMessage(channelId, { content: "text" });
    // The library learns the bucket with the first.
    for (const _ of [1, 2]) await send();
    // Both wait for the end of the window, the second behind the first.
    const waiting = [send(), send()];
    setClockOff(-dayMs);
    const outcomes = await Promise.allSettled(waiting);
    for (const outcome of outcomes)
      if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ retryAfterMs: 1000 });
    await expect.poll(() => send().then(() => "posted", String)).toBe("posted");
  });
});

describe("Discord's time", () => {
  it("is read from its responses, whatever the clock of this machine says", async () => {
    const right = Date.now();
    setClockOff(400 * dayMs);
    simulator.advance(-400 * dayMs);
    await post();
    expect(Math.abs(clock.now() - right)).toBeLessThan(5000);
    setClockOff(-dayMs);
    expect(Math.abs(clock.now() - right)).toBeLessThan(5000);
  });
});
