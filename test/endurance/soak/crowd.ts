import type { Person, Use } from "../../simulators/discord/people.ts";
import type { ChannelHandle, DiscordSimulator } from "../../simulators/discord/simulator.ts";
import { answers } from "../../simulators/gateway/slow-gateway.ts";

/** A question that must be answered once. */
interface Question {
  readonly label: string;
  readonly askedAt: number;
  /** The process of this shard gets the question. */
  readonly shard: number;
  /** The places where the answer may come. For a mention these are its thread and the channel. */
  readonly where: () => readonly string[];
  /** The use of the command, if the question was a command. */
  readonly use?: Use;
}

/** The account says what became of the questions. */
export interface Account {
  readonly asked: number;
  readonly answered: number;
  /** Labels of questions without a whole answer. */
  readonly lost: readonly string[];
  /** What stands in the places of the lost questions, for people to read. */
  readonly aroundLost: readonly string[];
  /** Labels of questions with several answers. */
  readonly doubled: readonly string[];
  /** Commands of which Discord said that the bot did not respond. */
  readonly unacknowledged: readonly {
    readonly label: string;
    readonly shard: number;
    readonly askedAt: number;
  }[];
}

/** People of many servers who talk with each other; some of them talk with the bot. */
export interface Crowd {
  /** Somebody writes to somebody else. */
  chat(): void;
  /** Somebody asks the bot by mention, in a thread, in a direct message or with a command. */
  ask(): void;
  readonly chatted: () => number;
  account(): Account;
}

const people = 200;
/** A thread goes on at most this long after its question, in milliseconds. */
const followUpWithinMs = 60_000;

/** Creates the crowd of at least one server. */
export function createCrowd(discord: DiscordSimulator, servers: number, shards: number): Crowd {
  const crowd = Array.from({ length: people }, (_, index) => discord.person(`Person ${index}`));
  const places = Array.from({ length: servers }, (_, index) => {
    const server = discord.server(`Server ${index}`);
    const members = [crowd[index % people]!, crowd[(index * 7 + 3) % people]!];
    for (const member of members) server.join(member);
    return { shard: server.shardOf(shards), channel: server.channel("general"), members };
  });
  const questions: Question[] = [];
  /** Mentions whose threads may go on, oldest first. */
  const mentions: { readonly question: Question; readonly messageId: string; readonly by: Person }[] = [];
  let chatted = 0;
  let asked = 0;

  const pick = <T>(from: readonly T[]): T => from[Math.floor(Math.random() * from.length)] as T;
  const note = (question: Omit<Question, "askedAt">): Question => {
    const made = { ...question, askedAt: performance.now() };
    questions.push(made);
    return made;
  };

  function mention(label: string): void {
    const { shard, channel, members } = pick(places);
    const by = pick(members);
    const { id } = by.sends({ channel, text: `What of this? ${label}`, mentionBot: true });
    mentions.push({ question: note({ label, shard, where: () => [id, channel.id] }), messageId: id, by });
  }

  /** Asks on in a thread of the last minute that has its answer, or else with a new mention. */
  function followUp(label: string): void {
    const now = performance.now();
    while (mentions[0] !== undefined && now - mentions[0].question.askedAt > followUpWithinMs)
      mentions.shift();
    const open = mentions.filter(
      ({ question, messageId }) =>
        discord.world.channels.has(messageId) && hasAnswer(discord.handle(messageId), question.label),
    );
    if (open.length === 0) return mention(label);
    const { question, messageId, by } = pick(open);
    by.sends({ channel: { id: messageId }, text: `And then? ${label}` });
    note({ label, shard: question.shard, where: () => [messageId] });
  }

  function directMessage(label: string): void {
    const by = pick(crowd);
    const { id } = discord.directMessages(by);
    by.sends({ channel: { id }, text: `In private: ${label}` });
    note({ label, shard: 0, where: () => [id] });
  }

  function command(label: string): void {
    const { shard, channel, members } = pick(places);
    const use = pick(members).usesCommand("ask", { prompt: `By command: ${label}` }, { channel });
    note({ label, shard, where: () => [channel.id], use });
  }

  const kinds = [mention, followUp, directMessage, followUp, command];
  return {
    chat() {
      const { channel, members } = pick(places);
      chatted += 1;
      pick(members).sends({ channel, text: `Among ourselves #c${chatted}` });
    },
    ask() {
      asked += 1;
      kinds[asked % kinds.length]?.(`#q${asked}`);
    },
    chatted: () => chatted,
    account() {
      const unacknowledged = questions.filter(({ use }) => use?.state() === "failed");
      const counted = questions.filter((question) => !unacknowledged.includes(question));
      const wholeAnswers = counted.map(({ label, where }) => ({
        label,
        where,
        count: countAnswers(discord, where(), label),
      }));
      return {
        asked: counted.length,
        answered: wholeAnswers.filter(({ count }) => count > 0).length,
        lost: wholeAnswers.filter(({ count }) => count === 0).map(({ label }) => label),
        aroundLost: wholeAnswers
          .filter(({ count }) => count === 0)
          .flatMap(({ where }) => where())
          .filter((id) => discord.world.channels.has(id))
          .map((id) =>
            JSON.stringify(
              discord
                .handle(id)
                .transcript()
                .slice(-8)
                .map(({ author, text }) => [author, text]),
            ),
          ),
        doubled: wholeAnswers.filter(({ count }) => count > 1).map(({ label }) => label),
        unacknowledged: unacknowledged.map(({ label, shard, askedAt }) => ({ label, shard, askedAt })),
      };
    },
  };
}

function hasAnswer(channel: ChannelHandle, label: string): boolean {
  return channel.fromBot().some(({ text }) => answers(withoutNotices(text), label));
}

function countAnswers(discord: DiscordSimulator, channelIds: readonly string[], label: string): number {
  return channelIds
    .filter((id) => discord.world.channels.has(id))
    .flatMap((id) => discord.handle(id).fromBot())
    .filter(({ text }) => answers(withoutNotices(text), label)).length;
}

/** Removes the notice that no thread could be opened, and the prompt that a command's answer quotes. */
function withoutNotices(text: string): string {
  return text
    .split("\n")
    .filter((line) => line.startsWith("re "))
    .join("\n");
}
