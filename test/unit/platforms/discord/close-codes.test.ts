import { expect, onTestFinished, test } from "vitest";
import { startHarness, until } from "./harness.ts";

test.each([
  [4004, /DISCORD_TOKEN.*reset it/],
  [4010, /DISCORD_SHARD_IDS/],
  [4011, /DISCORD_SHARDS=auto/],
  [4012, /update Parley/],
  [4013, /update Parley/],
])("after close code %i it says how to mend that, and does not identify again", async (code, remedy) => {
  const { simulator, platform, lines, close } = await startHarness();
  simulator.gateway.closeWith(code);
  await until(() => platform.health().state === "failed");
  expect(platform.health().detail).toMatch(remedy);
  expect(lines.filter(({ level, message }) => level === "error" && remedy.test(message))).toHaveLength(1);
  await until(() => simulator.gateway.connections() === 0);
  await close();
  expect(simulator.gateway.counts).toEqual({ identify: 1, resume: 0 });
});

test.each(["at the next session", "at once"])(
  "an intent that is turned off in the portal while it runs: it goes on without contents (%s)",
  async (when) => {
    const { simulator, platform, receiver, lines, close } = await startHarness();
    onTestFinished(close);
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    simulator.world.messageContentAllowed = false;
    if (when === "at once") simulator.gateway.closeWith(4014);
    else simulator.gateway.invalidateSession(false);
    await until(() => platform.health().detail?.startsWith("without message contents"), {
      timeoutMs: 25_000,
      explain: () => lines,
    });
    expect(platform.health().state).toBe("ready");
    expect(lines.some(({ message }) => message.includes("turn on the Message Content Intent"))).toBe(true);
    ada.sends({ channel: general, text: "do you hear me?", mentionBot: true });
    await until(() => receiver.events.length === 1, { explain: () => lines });
    expect(receiver.events[0]).toMatchObject({ text: "do you hear me?" });
  },
);
