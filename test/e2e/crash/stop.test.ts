import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startSlowGateway, answers, type SlowGateway } from "../../simulators/gateway/slow-gateway.ts";
import { runParley, type RunningParley } from "../process/run-parley.ts";
import {
  createDiscordSurface,
  createPageSurface,
  createSlackSurface,
  type Surface,
} from "./crash-platforms.ts";

const surfaces: Readonly<Record<string, () => Surface | Promise<Surface>>> = {
  Discord: () => createDiscordSurface("direct"),
  Slack: () => createSlackSurface(),
  "the page": () => createPageSurface(),
};

for (const [name, createSurface] of Object.entries(surfaces)) {
  describe(`a process stopped during an answer on ${name}`, () => {
    let folder: string;
    let surface: Surface;
    let gateway: SlowGateway;
    const started: RunningParley[] = [];
    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), "parley-stop-"));
      [surface, gateway] = await Promise.all([createSurface(), startSlowGateway(1500)]);
    });
    afterEach(async () => {
      for (const parley of started.splice(0)) await parley.remove();
      await Promise.all([surface.close(), gateway.close()]);
      await rm(folder, { recursive: true, force: true });
    });
    const start = async (shutdownMs: number): Promise<RunningParley> => {
      const parley = await runParley({
        folder,
        settings: {
          GATEWAY_BASE_URL: gateway.baseUrl,
          CHAT_MODEL: "m",
          SHUTDOWN_TIMEOUT_MS: `${shutdownMs}`,
          ...surface.settings,
        },
      });
      started.push(parley);
      await surface.waitUntilReady(parley);
      return parley;
    };
    const until = async (isMet: (texts: readonly string[]) => boolean) => {
      try {
        return await vi.waitUntil(
          async () => {
            const seen = await surface.seen();
            return isMet(seen.map(({ text }) => text)) && seen;
          },
          { timeout: 20_000, interval: 30 },
        );
      } catch (error) {
        const printed = started.map((parley) => parley.output()).join("\n---\n");
        throw new Error(`${JSON.stringify(await surface.seen())}\n${printed}`, { cause: error });
      }
    };

    it("finishes the answer within the deadline and exits with 0", async () => {
      const parley = await start(10_000);
      await surface.say("hello #a");
      await until(([text]) => text?.includes("#a") === true);
      expect(await parley.stop()).toBe(0);
      await start(10_000);
      const seen = await until((texts) => texts.some((text) => answers(text, "#a")));
      expect(seen).toHaveLength(1);
      expect(gateway.turns).toMatchObject([{ isWhole: true }]);
    });

    it("leaves it open at the deadline; the next start finishes it in the same message", async () => {
      gateway.setHanging(true);
      const parley = await start(500);
      await surface.say("hello #a");
      const [half] = await until(([text]) => text?.includes("#a") === true);
      const askedAt = performance.now();
      expect(await parley.stop()).toBe(0);
      // The deadline and a margin for aborting.
      expect(performance.now() - askedAt).toBeLessThan(500 + 5000);
      gateway.setHanging(false);
      await start(500);
      const seen = await until((texts) => texts.some((text) => answers(text, "#a")));
      expect(seen.map(({ id }) => id)).toEqual([half?.id]);
    });
  });
}
