import { afterEach, describe, expect, it } from "vitest";
import { type ClockStepper, createClockStepper } from "../support/clock-stepper.ts";
import { has } from "../support/requirements.ts";
import { startInstances, type Instances } from "../e2e/instances/instances.ts";

const dayMs = 24 * 60 * 60_000;
let world: Instances | undefined;
let clock: ClockStepper | undefined;
afterEach(async () => {
  await world?.close();
  await clock?.remove();
});

describe.skipIf(!has("redis"))("an instance whose clock steps", () => {
  it.each([dayMs, -dayMs])(
    "by %i ms keeps its lease, and when it is killed another resumes its turns",
    async (ms) => {
      [world, clock] = await Promise.all([startInstances(0, { durationMs: 3000 }), createClockStepper()]);
      const { slack, gateway } = world;
      const stepping = await world.start(clock.settings);
      const ana = slack.person("Ana");
      const root = ana.sends({ channel: ana.directMessages, text: "hello #a" });
      await world.whoAnswers("#a");
      await clock.stepBy(ms);
      await world.start();
      // Longer than the lease.
      const whole = await world.answered("#a");
      expect(whole).toHaveLength(1);
      expect(gateway.turns).toHaveLength(1);
      expect(stepping.output()).not.toContain("lease lost");

      gateway.setHanging(true);
      let doomed;
      let label = "";
      // Slack delivers to either instance.
      for (let next = 0; doomed !== stepping; next++) {
        label = `#b${next}`;
        const before = gateway.turns.length;
        ana.sends({ channel: ana.directMessages, thread: root, text: `more ${label}` });
        await expect.poll(() => gateway.turns.length).toBeGreaterThan(before);
        doomed = await world.whoAnswers(label);
        if (doomed === stepping) break;
        gateway.setHanging(false);
        await world.answered(label);
        gateway.setHanging(true);
      }
      stepping.process.kill("SIGKILL");
      gateway.setHanging(false);
      expect(await world.answered(label)).toHaveLength(1);
    },
  );
});
