import type { DiscordSimulator } from "../../test/simulators/discord/simulator.ts";
import type { SlackSimulator } from "../../test/simulators/slack/simulator.ts";
import type { Turn, TurnWatch } from "./turn-watch.ts";

/**
 * How people ask. A `mention` in a channel is always a new conversation. `thread` mentions the bot in one
 * thread. `slash` uses the command `/ask`.
 */
export const turnKinds = [
  "discord-mention",
  "discord-thread",
  "discord-slash",
  "slack-mention",
  "slack-thread",
] as const;
export type TurnKind = (typeof turnKinds)[number];

/** One person who asks in one way. */
export interface Talk {
  /** Sends the next question. Resolves when the platform has the whole answer, or with a lost turn. */
  ask(withinMs?: number): Promise<Turn>;
}

/** The number of channels and people on each platform, made before a bot connects. */
const places = 120;
const turnWithinMs = 30_000;

/** Returns a function that starts talks in separate channels (120 on Discord). Call it before connecting. */
export function createTalks(
  { discord, slack }: { readonly discord: DiscordSimulator; readonly slack: SlackSimulator },
  watch: Pick<TurnWatch, "follow">,
): (kind: TurnKind) => Talk {
  const onDiscord = Array.from({ length: places }, (_, index) => {
    const person = discord.person(`Person ${index}`);
    const channel = discord.channel(`channel-${index}`);
    return { person, channel, thread: discord.thread(channel, person) };
  });
  const onSlack = Array.from({ length: places }, (_, index) => slack.person(`Person ${index}`));
  let talks = 0;

  return (kind) => {
    const index = talks++;
    const there = onDiscord[index % places]!;
    const person = onSlack[index % places]!;
    // Each talk has its own channel, because the limit of about one post per second is per channel.
    const channel = kind.startsWith("slack") ? slack.channel(`channel-${index}`, [person]) : { id: "" };
    let thread: string | undefined;
    const send = (text: string): string | undefined => {
      switch (kind) {
        case "discord-mention":
          there.person.sends({ channel: there.channel, text, mentionBot: true });
          return undefined;
        case "discord-thread":
          there.person.sends({ channel: there.thread, text, mentionBot: true });
          return undefined;
        case "discord-slash":
          return there.person.usesCommand("ask", { prompt: text }, { channel: there.channel }).id;
        case "slack-mention":
          person.sends({ channel: channel.id, text, mentionBot: true });
          return undefined;
        case "slack-thread": {
          const where = thread === undefined ? {} : { thread };
          const ts = person.sends({ channel: channel.id, text, mentionBot: true, ...where });
          thread ??= ts;
          return undefined;
        }
      }
    };
    return { ask: (withinMs = turnWithinMs) => watch.follow(send, withinMs) };
  };
}
