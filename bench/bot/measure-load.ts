import { setTimeout as delay } from "node:timers/promises";
import type { Bot } from "./bots.ts";
import { quantile, type FigureName, type Note } from "./figures.ts";
import type { Script } from "./scripted-gateway.ts";
import { createStage } from "./stage.ts";
import type { TurnKind } from "./talks.ts";
import type { Turn } from "./turn-watch.ts";

/** A steady stream of questions under the platforms' own limits, independent of the answers. */
export interface Load {
  readonly group: string;
  readonly kind: TurnKind;
  /** The number of questions per second. */
  readonly rate: number;
  /** The number of channels, each of which has its own person. */
  readonly channels: number;
  readonly script: Script;
  /** The aim for the 0.95 quantile from the gateway's last piece to the final text, in seconds. */
  readonly finalWithinSeconds?: number;
  /** The aim for the 0.99 quantile of acknowledgements, in milliseconds. */
  readonly acknowledgedWithinMs?: number;
  readonly without429?: boolean;
}

/** The loads with aims. */
export const loads: readonly Load[] = [
  {
    group: "Discord, 20 mentions a second under 50 requests a second",
    kind: "discord-mention",
    rate: 20,
    channels: 120,
    script: { thinkMs: 300, tokens: 60, gapMs: 50 },
    finalWithinSeconds: 10,
    without429: true,
  },
  {
    group: "Slack, 60 turns a minute in 12 channels under its tiers",
    kind: "slack-mention",
    rate: 1,
    channels: 12,
    script: { thinkMs: 300, tokens: 60, gapMs: 50 },
    finalWithinSeconds: 5,
  },
  {
    group: "Discord, 200 interactions a second",
    kind: "discord-slash",
    rate: 200,
    channels: 120,
    // With 20 or more tokens a turn, any bot would need more than one CPU.
    script: { thinkMs: 200, tokens: 3, gapMs: 20 },
    acknowledgedWithinMs: 50,
  },
];

/** How long after the last question an answer may come without being lost. */
const graceMs = 45_000;

/** Runs one load for `seconds` and notes what people got. */
export async function measureLoad(bot: Bot, load: Load, seconds: number, note: Note): Promise<void> {
  const stage = await createStage("platform");
  const child = await bot.startToUse(stage);
  try {
    Object.assign(stage.gateway.script, load.script);
    const talks = Array.from({ length: load.channels }, () => stage.talk(load.kind));
    const total = Math.round(load.rate * seconds);
    const startedAt = performance.now();
    const asked: Promise<Turn>[] = [];
    while (asked.length < total) {
      const elapsed = performance.now() - startedAt;
      const due = Math.min(total, Math.floor((elapsed / 1000) * load.rate) + 1);
      for (; asked.length < due;) {
        const withinMs = startedAt + seconds * 1000 + graceMs - performance.now();
        asked.push(talks[asked.length % talks.length]!.ask(withinMs));
      }
      await delay(Math.max(0, startedAt + (asked.length / load.rate) * 1000 - performance.now()));
    }
    const turns = await Promise.all(asked);
    noteOutcome(load, turns, { bot, rateLimited: stage.rateLimited(), note });
    const isUnacknowledged =
      load.acknowledgedWithinMs !== undefined && turns.some(({ ackedAt }) => Number.isNaN(ackedAt));
    // Its log tells the reason.
    if (isUnacknowledged || process.env["BENCH_DEBUG"] !== undefined) process.stderr.write(child.output());
    child.check();
  } catch (error) {
    throw new Error(`${bot.name}: ${String(error)}\n${child.output()}`, { cause: error });
  } finally {
    await child.stop();
    await stage.close();
  }
}

function noteOutcome(
  load: Load,
  turns: readonly Turn[],
  { bot, rateLimited, note }: { readonly bot: Bot; readonly rateLimited: number; readonly note: Note },
): void {
  const row = (name: string, unit: FigureName["unit"], aim?: FigureName["aim"]): FigureName => ({
    group: load.group,
    name,
    unit,
    aim,
  });
  const { finalWithinSeconds, acknowledgedWithinMs, without429 = false } = load;
  const answered = turns.filter(({ lastVisibleAt }) => !Number.isNaN(lastVisibleAt));
  const none = { kind: "at-most", value: 0 } as const;
  note(row("lost", "", none), bot.name, turns.length - answered.length);
  note(row("refused for a rate limit (429)", "", without429 ? none : undefined), bot.name, rateLimited);
  const toFinal = answered.map((turn) => (turn.lastVisibleAt - turn.lastTokenAt) / 1000);
  note(
    row(
      "gateway's last piece → final text, p95",
      "s",
      finalWithinSeconds === undefined ? undefined : { kind: "at-most", value: finalWithinSeconds },
    ),
    bot.name,
    quantile(toFinal, 0.95),
  );
  const toFirst = answered.map((turn) => (turn.firstVisibleAt - turn.firstTokenAt) / 1000);
  note(row("gateway's first piece → first text, p50", "s"), bot.name, quantile(toFirst, 0.5));
  if (acknowledgedWithinMs === undefined) return;
  const aim = { kind: "at-most", value: acknowledgedWithinMs } as const;
  const acknowledged = turns.filter(({ ackedAt }) => !Number.isNaN(ackedAt));
  note(row("not acknowledged", "", none), bot.name, turns.length - acknowledged.length);
  const toAck = acknowledged.map((turn) => turn.ackedAt - turn.sentAt);
  note(row("acknowledged, p99", "ms", aim), bot.name, quantile(toAck, 0.99));
  note(row("acknowledged, p50", "ms"), bot.name, quantile(toAck, 0.5));
}
