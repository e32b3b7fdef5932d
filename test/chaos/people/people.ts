import { sleepUnlessAborted } from "../../../src/support/clock.ts";
import type { DiscordSimulator } from "../../simulators/discord/simulator.ts";
import type { SlackSimulator } from "../../simulators/slack/simulator.ts";
import { parseAnswer } from "../answer-text.ts";
import type { Random } from "../random.ts";
import { createDiscordCrowd } from "./discord-crowd.ts";
import type { SentMessage, ShownMessage } from "./sent-message.ts";
import { createSlackCrowd } from "./slack-crowd.ts";

const onDiscord = 5;
const onSlack = 3;
/** Slack allows 50 edits a minute, so more answers would only queue up. */
const slackIntervalMs = 2500;
/** The mean time between messages. */
const paceMs = 300;
/** While so many of the latest messages have no outcome, people wait for a while. */
const maxWaiting = 10;
const latest = 30;
const maxWaitMs = 2000;

/** People on both platforms at once. */
export interface People {
  /** The environment of the bot. */
  readonly settings: Readonly<Record<string, string>>;
  readonly discord: DiscordSimulator;
  readonly slack: SlackSimulator;
  /** Everything sent so far, in order. */
  readonly sent: readonly SentMessage[];
  /** Sends one message in each lasting conversation. */
  begin(): void;
  /** Lets somebody say something. */
  act(): void;
  /** Lets a new person write on Slack. Resolves as soon as the bot acknowledges it, or to false. */
  actUntilAcknowledged(): Promise<boolean>;
  /** Resolves when people have done what they had in mind: edits, deletions, clicks. */
  done(): Promise<void>;
  /** Returns every message of the bot, on each platform in the order in which they were posted. */
  shown(): readonly ShownMessage[];
  /** Returns how often somebody has pressed Regenerate. */
  regenerations(): number;
  /** Returns how many of the latest messages have no outcome yet. */
  waiting(): number;
  /** Advances Slack's clock, for redeliveries after one and five minutes. */
  passTime(): void;
  close(): Promise<void>;
}

/** Starts both simulators. */
export async function createPeople(random: Random): Promise<People> {
  const [discord, slack] = await Promise.all([
    createDiscordCrowd(random, onDiscord),
    createSlackCrowd(random, onSlack),
  ]);
  const sent: SentMessage[] = [];
  let labels = 0;
  let slackActedAt = Number.NEGATIVE_INFINITY;
  const nextLabel = (): string => `#e${(labels += 1)}`;
  const shown = (): ShownMessage[] => [...discord.shown(), ...slack.shown()];
  return {
    settings: { ...discord.settings, ...slack.settings },
    discord: discord.discord,
    slack: slack.slack,
    sent,
    begin() {
      sent.push(...discord.begin(nextLabel), ...slack.begin(nextLabel));
    },
    act() {
      const isSlackDue = performance.now() - slackActedAt > slackIntervalMs;
      if (!isSlackDue || random.next() < 0.5) {
        sent.push(...discord.act(nextLabel));
        return;
      }
      slackActedAt = performance.now();
      sent.push(...slack.act(nextLabel));
    },
    async actUntilAcknowledged() {
      const { sent: one, acknowledged } = slack.actAlone(nextLabel);
      sent.push(one);
      return await acknowledged;
    },
    async done() {
      await Promise.all([discord.done(), slack.done()]);
    },
    shown,
    regenerations: () => discord.regenerations() + slack.regenerations(),
    waiting() {
      const answered = new Set(shown().flatMap(({ text }) => parseAnswer(text)?.labels ?? []));
      return sent
        .slice(-latest)
        .filter(
          ({ label, deletedAt, refusal }) =>
            deletedAt === undefined && !answered.has(label) && refusal() === undefined,
        ).length;
    },
    passTime: () => slack.slack.clock.advance(61_000),
    async close() {
      await slack.close();
      await discord.close();
    },
  };
}

/** Lets people say something again and again until it is stopped. */
export function startTalking(people: People, random: Random): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const talking = (async () => {
    while (!stopping.signal.aborted) {
      people.act();
      await sleepUnlessAborted(paceMs * 2 * random.next(), stopping.signal);
      // On a slow machine the bot must not drown, but lost messages must not end the conversation.
      for (let waitedMs = 0; waitedMs < maxWaitMs && !stopping.signal.aborted; waitedMs += paceMs) {
        if (people.waiting() <= maxWaiting) break;
        await sleepUnlessAborted(paceMs, stopping.signal);
      }
    }
  })();
  return {
    async stop() {
      stopping.abort();
      await talking;
      await people.done();
    },
  };
}
