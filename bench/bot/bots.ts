import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { startChild, type Child } from "./child.ts";
import type { Stage } from "./stage.ts";

/** The bots that are compared. */
export type BotName = "parley" | "tutorial";
/** The order is that of the first round. */
export const botNames: readonly BotName[] = ["parley", "tutorial"];

const root = path.join(import.meta.dirname, "..", "..");
const connectWithinMs = 60_000;

/** A bot under test, which has its own folder for store and compile cache. */
export interface Bot {
  readonly name: BotName;
  /** Starts it against a stage. Resolves when both platforms are connected, `readyMs` after the spawn. */
  start(stage: Stage): Promise<{ readonly child: Child; readonly readyMs: number }>;
  /** Starts it with the arguments of {@link BotOptions} and waits until people can use its commands. */
  startToUse(stage: Stage): Promise<Child>;
  /** Deletes its folder. */
  remove(): Promise<void>;
}

/** How a bot is run. */
export interface BotOptions {
  readonly compileCache: boolean;
  /** Options of Node for a profile of `startToUse`. */
  readonly nodeOptions?: readonly string[];
}

/**
 * Creates a bot with an empty folder. `compileCache` says whether Node caches compiled code between starts.
 * Parley always does that, in its folder here. The tutorial bot has a cache only with `true`.
 */
export async function createBot(name: BotName, options: BotOptions): Promise<Bot> {
  const folder = await mkdtemp(path.join(tmpdir(), `bench-${name}-`));
  const cache: Readonly<Record<string, string>> = options.compileCache
    ? { NODE_COMPILE_CACHE: path.join(folder, "compile-cache") }
    : { NODE_DISABLE_COMPILE_CACHE: "1" };
  let starts = 0;
  /** Each start has its own store, because the turns of an earlier one belong to another simulator. */
  const ownSettings = (): Readonly<Record<string, string>> => {
    if (name !== "parley") return {};
    const file = path.join(folder, `parley-${starts++}.db`);
    return { STORE_URL: `sqlite:${file}`, PORT: "0", PAGE: "off", LOG_LEVEL: "warn" };
  };
  const script = path.join(root, name === "parley" ? "src/main.ts" : "bench/tutorial-bot.ts");
  const startUntil = async (
    stage: Stage,
    nodeOptions: readonly string[],
    isReady: () => boolean,
  ): Promise<Child> => {
    const child = startChild([...nodeOptions, script], { ...stage.env, ...cache, ...ownSettings() });
    const deadline = child.spawnedAt + connectWithinMs;
    while (!isReady()) {
      child.check();
      if (performance.now() > deadline) {
        await child.stop();
        throw new Error(`${name} did not connect:\n${child.output()}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return child;
  };
  const isConnected = (stage: Stage): boolean => stage.isConnected("discord") && stage.isConnected("slack");
  return {
    name,
    async start(stage) {
      const child = await startUntil(stage, [], () => isConnected(stage));
      return { child, readyMs: performance.now() - child.spawnedAt };
    },
    startToUse: (stage) =>
      startUntil(stage, options.nodeOptions ?? [], () => isConnected(stage) && stage.hasCommands()),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
