import { describe, expect, it, vi } from "vitest";
import { createRandom, type Random } from "../chaos/random.ts";
import { useInstances, withoutHint, type Instances } from "../e2e/instances/instances.ts";
import { has } from "../support/requirements.ts";

const start = useInstances();
const threads = 10;
const messages = 60;
/** The first three ask the bot things. The last one only talks with the others. */
const people = ["Ada", "Rasha", "Bo", "Cy"] as const;
const askers = 3;
const talker = 3;

/** A thread of three people, an app and a second bot on one platform. */
interface Room {
  /** Writes a mention of the person with this number, as the platform has it. */
  readonly mention: (person: number) => string;
  readonly says: (person: number, text: string, how?: Saying) => Written;
  /** Lets another app write. It mentions the bot if `calls`. */
  readonly appSays: (text: string, calls: boolean) => void;
  /** Whether people can reply to one message of a thread. */
  readonly hasReplies: boolean;
}

interface Saying {
  readonly calls?: boolean;
  readonly repliesTo?: "bot" | "person";
}

interface Written {
  edits(text: string, how?: { readonly calls?: boolean }): void;
}

/** One line of a script: what somebody writes in a room, and whether the bot answers it. */
interface Line {
  readonly isAnswered: boolean;
  readonly play: (room: Room) => void;
}

type Kind = (label: string, who: number, whom: number) => Line & { readonly isReply?: true };

/** What people say to each other and to nobody, as they talk. None of it is for the bot. */
const chatter: readonly string[] = [
  ["thanks {whom}", "who writes the flyer?", "does anybody have the login?", "👍", "+1", "lunch?"],
  ["Parley's answer was wrong", "parley said it closes at six", "@{whom} can you run the tests?"],
  ["https://ci.example.org/build", "will you be there at 5?", "frag mal {whom}", "押しました"],
  ["merci à tous", "¿quedamos a las tres?", "{whom}?", "works for me", "wer schreibt den Flyer?"],
].flat();
/** What is said to the bot by its name. */
const calls: readonly string[] = [
  ["hey parley, what is a larch?", "what do you think, Parley?", "frag mal Parley", "@parley sum that up"],
  ["parley can you make a table of it?", "merci Parley !", "Parleyさん、まとめてください", "Parley?"],
].flat();

/** The lines that a script is made of. `who` says it, and `whom` is somebody else. */
const kinds: readonly Kind[] = [
  (label, who) => ({
    isAnswered: true,
    play: (room) => void room.says(who, `what is a larch? ${label}`, { calls: true }),
  }),
  ...chatter.map((text): Kind => (label, who) => ({
    isAnswered: false,
    // The label stands alone, so that it is no part of how people talk.
    play: (room) => void room.says(talker, `${text.replace("{whom}", people[who]!)}\n${label}`),
  })),
  ...calls.map((text): Kind => (label, who) => ({
    isAnswered: true,
    play: (room) => void room.says(who, `${text}\n${label}`),
  })),
  (label, who, whom) => ({
    isAnswered: true,
    play: (room) => void room.says(who, `${room.mention(whom)} asks for the plan ${label}`, { calls: true }),
  }),
  (label, who, whom) => ({
    isAnswered: false,
    play: (room) => void room.says(who, `${room.mention(whom)} can you take this? ${label}`),
  }),
  (label, who, whom) => ({
    isAnswered: false,
    play: (room) => void room.says(who, `${label} is yours, ${room.mention(whom)}`),
  }),
  (label, who, whom) => ({
    isAnswered: false,
    play: (room) => void room.says(who, `thanks ${room.mention(whom)} for ${label}`),
  }),
  (label) => ({ isAnswered: false, play: (room) => room.appSays(`The build is red ${label}`, false) }),
  (label) => ({ isAnswered: false, play: (room) => room.appSays(`what is a larch? ${label}`, true) }),
  (label, who, whom) => ({
    isAnswered: true,
    play(room) {
      const said = room.says(who, `${room.mention(whom)} what is a fir? ${label}`);
      said.edits(`parley, what is a fir? ${label}`);
    },
  }),
  (label, who, whom) => ({
    isAnswered: true,
    play(room) {
      const said = room.says(who, `${room.mention(whom)} is it dry? ${label}`);
      said.edits(`${room.mention(whom)} asks whether it is dry ${label}`, { calls: true });
    },
  }),
  (label, who, whom) => ({
    isAnswered: false,
    play(room) {
      const said = room.says(who, `${room.mention(whom)} is it wet? ${label}`);
      said.edits(`${room.mention(whom)} is it very wet? ${label}`);
    },
  }),
  (label, who) => ({
    isReply: true,
    isAnswered: false,
    play: (room) => void room.says(who, `yes, do that ${label}`, { repliesTo: "person" }),
  }),
  (label, who) => ({
    isReply: true,
    isAnswered: true,
    play: (room) => void room.says(who, `Parley, is that right? ${label}`, { repliesTo: "person" }),
  }),
  (label, who) => ({
    isReply: true,
    isAnswered: true,
    play: (room) => void room.says(who, `and a fir? ${label}`, { repliesTo: "bot" }),
  }),
];

