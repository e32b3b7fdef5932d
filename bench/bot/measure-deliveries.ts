import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createSlackSimulator, type SlackSimulator } from "../../test/simulators/slack/simulator.ts";
import { startChild, type Child } from "./child.ts";
import { quantile } from "./figures.ts";
import { modelId, startScriptedGateway } from "./scripted-gateway.ts";
import { slackMethods } from "./stage.ts";

/** How Slack delivers events. */
export type DeliveryMode = "socket" | "http";

/** The result of a run of events at a steady rate. */
export interface DeliveriesResult {
  readonly mode: DeliveryMode;
  readonly events: number;
  readonly perSecond: number;
  /** The milliseconds from sending an event to its acknowledgement. */
  readonly acknowledgedMs: { readonly p50: number; readonly p99: number; readonly max: number };
  /** The number of attempts without an acknowledgement, after which Slack sent the event again. */
  readonly redelivered: number;
  /** The number of messages that were refused as busy, because too many others were waiting. */
  readonly refused: number;
  /** The number of other messages that no model was ever asked. */
  readonly lost: number;
  /** The number of messages that are in their conversation twice. */
  readonly doubled: number;
  readonly turns: number;
}

const root = path.join(import.meta.dirname, "..", "..");
const talks = 100;
const thinkMs = 3000;
const settleMs = 120_000;
const redeliveryMs = 500_000;
const plenty = 10_000_000;

/**
 * Sends messages in 100 direct messages steadily, while each answer takes three seconds. Messages that arrive
 * meanwhile join the next turn. Afterwards each person asks once more, and the history in the model's request
 * shows which messages are lost or doubled. Slack's limits are lifted. The store is SQLite.
 */
export async function measureDeliveries(
  mode: DeliveryMode,
  { perSecond, seconds }: { readonly perSecond: number; readonly seconds: number },
): Promise<DeliveriesResult> {
  const folder = await mkdtemp(path.join(tmpdir(), "parley-deliveries-"));
  const slack = await createSlackSimulator({ sendsRequests: mode === "http" });
  for (const method of slackMethods) slack.limit(method, plenty);
  /** The whole request of the last turn of each talk, by the talk's number. */
  const histories = new Map<number, string>();
  const gateway = await startScriptedGateway((body) => {
    const ended = /talk (\d+) the end/.exec(body)?.[1];
    if (ended !== undefined) histories.set(Number(ended), body);
  });
  Object.assign(gateway.script, { thinkMs, tokens: 2, gapMs: 0 });
  let child: Child | undefined;
  try {
    child = await connect(slack, mode, gateway.url, folder);
    const people = Array.from({ length: talks }, (_, index) => slack.person(`Person ${index}`));
    const roots = people.map((person, index) =>
      person.sends({ channel: person.directMessages, text: `talk ${index} begins` }),
    );
    await until("the first answers", () => gateway.answered() >= talks);
    const total = perSecond * seconds;
    const first = slack.deliveries.length;
    const startedAt = performance.now();
    for (let event = 0; event < total; event += 1) {
      const wait = startedAt + (event * 1000) / perSecond - performance.now();
      if (wait > 1) await delay(wait);
      const index = event % talks;
      const person = people[index]!;
      person.sends({
        channel: person.directMessages,
        thread: roots[index]!,
        text: `talk ${index} ${mark(event)}`,
      });
    }
    // Slack sends unacknowledged events again, the last time after six minutes.
    const isAcknowledged = (): boolean => {
      const open = new Set(slack.deliveries.map(({ eventId }) => eventId));
      for (const { eventId, outcome } of slack.deliveries)
        if (outcome === "acknowledged") open.delete(eventId);
      return open.size === slack.lost.length;
    };
    await until("acknowledgements", isAcknowledged, redeliveryMs);
    const made = slack.deliveries.slice(first);
    // What was not asked before is asked with this question, or it is lost.
    for (const [index, person] of people.entries())
      person.sends({ channel: person.directMessages, thread: roots[index]!, text: `talk ${index} the end` });
    await until("the last answers", () => histories.size === talks);
    const refused = await readRefusals(child);
    const history = [...histories.values()].join("\n");
    const counts = Array.from({ length: total }, (_, event) => history.split(mark(event)).length - 1);
    const waits = made.flatMap(({ tookMs, outcome }) => (outcome === "acknowledged" ? [tookMs ?? NaN] : []));
    return {
      mode,
      events: total,
      perSecond,
      acknowledgedMs: { p50: quantile(waits, 0.5), p99: quantile(waits, 0.99), max: Math.max(...waits) },
      redelivered: made.length - waits.length,
      refused,
      // A message may have been refused at several deliveries.
      lost: Math.max(0, counts.filter((count) => count === 0).length - refused),
      doubled: counts.filter((count) => count > 1).length,
      turns: gateway.answered(),
    };
  } finally {
    await child?.stop();
    await slack.close();
    await gateway.close();
    await rm(folder, { recursive: true, force: true });
  }
}

