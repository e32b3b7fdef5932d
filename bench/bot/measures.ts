import { setTimeout as delay } from "node:timers/promises";
import { createBot, type Bot, type BotName } from "./bots.ts";
import type { Child } from "./child.ts";
import { quantile } from "./figures.ts";
import { createStage, type PlatformName, type Stage, type Turn } from "./stage.ts";

/** Records the value of one run for a figure. */
export type Note = (figure: string, bot: BotName, value: number) => void;

/** How much is measured. */
export interface Amounts {
  /** Idle time before idle memory is read. */
  readonly idleMs: number;
  /** Turns on Discord for latency. */
  readonly timedTurns: number;
  /** Turns on Discord for CPU time, each for one and for ten at a time. */
  readonly cpuTurns: number;
  /** Bursts of 15 turns on Slack for CPU time, each for one and for ten at a time. Latency takes one burst. */
  readonly slackBursts: number;
}

/**
 * Successive turns in one conversation before the next one starts. Slack allows about one post a second in a channel
 * with short bursts, and Parley limits itself to that.
 */
const turnsPerTalk: Readonly<Record<PlatformName, number>> = { discord: 10, slack: 3 };
const quietMs = 1500;
/** Each turn takes two edits, and Parley uses only 32 edits a minute for streamed answers. */
const slackTurnsABurst = 15;
const slackWindowMs = 61_000;

/** Measures a start with an empty compile cache, then one with the cache of the first. */
export async function measureStarts(name: BotName, note: Note): Promise<void> {
  const plain = await createBot(name, { compileCache: name === "parley" });
  try {
    note("start: first", name, await timeStart(plain));
    note("start: later", name, await timeStart(plain));
  } finally {
    await plain.remove();
  }
  if (name === "parley") return;
  const cached = await createBot(name, { compileCache: true });
  try {
    await timeStart(cached);
    note("start: later, both with a compile cache", name, await timeStart(cached));
  } finally {
    await cached.remove();
  }
}

async function timeStart(bot: Bot): Promise<number> {
  const stage = await createStage();
  try {
    const { child, readyMs } = await bot.start(stage);
    // Modules compiled after it is ready belong in the compile cache too.
    await delay(500);
    await child.stop();
    return readyMs;
  } finally {
    await stage.close();
  }
}

/** Starts it once to fill its compile cache. */
export async function fillCompileCache(bot: Bot): Promise<void> {
  await timeStart(bot);
}

/** Measures one process: memory when idle and after turns, latency and CPU time of turns. */
export async function measureRun(bot: Bot, amounts: Amounts, note: Note): Promise<void> {
  const stage = await createStage();
  const { child } = await bot.start(stage);
  const noteFor = (figure: string, value: number): void => {
    note(figure, bot.name, value);
  };
  const slackBurst = createSlackBursts();
  const cpu = (platform: PlatformName, turns: number, lanes: number) => () =>
    cpuOfTurns(stage, child, { platform, turns, lanes });
  try {
    await delay(amounts.idleMs);
    await noteMemory(child, "idle", noteFor);
    await runTurns(stage, "discord", { turns: 50 - slackTurnsABurst, lanes: 1 });
    await slackBurst(() => runTurns(stage, "slack", { turns: slackTurnsABurst, lanes: 1 }));
    await delay(quietMs);
    await noteMemory(child, "after 50 turns", noteFor);

    const { cpuTurns, slackBursts } = amounts;
    noteFor("CPU a turn: discord, one at a time", await cpu("discord", cpuTurns, 1)());
    noteFor("CPU a turn: discord, 10 at a time", await cpu("discord", cpuTurns, 10)());
    await noteTimes(stage, "discord", amounts.timedTurns, noteFor);
    for (let burst = 0; burst < slackBursts; burst += 1) {
      const one = await slackBurst(cpu("slack", slackTurnsABurst, 1));
      noteFor("CPU a turn: slack, one at a time", one);
      noteFor("CPU a turn: slack, 10 at a time", await slackBurst(cpu("slack", slackTurnsABurst, 10)));
    }
    await slackBurst(() => noteTimes(stage, "slack", slackTurnsABurst, noteFor));
    await noteMemory(child, "at the end", noteFor);
    child.check();
  } catch (error) {
    throw new Error(`measuring ${bot.name} failed:\n${child.output()}`, { cause: error });
  } finally {
    await child.stop();
    await stage.close();
  }
}

/**
 * Runs bursts of turns a minute apart: Slack allows 50 edits a minute, and Parley limits itself to that. The tutorial
 * bot gets the same pauses.
 */
function createSlackBursts(): <T>(burst: () => Promise<T>) => Promise<T> {
  let lastAt = -slackWindowMs;
  return async (burst) => {
    await delay(Math.max(0, lastAt + slackWindowMs - performance.now()));
    try {
      return await burst();
    } finally {
      lastAt = performance.now();
    }
  };
}

async function noteMemory(child: Child, when: string, note: (figure: string, value: number) => void) {
  const { rss, pss, anonymous } = await child.memory();
  note(`memory ${when}: RSS`, rss);
  note(`memory ${when}: PSS`, pss);
  note(`memory ${when}: anonymous`, anonymous);
}

/** Measures latency. The gateway waits until the placeholder is visible, so that only the token's way is timed. */
async function noteTimes(
  stage: Stage,
  platform: PlatformName,
  turns: number,
  note: (figure: string, value: number) => void,
): Promise<void> {
  Object.assign(stage.gateway.script, { thinkMs: 100, tokens: 20, gapMs: 5 });
  const done = await runTurns(stage, platform, { turns, lanes: 1 });
  const toVisible = done.map((turn) => turn.firstVisibleAt - turn.firstTokenAt);
  note(`first token → visible: ${platform}, median`, quantile(toVisible, 0.5));
  note(`first token → visible: ${platform}, p90`, quantile(toVisible, 0.9));
  const toAsked = done.map((turn) => turn.askedAt - turn.sentAt);
  note(`message → gateway asked: ${platform}, median`, quantile(toAsked, 0.5));
}

async function cpuOfTurns(
  stage: Stage,
  child: Child,
  { platform, turns, lanes }: { platform: PlatformName; turns: number; lanes: number },
): Promise<number> {
  Object.assign(stage.gateway.script, { thinkMs: 0, tokens: 50, gapMs: 2 });
  const before = await child.cpuMs();
  await runTurns(stage, platform, { turns, lanes });
  await untilQuiet(stage, platform);
  return ((await child.cpuMs()) - before) / turns;
}

/** Runs turns in conversations of a few turns each, with `lanes` conversations in parallel. */
async function runTurns(
  stage: Stage,
  platform: PlatformName,
  options: { readonly turns: number; readonly lanes: number },
): Promise<Turn[]> {
  let left = options.turns;
  const done: Turn[] = [];
  const lane = async (): Promise<void> => {
    while (left > 0) {
      const talk = stage.talk(platform);
      for (let turn = 0; turn < turnsPerTalk[platform] && left > 0; turn += 1) {
        left -= 1;
        done.push(await talk.ask());
      }
    }
  };
  await Promise.all(Array.from({ length: options.lanes }, lane));
  return done;
}

/** Waits until the bot sends no more requests: what follows an answer is part of the turn. */
async function untilQuiet(stage: Stage, platform: PlatformName): Promise<void> {
  for (let seen = -1; seen !== stage.requestCount(platform);) {
    seen = stage.requestCount(platform);
    await delay(quietMs);
  }
}
