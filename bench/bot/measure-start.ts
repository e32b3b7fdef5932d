import { setTimeout as delay } from "node:timers/promises";
import { createBot, type Bot, type BotName } from "./bots.ts";
import type { FigureName, Note } from "./figures.ts";
import { createStage } from "./stage.ts";

const start = (name: string, aim?: FigureName["aim"]): FigureName => ({
  group: "start",
  name,
  unit: "ms",
  aim,
});
const first = start("first, without a compile cache");
const later = start("later", { kind: "at-most-ratio", ratio: 1.3 });
const bothCached = start("later, both with a compile cache");

const memory = (name: string, aim?: FigureName["aim"]): FigureName => ({
  group: "idle memory",
  name,
  unit: "MB",
  aim,
});

/** Measures a start with an empty compile cache, and then one with the cache of the first. */
export async function measureStarts(name: BotName, note: Note): Promise<void> {
  const plain = await createBot(name, { compileCache: name === "parley" });
  try {
    note(first, name, await timeStart(plain));
    const laterMs = await timeStart(plain);
    note(later, name, laterMs);
    // Parley always has a compile cache.
    if (name === "parley") note(bothCached, name, laterMs);
  } finally {
    await plain.remove();
  }
  if (name === "parley") return;
  const cached = await createBot(name, { compileCache: true });
  try {
    await timeStart(cached);
    note(bothCached, name, await timeStart(cached));
  } finally {
    await cached.remove();
  }
}

/** Measures the memory of a bot that was idle for `idleMs` after a start with a compile cache. */
export async function measureIdleMemory(bot: Bot, idleMs: number, note: Note): Promise<void> {
  const stage = await createStage("platform");
  const { child } = await bot.start(stage);
  try {
    await delay(idleMs);
    const { rss, pss, anonymous } = await child.memory();
    note(memory("RSS", { kind: "at-most-ratio", ratio: 1.15 }), bot.name, rss);
    note(memory("PSS"), bot.name, pss);
    note(memory("anonymous"), bot.name, anonymous);
  } finally {
    await child.stop();
    await stage.close();
  }
}

/** Starts the bot once to fill its compile cache. */
export async function fillCompileCache(bot: Bot): Promise<void> {
  await timeStart(bot);
}

async function timeStart(bot: Bot): Promise<number> {
  const stage = await createStage("platform");
  try {
    const { child, readyMs } = await bot.start(stage);
    // Modules that are compiled after it is ready belong in the compile cache too.
    await delay(500);
    await child.stop();
    return readyMs;
  } finally {
    await stage.close();
  }
}
