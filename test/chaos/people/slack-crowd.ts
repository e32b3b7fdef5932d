import { setImmediate as nextTick } from "node:timers/promises";
import { createManifest } from "../../../src/platforms/slack/install/manifest.ts";
import type { Interaction, Person } from "../../simulators/slack/person.ts";
import { createSlackSimulator, type SlackSimulator } from "../../simulators/slack/simulator.ts";
import { allCommands } from "../../support/commands.ts";
import type { Random } from "../random.ts";
import { createLater } from "./later.ts";
import {
  deletedShare,
  editedShare,
  isUnfinishedText,
  regeneratedShare,
  findRefusal,
  toRefusal,
  toSecret,
  toText,
  type Crowd,
  type Refusal,
  type SentMessage,
  type ShownMessage,
} from "./sent-message.ts";

/** Slack gives up after this redelivery. */
const lastRedelivery = 3;
/** How many of the latest threads people go on in. */
const liveThreads = 4;

interface Thread {
  readonly channel: string;
  readonly root: string;
}

/** The result of {@link createSlackCrowd}. */
export interface SlackCrowd extends Crowd {
  readonly slack: SlackSimulator;
  /** Lets a new person write. `acknowledged` tells at once that the bot has, or after 3 s that it has not. */
  actAlone(nextLabel: () => string): { readonly sent: SentMessage; readonly acknowledged: Promise<boolean> };
}

/** How long an acknowledgement is waited for, which is Slack's deadline. */
const acknowledgedWithinMs = 3000;

