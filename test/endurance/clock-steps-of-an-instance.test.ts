import { describe, expect, it, onTestFinished } from "vitest";
import { createManifest } from "../../src/platforms/slack/install/manifest.ts";
import { runParley } from "../e2e/process/run-parley.ts";
import { answers, startSlowGateway } from "../simulators/gateway/slow-gateway.ts";
import { createSlackSimulator } from "../simulators/slack/simulator.ts";
import { createClockStepper } from "../support/clock-stepper.ts";
import { allCommands } from "../support/commands.ts";
import { startRedis } from "../support/redis-server.ts";
import { has } from "../support/requirements.ts";

const stepMs = 25 * 60_000;

/** Starts the simulators for processes of the bot on one Redis. One of them has a clock that can step. */
async function startWorld() {
  const [slack, gateway, redis, clock] = await Promise.all([
    createSlackSimulator({ manifest: createManifest(allCommands, { socketMode: true }) }),
    startSlowGateway(3000),
    startRedis(),
    createClockStepper(),
  ]);
  onTestFinished(async () => {
    await Promise.all([slack.close(), gateway.close(), redis.remove(), clock.remove()]);
  });
  /** Starts a process of the bot. The gateway tells its requests from those of others by `name`. */
  const start = async (name: string, more: Readonly<Record<string, string>> = {}) => {
    const parley = await runParley({
      settings: {
        STORE_URL: redis.url,
        STORE_LEASE_MS: "1500",
        GATEWAY_BASE_URL: gateway.baseUrl,
        GATEWAY_API_KEY: name,
        CHAT_MODEL: "m",
        SLACK_BOT_TOKEN: slack.botToken,
        SLACK_APP_TOKEN: slack.appToken,
        SLACK_API_URL: slack.apiUrl,
        ...more,
      },
    });
    onTestFinished(() => parley.remove());
    await parley.says(/Ready\./);
    return parley;
  };
  const shown = (label: string) =>
    slack.everything().filter(({ author, text }) => author === "Parley" && text.includes(label));
  return {
    slack,
    gateway,
    clock,
    start,
    /** Resolves to the name of the process that runs the turn with that label, once some of it is shown. */
    async whoAnswers(label: string) {
      const running = () =>
        gateway.turns.findLast(({ labels, endedAt }) => labels.includes(label) && endedAt === undefined);
      await expect.poll(() => running() !== undefined && shown(label).length > 0).toBe(true);
      return running()?.from;
    },
    /** Resolves to the messages that contain the label when one of them is a complete answer. */
    async answered(label: string) {
      await expect
        .poll(() => shown(label).some(({ text }) => answers(text, label)), { timeout: 40_000 })
        .toBe(true);
      return shown(label);
    },
  };
}

describe.skipIf(!has("redis"))("an instance whose clock steps", () => {
  it.each([stepMs, -stepMs])(
    "by %i ms keeps its lease, and when it is killed another resumes its turns",
    async (ms) => {
      const world = await startWorld();
      const { slack, gateway, clock } = world;
      const stepping = await world.start("stepping", clock.settings);
      const ana = slack.person("Ana");
      const root = ana.sends({ channel: ana.directMessages, text: "hello #a" });
      await world.whoAnswers("#a");
      await clock.stepBy(ms);
      await world.start("other");
      // This takes longer than the lease lasts.
      expect(await world.answered("#a")).toHaveLength(1);
      expect(gateway.turns).toHaveLength(1);
      expect(stepping.output()).not.toContain("lease lost");

      // Slack delivers an event to either instance.
      for (let next = 0; ; next++) {
        const label = `#b${next}`;
        gateway.setHanging(true);
        ana.sends({ channel: ana.directMessages, thread: root, text: `more ${label}` });
        const isStepping = (await world.whoAnswers(label)) === "stepping";
        if (isStepping) stepping.process.kill("SIGKILL");
        gateway.setHanging(false);
        expect(await world.answered(label)).toHaveLength(1);
        if (isStepping) break;
      }
    },
  );
});