/** What is written in a thread after its first message. When the last line is answered, all are decided. */
function toScript(random: Random, thread: number, hasReplies: boolean): ReadonlyMap<string, Line> {
  const possible = kinds.filter((make) => hasReplies || make("", 0, 1).isReply !== true);
  const script = new Map<string, Line>();
  for (let n = 1; n < messages; n++) {
    const label = `#t${thread}x${n}`;
    // At first each of them asks something, so that there is something to reply to.
    const who = n <= askers ? n - 1 : random.between(0, 2);
    const make = n <= askers || n === messages - 1 ? kinds[0]! : random.pick(possible);
    script.set(label, make(label, who, (who + random.between(1, 2)) % 3));
  }
  return script;
}

const firstText = "what grows here?";

async function onDiscord({ discord }: Instances, thread: number): Promise<Room> {
  const some = people.map((name) => discord.person(`${name}${thread}`));
  const channel = discord.channel(`ops${thread}`);
  const first = some[0]!.sends({ channel, text: `${firstText} #t${thread}x0`, mentionBot: true });
  const room = await vi.waitUntil(() => channel.threads().find(({ id }) => id === first.id), {
    timeout: 60_000,
  });
  const last = new Map<number, { readonly id: string }>();
  return {
    hasReplies: true,
    mention: (person) => `<@${some[person]!.id}>`,
    says(person, text, { calls = false, repliesTo } = {}) {
      const replied = repliesTo === "person" ? last.get((person + 1) % 3) : room.fromBot().at(-1);
      const said = some[person]!.sends({
        channel: room,
        text,
        mentionBot: calls,
        ...(repliesTo === undefined || replied === undefined
          ? {}
          : { replyTo: replied, pingsReplied: false }),
      });
      last.set(person, said);
      return {
        edits: (changed, how) =>
          some[person]!.edits(said, `${how?.calls === true ? `<@${discord.botId}> ` : ""}${changed}`),
      };
    },
    appSays: (text, calls) =>
      void discord.otherBotSends({
        channel: room,
        text: calls ? `<@${discord.botId}> ${text}` : text,
        name: "CI",
      }),
  };
}

async function onSlack({ slack }: Instances, thread: number): Promise<Room> {
  const some = people.map((name) => slack.person(`${name}${thread}`));
  const channel = slack.channel(`ops${thread}`, some);
  const root = some[0]!.sends({
    channel: channel.id,
    text: `${firstText} #t${thread}x0`,
    mentionBot: true,
  });
  return {
    hasReplies: false,
    mention: (person) => `<@${some[person]!.id}>`,
    says(person, markup, { calls = false } = {}) {
      const ts = some[person]!.sends({ channel: channel.id, thread: root, markup, mentionBot: calls });
      return {
        edits: (text, how) =>
          some[person]!.edits(ts, text, {
            channel: channel.id,
            isMarkup: true,
            mentionBot: how?.calls === true,
          }),
      };
    },
    appSays: (text, calls) =>
      void slack.otherBotSends(channel, calls ? `<@${slack.botUserId}> ${text}` : text, root, { name: "CI" }),
  };
}

