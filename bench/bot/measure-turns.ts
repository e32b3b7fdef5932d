import { setTimeout as delay } from "node:timers/promises";
import type { Bot } from "./bots.ts";
import { quantile, type FigureName, type Note } from "./figures.ts";
import { createStage, type Stage } from "./stage.ts";
import type { Talk, TurnKind } from "./talks.ts";
import type { Turn } from "./turn-watch.ts";

/** How much is measured of each kind of turn. */
export interface TurnAmounts {
  /** The number of turns for CPU time, ten at a time. */
  readonly cpuTurns: number;
  /** The number of turns for times, one at a time. */
  readonly timedTurns: number;
  /** How long the closed loops run. */
  readonly loopMs: number;
}

const lanes = 10;
/** This is below the number of Discord's channels, because two questions in one would share an answer. */
const cpuTalks = 60;
const turnsPerTalk = 5;
const quietMs = 500;
/** The number of people who ask at once. */
const loopLanes = 32;
/** Slack takes about one post per second in a channel, which a bot may know. */
const restMs = 1200;
/** The pause between timed turns, in which a bot can store the answer that it has shown. */
const betweenTurnsMs = 100;
/** On Slack the pause is one that its tiers allow: with less a bot that knows them leaves previews out. */
const betweenSlackTurnsMs = 1300;
const maxSlackTimedTurns = 30;
/** A little more than a window of Slack's limits, because a bot may follow the documented ones. */
const slackWindowMs = 62_000;

/** Figures that are named by a kind of turn. */
const cpuFigure = (kind: TurnKind): FigureName => ({
  group: "CPU a turn, limits lifted",
  name: kind,
  unit: "ms",
  aim: { kind: "at-most-ratio", ratio: 1.5 },
});
const firstTextFigure = (kind: TurnKind): FigureName => ({
  group: "first token → visible, limits lifted",
  name: kind,
  unit: "ms",
  aim: { kind: "at-most-more", by: 2 },
});
const askedFigure = (kind: TurnKind): FigureName => ({
  group: "event → gateway asked, limits lifted",
  name: kind,
  unit: "ms",
  aim: { kind: "at-most-ratio", ratio: 1.5 },
});

/** Measures the CPU time of turns, ten at a time, and the times of turns one at a time. */
export async function measureTurns(
  bot: Bot,
  kind: TurnKind,
  amounts: Pick<TurnAmounts, "cpuTurns" | "timedTurns">,
  note: Note,
): Promise<void> {
  const stage = await createStage("lifted");
  const child = await bot.startToUse(stage);
  try {
    Object.assign(stage.gateway.script, { thinkMs: 0, tokens: 50, gapMs: 2 });
    const talks = Array.from({ length: cpuTalks }, () => stage.talk(kind));
    // The first turn of a thread is of a different kind, and a bot that runs for days has compiled its code.
    const turnsEach = Math.ceil(amounts.cpuTurns / cpuTalks);
    await askAll(talks, turnsEach);
    await untilQuiet(stage);
    const before = await child.cpuMs();
    const done = await askAll(talks, turnsEach);
    await untilQuiet(stage);
    note(cpuFigure(kind), bot.name, ((await child.cpuMs()) - before) / done.length);

    // The timed turns should be those of a calm hour, not the last of a crowd's.
    const isSlack = kind.startsWith("slack");
    if (isSlack) await delay(slackWindowMs);
    Object.assign(stage.gateway.script, { thinkMs: 100, tokens: 20, gapMs: 5 });
    const timed = await askOneByOne(
      talks.slice(0, 3),
      isSlack ? Math.min(amounts.timedTurns, maxSlackTimedTurns) : amounts.timedTurns,
      isSlack ? betweenSlackTurnsMs : betweenTurnsMs,
    );
    const toVisible = timed.map((turn) => turn.firstVisibleAt - turn.firstTokenAt);
    note(firstTextFigure(kind), bot.name, quantile(toVisible, 0.5));
    const toAsked = timed.map((turn) => turn.askedAt - turn.sentAt);
    note(askedFigure(kind), bot.name, quantile(toAsked, 0.5));
    child.check();
  } catch (error) {
    throw new Error(`${bot.name}: ${String(error)}\n${child.output()}`, { cause: error });
  } finally {
    await child.stop();
    await stage.close();
  }
}

