import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startSlowGateway, answers, type SlowGateway } from "../../simulators/gateway/slow-gateway.ts";
import { runParley, type RunningParley } from "../process/run-parley.ts";
import { createDiscordPlace, createPagePlace, createSlackPlace, type Place } from "./crash-platforms.ts";

const places: Readonly<Record<string, () => Place | Promise<Place>>> = {
  Discord: () => createDiscordPlace("direct"),
  Slack: () => createSlackPlace(),
  "the page": () => createPagePlace(),
};

for (const [name, createPlace] of Object.entries(places)) {
  describe(`a process asked to stop in the middle of an answer on ${name}`, () => {
    let folder: string;
    let place: Place;
    let gateway: SlowGateway;
    const started: RunningParley[] = [];
    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), "parley-stop-"));
      [place, gateway] = await Promise.all([createPlace(), startSlowGateway(1500)]);
    });
    afterEach(async () => {
      for (const parley of started.splice(0)) await parley.remove();
      await Promise.all([place.close(), gateway.close()]);
      await rm(folder, { recursive: true, force: true });
    });
    const start = async (shutdownMs: number): Promise<RunningParley> => {
      const parley = await runParley({
        folder,
        settings: {
          GATEWAY_BASE_URL: gateway.baseUrl,
          CHAT_MODEL: "m",
          SHUTDOWN_TIMEOUT_MS: `${shutdownMs}`,
          ...place.settings,
        },
      });
      started.push(parley);
      await place.meet(parley);
      return parley;
    };
    const until = async (isEnough: (texts: readonly string[]) => boolean) => {
      try {
        return await vi.waitUntil(
          async () => {
            const seen = await place.seen();
            return isEnough(seen.map(({ text }) => text)) && seen;
          },
          { timeout: 20_000, interval: 30 },
        );
      } catch (error) {
        const printed = started.map((parley) => parley.output()).join("\n---\n");
        throw new Error(`${JSON.stringify(await place.seen())}\n${printed}`, { cause: error });
      }
    };

    it("finishes it when the model does in time, and ends well", async () => {
      const parley = await start(10_000);
      await place.say("hello #a");
      await until(([text]) => text?.includes("#a") === true);
      expect(await parley.stop()).toBe(0);
      await start(10_000);
      const seen = await until((texts) => texts.some((text) => answers(text, "#a")));
      expect(seen).toHaveLength(1);
      expect(gateway.turns).toMatchObject([{ isWhole: true }]);
    });

    it("leaves it open at the deadline, and the next start finishes it in the same message", async () => {
      gateway.setHanging(true);
      const parley = await start(500);
      await place.say("hello #a");
      const [half] = await until(([text]) => text?.includes("#a") === true);
      const askedAt = performance.now();
      expect(await parley.stop()).toBe(0);
      // Within the deadline and a little for letting go.
      expect(performance.now() - askedAt).toBeLessThan(500 + 5000);
      gateway.setHanging(false);
      await start(500);
      const seen = await until((texts) => texts.some((text) => answers(text, "#a")));
      expect(seen.map(({ id }) => id)).toEqual([half?.id]);
    });
  });
}
