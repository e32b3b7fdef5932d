import { allCommands } from "../support/commands.ts";
import { createManifest } from "../../src/platforms/slack/manifest.ts";
import { createDiscordSimulator } from "../simulators/discord/simulator.ts";
import { createSlackSimulator } from "../simulators/slack/simulator.ts";

/** A message that somebody sent; its label is in its words, and in the model's answer to it. */
export interface Said {
  readonly label: string;
  readonly conversation: string;
  /** The key it is accepted under. */
  readonly key: string;
}

/** A message of the bot as it stands at the end. */
export interface Shown {
  readonly text: string;
  readonly hasRetry: boolean;
}

/** People in several conversations on both platforms, who go on talking whatever happens to the bot. */
export interface People {
  readonly settings: Readonly<Record<string, string>>;
  readonly conversations: readonly string[];
  say(conversation: string, label: string): Said;
  shown(): readonly Shown[];
  /** Slack's redeliveries come after a minute and after five: lets that much time pass. */
  passTime(): void;
  /** Events that Slack gave up on, since nobody acknowledged any of its tries. */
  givenUp(): ReadonlySet<string>;
  /** Whether the bot has told somebody that it could not take this message in. */
  wasTold(key: string): boolean;
  close(): Promise<void>;
}

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
    say(conversation, label) {
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
        .map(({ text, buttons }) => ({ text, hasRetry: buttons.length > 0 })),
      ...[...onDiscord.values()].flatMap((person) =>
        discord
          .directMessages(person)
          .fromBot()
          .map(({ text, buttons }) => ({ text, hasRetry: buttons.length > 0 })),
      ),
    ],
    passTime: () => slack.clock.advance(61_000),
    givenUp: () =>
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
