import { allCommands } from "../support/commands.ts";
import { createManifest } from "../../src/platforms/slack/manifest.ts";
import { createDiscordSimulator } from "../simulators/discord/simulator.ts";
import { createSlackSimulator } from "../simulators/slack/simulator.ts";

/** A sent message. Its text and the model's answer to it contain its label. */
export interface SentMessage {
  readonly label: string;
  readonly conversation: string;
  /** Its event key. */
  readonly key: string;
}

/** A message of the bot. */
export interface ShownMessage {
  readonly text: string;
  readonly hasRetry: boolean;
}

/** People in several conversations on both platforms. */
export interface People {
  /** Environment of the bot. */
  readonly settings: Readonly<Record<string, string>>;
  readonly conversations: readonly string[];
  send(conversation: string, label: string): SentMessage;
  shown(): readonly ShownMessage[];
  /** Advances Slack's clock, for redeliveries after one and five minutes. */
  passTime(): void;
  /** Keys of events that Slack dropped after the last unacknowledged redelivery. */
  droppedKeys(): ReadonlySet<string>;
  /** Whether the bot has replied that it could not accept this message. */
  wasTold(key: string): boolean;
  close(): Promise<void>;
}

/** Starts both simulators. */
export async function createPeople(conversationsEach: number): Promise<People> {
  const [slack, discord] = await Promise.all([
    createSlackSimulator({ manifest: createManifest(allCommands, { socketMode: true }) }),
    createDiscordSimulator(),
  ]);
  const names = Array.from({ length: conversationsEach }, (_, n) => `Person${n}`);
  const onSlack = new Map(names.map((name) => [`slack ${name}`, slack.person(name)]));
  const onDiscord = new Map(names.map((name) => [`discord ${name}`, discord.person(name)]));
  const roots = new Map<string, string>();
  return {
    settings: {
      SLACK_BOT_TOKEN: slack.botToken,
      SLACK_APP_TOKEN: slack.appToken,
      SLACK_API_URL: slack.apiUrl,
      DISCORD_TOKEN: discord.token,
      DISCORD_API_URL: discord.apiUrl,
    },
    conversations: [...onSlack.keys(), ...onDiscord.keys()],
    send(conversation, label) {
      const text = `please say ${label}`;
      const person = onSlack.get(conversation);
      if (person !== undefined) {
        const root = roots.get(conversation);
        const channel = person.directMessages;
        const ts = person.sends({ channel, text, ...(root === undefined ? {} : { thread: root }) });
        if (root === undefined) roots.set(conversation, ts);
        return { label, conversation, key: `slack:${slack.teamId}:${channel}:${ts}` };
      }
      const writer = onDiscord.get(conversation);
      if (writer === undefined) throw new Error(`no conversation ${conversation}`);
      const { id } = writer.sends({ channel: discord.directMessages(writer), text });
      return { label, conversation, key: `discord:${id}` };
    },
    shown: () => [
      ...slack
        .everything()
        .filter(({ author }) => author === "Parley")
        .map(({ text, buttons }) => ({ text, hasRetry: buttons.some(({ label }) => label === "Retry") })),
      ...[...onDiscord.values()].flatMap((person) =>
        discord
          .directMessages(person)
          .fromBot()
          .map(({ text, buttons }) => ({ text, hasRetry: buttons.some(({ label }) => label === "Retry") })),
      ),
    ],
    passTime: () => slack.clock.advance(61_000),
    droppedKeys: () =>
      new Set(
        slack.lost.map((payload) => {
          const { channel, ts } = payload["event"] as { channel: string; ts: string };
          return `slack:${slack.teamId}:${channel}:${ts}`;
        }),
      ),
    wasTold: (key) =>
      [...onDiscord.values()].some((person) =>
        discord
          .directMessages(person)
          .fromBot()
          .some(
            ({ replyTo, text }) => `discord:${replyTo}` === key && text.includes("cannot reach its store"),
          ),
      ),
    async close() {
      await slack.close();
      await discord.close();
    },
  };
}