/** Creates people on Slack: threads in direct messages, mentions and their threads, slash commands. */
export async function createSlackCrowd(random: Random, count: number): Promise<SlackCrowd> {
  const slack = await createSlackSimulator({ manifest: createManifest(allCommands, { socketMode: true }) });
  const people = Array.from({ length: count }, (_, n) => slack.person(`Person${n}`));
  const general = slack.channel("general", people);
  const directThreads = new Map<Person, Thread>();
  const channelThreads: Thread[] = [];
  let strangers = 0;
  let regenerations = 0;
  const later = createLater();

  const attemptsFor = (channel: string, ts: string) =>
    slack.deliveries.filter(({ payload }) => {
      const event = payload["event"] as { channel?: string; ts?: string } | undefined;
      return event?.channel === channel && event.ts === ts;
    });

  function write(
    kind: "direct" | "thread" | "mention",
    person: Person,
    { thread, label }: { readonly thread: Thread | undefined; readonly label: string },
  ): SentMessage {
    const secret = toSecret(label);
    const channel = thread?.channel ?? (kind === "direct" ? person.directMessages : general.id);
    const ts = person.sends({
      channel,
      text: toText(label, secret),
      mentionBot: kind === "mention",
      ...(thread === undefined ? {} : { thread: thread.root }),
    });
    const root = { channel, root: thread?.root ?? ts };
    if (kind === "direct") directThreads.set(person, root);
    if (kind === "mention") channelThreads.push(root);
    const sent: SentMessage = {
      label,
      secret,
      edits: [],
      kind,
      platform: "slack",
      conversation: `slack ${root.channel} ${root.root}`,
      keys: [`slack:${slack.teamId}:${channel}:${ts}`],
      sentAt: Date.now(),
      refusal: () => dropped(channel, ts) ?? toldAtLast(person, channel, ts),
      isRedelivered: () => attemptsFor(channel, ts).some(({ attempt }) => attempt > 0),
      deliveries: () =>
        attemptsFor(channel, ts).map(({ what, attempt, outcome }) => `${what} ${attempt} ${outcome}`),
      acknowledgedAfterMs: () =>
        attemptsFor(channel, ts).find(({ outcome }) => outcome === "acknowledged")?.tookMs,
    };
    if (thread !== undefined && random.next() < deletedShare)
      later.run(
        () => {
          sent.deletedAt = Date.now();
          const place = kind === "direct" ? slack.directMessages(person) : general;
          place.deleteMessage(ts);
          sent.isDeletionReceived = () =>
            slack.deliveries.some(
              ({ outcome, payload }) =>
                outcome === "acknowledged" &&
                (payload["event"] as { deleted_ts?: string } | undefined)?.deleted_ts === ts,
            );
        },
        random.between(0, 1500),
      );
    else if (thread !== undefined && random.next() < editedShare)
      later.run(() => edit(person, { channel, ts }, sent), random.between(0, 2500));
    if (thread !== undefined && random.next() < regeneratedShare)
      later.run(() => regenerate(person, channel, thread), random.between(0, 3000));
    return sent;
  }

  function edit(
    person: Person,
    { channel, ts }: { readonly channel: string; readonly ts: string },
    sent: SentMessage,
  ): void {
    const text = toText(sent.label, toSecret(sent.label));
    sent.edits.push({
      secret: sent.secret,
      at: Date.now(),
      isReceived: () =>
        slack.deliveries.some(({ outcome, payload }) => {
          const event = payload["event"] as
            | {
                readonly subtype?: string;
                readonly message?: { readonly ts?: string; readonly text?: string };
              }
            | undefined;
          const isIt = event?.subtype === "message_changed" && event.message?.ts === ts;
          return isIt && outcome === "acknowledged" && event.message?.text?.includes(text) === true;
        }),
    });
    sent.secret = /\((\w+)\)$/.exec(text)?.[1] ?? "";
    person.edits(ts, text, { channel });
  }

  /** Regenerates the last answer of a thread, whosever it is. */
  function regenerate(person: Person, channel: string, { root }: Thread): void {
    const answer = slack
      .everything()
      .findLast(
        ({ author, thread, onlyFor, buttons }) =>
          author === "Parley" &&
          thread === root &&
          onlyFor === undefined &&
          buttons.some(({ label }) => label === "Regenerate"),
      );
    if (answer === undefined) return;
    regenerations += 1;
    void person.clicks(answer, "Regenerate", { channel });
  }

  /** Slack gives up after the last redelivery that nobody acknowledged. */
  function dropped(channel: string, ts: string): Refusal | undefined {
    const isDropped = slack.lost.some((payload) => {
      const event = payload["event"] as { channel?: string; ts?: string } | undefined;
      return event?.channel === channel && event.ts === ts;
    });
    return isDropped ? { reason: "platform", words: "Slack dropped the event" } : undefined;
  }

  /** An outage of the store that outlasts Slack's last redelivery is told to the person alone. */
  function toldAtLast(person: Person, channel: string, ts: string): Refusal | undefined {
    const isLast = attemptsFor(channel, ts).some(
      ({ attempt, outcome }) => attempt === lastRedelivery && outcome === "acknowledged",
    );
    if (!isLast) return undefined;
    const said = slack
      .everything()
      .filter((one) => one.author === "Parley" && one.onlyFor === person.name && Number(one.ts) > Number(ts))
      .map(({ text }) => toRefusal(text))
      .find((refusal) => refusal?.reason === "store");
    return said === undefined ? undefined : { ...said, reason: "platform" };
  }

  function use(
    kind: "ask" | "private-ask" | "chat",
    person: Person,
    { channel, label }: { readonly channel: string; readonly label: string },
  ): SentMessage {
    const secret = toSecret(label);
    const text = toText(label, secret);
    let result: Interaction | undefined;
    const written =
      kind === "chat" ? `message:"${text}"` : kind === "private-ask" ? `prompt:"${text}" private:true` : text;
    const before = slack.deliveries.length;
    void person.usesCommand(kind === "chat" ? "/chat" : "/ask", written, { channel }).then((settled) => {
      result = settled;
    });
    const trigger = slack.deliveries
      .slice(before)
      .map(({ payload }) => payload["trigger_id"])
      .find((id) => typeof id === "string");
    const key = `slack:${slack.teamId}:cmd:${trigger ?? "unknown"}`;
    return {
      label,
      secret,
      edits: [],
      kind,
      platform: "slack",
      conversation: `slack command ${label}`,
      keys: kind === "chat" ? [key, `${key}/first`] : [key],
      sentAt: Date.now(),
      refusal: () => refusalOf(result, kind === "private-ask" ? person : undefined),
      told: () => [JSON.stringify(result), ...toldOf(result, kind === "private-ask" ? person : undefined)],
      isRedelivered: () => false,
      deliveries: () => [],
    };
  }

  /** @param alone the person of a private command, whose direct messages hold nothing else */
  function toldOf(result: Interaction | undefined, alone: Person | undefined): readonly string[] {
    const { text } = result?.kind === "acknowledged" ? result.ack : {};
    return [
      typeof text === "string" ? text : "",
      ...(alone === undefined
        ? []
        : slack
            .directMessages(alone)
            .saidByBot()
            .map((said) => said.text)),
    ];
  }

  function refusalOf(result: Interaction | undefined, alone: Person | undefined): Refusal | undefined {
    // The bot may say something even after Slack said that the bot did not respond in time.
    const said = findRefusal(toldOf(result, alone));
    if (said !== undefined) return said;
    return result?.kind === "failed"
      ? { reason: "platform", words: `operation_${result.reason}` }
      : undefined;
  }

  function shown(): ShownMessage[] {
    return slack
      .everything()
      .filter(({ author }) => author === "Parley")
      .toSorted((a, b) => Number(a.ts) - Number(b.ts))
      .map(({ ts, text, buttons, onlyFor, thread, metadata, stream }) => ({
        platform: "slack",
        id: ts,
        text,
        origin: JSON.stringify({ thread, metadata }),
        retryKey: buttons.find(({ label }) => label === "Retry")?.value,
        // Slack has no way to edit what only one person sees.
        isUnfinished: onlyFor === undefined && (stream !== undefined || isUnfinishedText(text)),
      }));
  }

  return {
    slack,
    settings: {
      SLACK_BOT_TOKEN: slack.botToken,
      SLACK_APP_TOKEN: slack.appToken,
      SLACK_API_URL: slack.apiUrl,
    },
    begin: (nextLabel) => [
      ...people.map((person) => write("direct", person, { thread: undefined, label: nextLabel() })),
      write("mention", random.pick(people), { thread: undefined, label: nextLabel() }),
    ],
    act(nextLabel) {
      const person = random.pick(people);
      const label = nextLabel();
      const choice = random.next();
      const thread = random.pick(channelThreads.slice(-liveThreads));
      if (choice < 0.35) {
        const first = write("direct", person, { thread: directThreads.get(person), label });
        if (random.next() > 0.3) return [first];
        return [first, write("direct", person, { thread: directThreads.get(person), label: nextLabel() })];
      }
      if (choice < 0.6) return [write("thread", person, { thread, label })];
      if (choice < 0.75) return [write("mention", person, { thread: undefined, label })];
      if (choice < 0.87) return [use("ask", person, { channel: general.id, label })];
      if (choice < 0.95) {
        const alone = slack.person(`Stranger${(strangers += 1)}`);
        return [use("private-ask", alone, { channel: alone.directMessages, label })];
      }
      return [use("chat", person, { channel: general.id, label })];
    },
    actAlone(nextLabel) {
      const person = slack.person(`Stranger${(strangers += 1)}`);
      const before = slack.deliveries.length;
      const sent = write("direct", person, { thread: undefined, label: nextLabel() });
      const deliveries = slack.deliveries.slice(before);
      const acknowledged = (async () => {
        const deadline = performance.now() + acknowledgedWithinMs;
        while (performance.now() < deadline) {
          if (deliveries.some(({ outcome }) => outcome === "acknowledged")) return true;
          if (deliveries.every(({ outcome }) => outcome !== "waiting")) return false;
          await nextTick();
        }
        return false;
      })();
      return { sent, acknowledged };
    },
    shown,
    regenerations: () => regenerations,
    done: () => later.done(),
    close: () => slack.close(),
  };
}
