import { soonAgain } from "../../simulators/discord/session-starts.ts";
import {
  createDiscordSimulator,
  type ChannelHandle,
  type DiscordSimulator,
} from "../../simulators/discord/simulator.ts";
import type { Person, Use } from "../../simulators/discord/people.ts";
import { parseAnswer } from "../answer-text.ts";
import { createLater } from "./later.ts";
import type { Random } from "../random.ts";
import {
  deletedShare,
  editedShare,
  isUnfinishedText,
  regeneratedShare,
  toRefusal,
  toSecret,
  toText,
  type Crowd,
  type Refusal,
  type SentMessage,
  type ShownMessage,
} from "./sent-message.ts";

/** How many of the latest threads people go on in. */
const liveThreads = 4;

/** Creates people on Discord: direct messages, mentions, threads that the bot opened, slash commands. */
export async function createDiscordCrowd(
  random: Random,
  count: number,
): Promise<Crowd & { readonly discord: DiscordSimulator }> {
  const discord = await createDiscordSimulator({ sessionStarts: soonAgain });
  const people = Array.from({ length: count }, (_, n) => discord.person(`Person${n}`));
  const general = discord.channel("general");
  let hasBegun = false;
  let regenerations = 0;
  const later = createLater();

  function write(
    kind: "direct" | "thread" | "mention",
    person: Person,
    { channel, label }: { readonly channel: ChannelHandle; readonly label: string },
  ): SentMessage {
    const secret = toSecret(label);
    const text = toText(label, secret);
    const message = person.sends({ channel, text, mentionBot: kind === "mention" });
    const { id } = message;
    const sent: SentMessage = {
      label,
      secret,
      edits: [],
      kind,
      platform: "discord",
      // A mention opens a thread of the message's id.
      conversation: `discord ${kind === "mention" ? id : channel.id}`,
      keys: [`discord:${id}`],
      sentAt: Date.now(),
      refusal: () =>
        channel
          .fromBot()
          .filter(({ replyTo }) => replyTo === id)
          .map((notice) => toRefusal(notice.text))
          .find((refusal) => refusal !== undefined),
      isRedelivered: () => false,
      deliveries: () => [],
    };
    if (hasBegun && kind !== "mention" && random.next() < deletedShare)
      later.run(
        () => {
          sent.deletedAt = Date.now();
          person.deletes(message);
        },
        random.between(0, 1500),
      );
    else if (hasBegun && random.next() < editedShare) editSoon(person, message, sent);
    if (hasBegun && random.next() < regeneratedShare)
      later.run(() => regenerate(person, channel), random.between(0, 3000));
    return sent;
  }

  /** Corrects a message once or twice, even while it is being answered. */
  function editSoon(person: Person, message: ReturnType<Person["sends"]>, sent: SentMessage): void {
    for (const afterMs of random.next() < 0.3 ? [300, 700] : [random.between(0, 2500)])
      later.run(() => {
        sent.edits.push({ secret: sent.secret, at: Date.now() });
        sent.secret = toSecret(sent.label);
        const mention = sent.kind === "mention" ? `<@${discord.botId}> ` : "";
        person.edits(message, `${mention}${toText(sent.label, sent.secret)}`);
      }, afterMs);
  }

  /** Regenerates the last answer of a channel, whosever it is. */
  function regenerate(person: Person, channel: ChannelHandle): void {
    const answer = channel.fromBot().findLast(
      // Others do not see a private answer.
      ({ isEphemeral, buttons }) => !isEphemeral && buttons.some(({ label }) => label === "Regenerate"),
    );
    if (answer === undefined) return;
    regenerations += 1;
    person.clicks("Regenerate", answer, { channel });
  }

  function use(
    kind: "ask" | "private-ask" | "chat",
    person: Person,
    { channel, label }: { readonly channel: ChannelHandle; readonly label: string },
  ): SentMessage {
    const secret = toSecret(label);
    const text = toText(label, secret);
    const used =
      kind === "chat"
        ? person.usesCommand("chat", { message: text }, { channel })
        : person.usesCommand(
            "ask",
            { prompt: text, ...(kind === "private-ask" ? { private: true } : {}) },
            { channel },
          );
    const key = `discord:command/${used.id}`;
    return {
      label,
      secret,
      edits: [],
      kind,
      platform: "discord",
      conversation: `discord command ${used.id}`,
      keys: kind === "chat" ? [key, `${key}/first`] : [key],
      sentAt: Date.now(),
      refusal: () => refusalOf(used),
      told: () => [used.state(), ...responsesTo(used)],
      isRedelivered: () => false,
      deliveries: () => [],
    };
  }

  function responsesTo({ id, interaction }: Use): readonly string[] {
    return (discord.world.channels.get(interaction.channelId)?.messages ?? [])
      .filter(({ interactionId, isDeleted }) => interactionId === id && !isDeleted)
      .map(({ content }) => content);
  }

  /** Returns what the person sees as the response to a command: the bot's words, or Discord's own. */
  function refusalOf(used: Use): Refusal | undefined {
    for (const content of responsesTo(used)) {
      const refusal = parseAnswer(content) === undefined ? toRefusal(content) : undefined;
      if (refusal !== undefined) return refusal;
    }
    return used.state() === "failed"
      ? { reason: "platform", words: "The application did not respond" }
      : undefined;
  }

  function shown(): ShownMessage[] {
    const all = [...discord.world.channels.values()].flatMap(({ id }) => discord.handle(id).fromBot());
    return all
      .toSorted((a, b) => (a.id < b.id ? -1 : 1))
      .map(({ id, text, isThinking, buttons, nonce, interactionId }) => ({
        platform: "discord",
        id,
        text,
        origin: JSON.stringify({ nonce, interactionId }),
        retryKey: buttons.find(({ label }) => label === "Retry")?.customId.replace(/^retry:/, ""),
        isUnfinished: isThinking || isUnfinishedText(text),
      }));
  }

  return {
    discord,
    settings: { DISCORD_TOKEN: discord.token, DISCORD_API_URL: discord.apiUrl },
    begin: (nextLabel) => [
      ...people.map((person) =>
        write("direct", person, { channel: discord.directMessages(person), label: nextLabel() }),
      ),
      write("mention", random.pick(people), { channel: general, label: nextLabel() }),
    ],
    act(nextLabel) {
      hasBegun = true;
      const person = random.pick(people);
      const direct = discord.directMessages(person);
      const threads = general.threads().slice(-liveThreads);
      const choice = random.next();
      if (choice < 0.36) {
        const burst = random.next() < 0.3 ? random.between(2, 4) : 1;
        return Array.from({ length: burst }, () =>
          write("direct", person, { channel: direct, label: nextLabel() }),
        );
      }
      if (choice < 0.6 && threads.length > 0) {
        const channel = random.pick(threads);
        const burst = random.next() < 0.3 ? random.between(2, 3) : 1;
        return Array.from({ length: burst }, () =>
          write("thread", random.pick(people), { channel, label: nextLabel() }),
        );
      }
      const label = nextLabel();
      if (choice < 0.75) return [write("mention", person, { channel: general, label })];
      if (choice < 0.85) return [use("ask", person, { channel: general, label })];
      if (choice < 0.9) return [use("ask", person, { channel: direct, label })];
      if (choice < 0.96) return [use("private-ask", person, { channel: general, label })];
      return [use("chat", person, { channel: general, label })];
    },
    shown,
    regenerations: () => regenerations,
    done: () => later.done(),
    close: () => discord.close(),
  };
}
