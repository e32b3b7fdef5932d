import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { startChild, type Child } from "./child.ts";
import type { Stage } from "./stage.ts";

export type BotName = "parley" | "tutorial";
export const botNames: readonly BotName[] = ["parley", "tutorial"];

const root = path.join(import.meta.dirname, "..", "..");
const connectWithinMs = 60_000;

/** A bot under test with a folder of its own: store, and compile cache unless it has none. */
export interface Bot {
  readonly name: BotName;
  /** Starts it against a stage; resolves when both platforms see it connected. */
  start(stage: Stage): Promise<{ readonly child: Child; readonly readyMs: number }>;
  remove(): Promise<void>;
}

/**
 * @param compileCache whether Node keeps compiled code between starts. Parley switches it on itself, here in a
 *   folder of its own, so that a first start is a first start. A tutorial's bot has none; with `true` it gets one.
 */
export async function createBot(name: BotName, options: { readonly compileCache: boolean }): Promise<Bot> {
  const folder = await mkdtemp(path.join(tmpdir(), `bench-${name}-`));
  const cache: Readonly<Record<string, string>> = options.compileCache
    ? { NODE_COMPILE_CACHE: path.join(folder, "compile-cache") }
    : { NODE_DISABLE_COMPILE_CACHE: "1" };
  const own: Readonly<Record<string, string>> =
    name === "parley"
      ? { STORE_URL: `sqlite:${path.join(folder, "parley.db")}`, PORT: "0", PAGE: "off", LOG_LEVEL: "warn" }
      : {};
  const script = path.join(root, name === "parley" ? "src/main.ts" : "bench/tutorial-bot.ts");
  return {
    name,
    async start(stage) {
      const child = startChild([script], { ...stage.env, ...cache, ...own });
      const deadline = child.spawnedAt + connectWithinMs;
      while (!stage.isConnected("discord") || !stage.isConnected("slack")) {
        child.check();
        if (performance.now() > deadline) {
          await child.stop();
          throw new Error(`${name} did not connect:\n${child.output()}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      return { child, readyMs: performance.now() - child.spawnedAt };
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