/** The kinds of turns that are measured in closed loops. */
export const loopKinds = ["discord-slash", "slack-thread"] as const satisfies readonly TurnKind[];
/** Closed loops reach at least this share of the tutorial bot's turns a second. */
const loopShare = 0.55;

/** Measures the turns per second of people who ask as soon as an answer ends, with short answers. */
export async function measureLoop(bot: Bot, kind: TurnKind, loopMs: number, note: Note): Promise<void> {
  const stage = await createStage("lifted");
  const child = await bot.startToUse(stage);
  try {
    Object.assign(stage.gateway.script, { thinkMs: 0, tokens: 2, gapMs: 0 });
    await loop(stage, kind, loopMs / 2);
    const cpuBefore = await child.cpuMs();
    const { turns, ms } = await loop(stage, kind, loopMs);
    const cpuMs = (await child.cpuMs()) - cpuBefore;
    const group = "closed loop, limits lifted";
    const aim = { kind: "at-least-ratio", ratio: loopShare } as const;
    note({ group, name: kind, unit: "/s", aim }, bot.name, (turns / ms) * 1000);
    note({ group, name: `${kind}, CPU a turn`, unit: "ms" }, bot.name, cpuMs / turns);
    child.check();
  } catch (error) {
    throw new Error(`${bot.name}: ${String(error)}\n${child.output()}`, { cause: error });
  } finally {
    await child.stop();
    await stage.close();
  }
}

async function loop(stage: Stage, kind: TurnKind, forMs: number): Promise<{ turns: number; ms: number }> {
  const startedAt = performance.now();
  let turns = 0;
  const rested: { readonly talk: Talk; readonly asked: number; readonly from: number }[] = [];
  const lane = async (): Promise<void> => {
    while (performance.now() - startedAt < forMs) {
      const isRested = (rested[0]?.from ?? Infinity) <= performance.now();
      const { talk, asked } = (isRested ? rested.shift() : undefined) ?? { talk: stage.talk(kind), asked: 0 };
      expectAnswered(await talk.ask());
      turns += 1;
      // The number of turns is limited, because a history that grows would measure something else.
      if (asked + 1 < turnsPerTalk) rested.push({ talk, asked: asked + 1, from: performance.now() + restMs });
    }
  };
  await Promise.all(Array.from({ length: loopLanes }, lane));
  return { turns, ms: performance.now() - startedAt };
}

/** Asks several times in each talk, ten talks at a time. */
async function askAll(talks: readonly Talk[], times: number): Promise<Turn[]> {
  const waiting = Array.from({ length: times }, () => talks).flat();
  const done: Turn[] = [];
  const lane = async (): Promise<void> => {
    for (let talk = waiting.shift(); talk !== undefined; talk = waiting.shift())
      done.push(expectAnswered(await talk.ask()));
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return done;
}

/** Asks one question at a time with a pause, because nobody asks at the moment when another answer ends. */
async function askOneByOne(talks: readonly Talk[], turns: number, pauseMs: number): Promise<Turn[]> {
  const done: Turn[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    await delay(pauseMs);
    done.push(expectAnswered(await talks[turn % talks.length]!.ask()));
  }
  return done;
}

function expectAnswered(turn: Turn): Turn {
  if (Number.isNaN(turn.lastVisibleAt)) throw new Error("a turn was not answered in time");
  return turn;
}

/** Waits until the bot sends no more requests, because what follows an answer is part of the turn. */
async function untilQuiet(stage: Stage): Promise<void> {
  for (let seen = -1; seen !== stage.requestCount();) {
    seen = stage.requestCount();
    await delay(quietMs);
  }
}