const mark = (event: number): string => `message <${event}>`.replaceAll(/[<>]/g, "_");

async function until(what: string, isDone: () => boolean, withinMs = settleMs): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!isDone()) {
    if (performance.now() > deadline) throw new Error(`timed out waiting for ${what}`);
    await delay(50);
  }
}

async function connect(
  slack: SlackSimulator,
  mode: DeliveryMode,
  gatewayUrl: string,
  folder: string,
): Promise<Child> {
  const child = startChild([path.join(root, "src/main.ts")], {
    SLACK_BOT_TOKEN: slack.botToken,
    ...(mode === "http"
      ? { SLACK_SIGNING_SECRET: slack.signingSecret }
      : { SLACK_APP_TOKEN: slack.appToken }),
    SLACK_API_URL: slack.apiUrl,
    GATEWAY_BASE_URL: gatewayUrl,
    CHAT_MODEL: modelId,
    TURNS_PERSON_MINUTE: "0",
    GATEWAY_CONCURRENCY: "2000",
    STORE_URL: `sqlite:${path.join(folder, "parley.db")}`,
    PORT: "0",
    PAGE: "off",
    LOG_LEVEL: "error",
  });
  await until("the bot", () => {
    child.check();
    return child.output().includes("Ready");
  });
  const url = /HTTP mode, (\S+)/.exec(child.output())?.[1];
  if (url !== undefined) slack.endpoint.url = url;
  return child;
}

async function readRefusals(child: Child): Promise<number> {
  const url = /Health\s+(\S+)\/readyz/.exec(child.output())?.[1] ?? "";
  const text = await (await fetch(`${url}/metrics`)).text();
  const counts = text.matchAll(/^parley_refusals_total\{.*\} (\d+)$/gm);
  return Array.from(counts, ([, count]) => Number(count)).reduce((sum, count) => sum + count, 0);
}

/** Describes the result in one line. */
export function describeDeliveries(result: DeliveriesResult): string {
  const {
    mode,
    events,
    perSecond,
    acknowledgedMs: waits,
    redelivered,
    refused,
    lost,
    doubled,
    turns,
  } = result;
  return [
    `${events} events over ${mode}, ${perSecond} a second: acknowledged in ${waits.p50.toFixed(1)} ms (p99 ${waits.p99.toFixed(1)} ms, at most ${waits.max.toFixed(0)} ms)`,
    `${redelivered} sent again`,
    `${refused} refused as busy`,
    `${lost} lost`,
    `${doubled} doubled`,
    `${turns} turns`,
  ].join("; ");
}

/** Lists the missed aims: p99 below 50 ms, nothing lost and nothing doubled. */
export function listUnmetDeliveries({ mode, acknowledgedMs, lost, doubled }: DeliveriesResult): string[] {
  return [
    ...(acknowledgedMs.p99 < 50
      ? []
      : [`NOT met: events over ${mode} acknowledged p99 < 50 ms (${acknowledgedMs.p99.toFixed(1)} ms)`]),
    ...(lost + doubled === 0 ? [] : [`NOT met: events over ${mode}: ${lost} lost, ${doubled} doubled`]),
  ];
}