/** What people said to each other, as the model gets it before a question. */
const saidToOthers = /\[Said in this thread\][^]*?\[End of what was said\]/g;
/** A line of the message that a question replies to. */
const quotedLine = /^> > .*$/gm;
const toLabels = (text: string): readonly string[] => text.match(/#t\d+x\d+/g) ?? [];
const toAsked = (text: string): readonly string[] =>
  toLabels(text.replaceAll(saidToOthers, "").replaceAll(quotedLine, ""));

/** The labels of what the model was asked, in whole answers. What people said to each other is not asked. */
function answeredLabels({ gateway }: Instances): string[] {
  const asked = gateway.turns
    .filter(({ isWhole }) => isWhole)
    .flatMap(({ messages: all }) => {
      const lastAnswer = all.findLastIndex((one) => one.startsWith("assistant: "));
      return all.slice(lastAnswer + 1).flatMap((one) => toAsked(one.replace(/^user: /, "")));
    });
  return [...new Set(asked)].toSorted();
}

/** The labels of people's messages that the model was given twice in one request. */
function doubledLabels({ gateway }: Instances): string[] {
  return gateway.turns.flatMap(({ messages: all }) => {
    const said = all.filter((one) => one.startsWith("user: "));
    const labels = said.flatMap((one) => [
      ...(one.match(saidToOthers) ?? []).flatMap(toLabels),
      ...toAsked(one.replace(/^user: /, "")),
    ]);
    return labels.filter((label, index) => labels.indexOf(label) !== index);
  });
}

describe.skipIf(!has("redis"))(
  "ten threads of sixty messages, three instances, one killed in the middle",
  () => {
    for (const platform of ["discord", "slack"] as const) {
      it(
        `the messages that are answered are those of the script: ${platform}`,
        { timeout: 400_000 },
        async () => {
          const world = await start(3, {
            platforms: [platform],
            durationMs: 60,
            leaseMs: 5000,
            limitsFactor: 60,
            settings: { TURNS_PERSON_MINUTE: "0" },
          });
          let written = 0;
          let isKilled = false;
          const random = createRandom(platform === "discord" ? 35 : 36);
          const expected: string[] = [];
          await Promise.all(
            Array.from({ length: threads }, async (_, thread) => {
              const first = `#t${thread}x0`;
              const room = await (platform === "discord" ? onDiscord : onSlack)(world, thread);
              const script = toScript(createRandom(random.between(1, 1e6)), thread, room.hasReplies);
              expected.push(
                first,
                ...[...script].filter(([, line]) => line.isAnswered).map(([label]) => label),
              );
              const own = createRandom(thread);
              await world.answered(first);
              for (const [label, line] of script) {
                written += 1;
                const isTheMiddle = !isKilled && written > (threads * messages) / 2 && line.isAnswered;
                if (isTheMiddle) world.gateway.setHanging(label);
                line.play(room);
                if (isTheMiddle) {
                  isKilled = true;
                  // On Slack nothing of it may be shown yet: first words wait for room under the limits.
                  const turn = await vi.waitUntil(
                    () =>
                      world.gateway.turns.find(
                        (one) => one.labels.includes(label) && one.endedAt === undefined,
                      ),
                    { timeout: 40_000, interval: 10 },
                  );
                  world.running[Number(turn.from)]!.kill();
                  world.gateway.setHanging(false);
                  await world.start();
                }
                // Mostly people wait for the answer, and sometimes several write at once.
                if (line.isAnswered && own.next() < 0.7) await world.answered(label);
              }
              await world.answered(`#t${thread}x${messages - 1}`);
            }),
          );
          expect(isKilled).toBe(true);
          expect(answeredLabels(world)).toEqual(expected.toSorted());
          expect(doubledLabels(world)).toEqual([]);
          // Every answer is whole, and none is shown twice.
          const shown = world.shown().map(({ text }) => withoutHint(text).trim());
          expect(shown.filter((text) => !/^re (?:#\w+ )+\.{6}$/.test(text))).toEqual([]);
          expect(new Set(shown).size).toBe(shown.length);
        },
      );
    }
  },
);
