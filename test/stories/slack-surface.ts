import { expect, vi } from "vitest";
import { startSlackStory, type SlackMode, type SlackStory } from "../e2e/slack/slack-story.ts";
import type { SeenRequest } from "../simulators/gateway/scripted-gateway.ts";
import type { Person } from "../simulators/slack/person.ts";
import type { SimulatedChannel, SlackSimulator } from "../simulators/slack/simulator.ts";
import type { SeenMessage } from "../simulators/slack/transcript.ts";
import { createModelScript } from "./scripted-model.ts";
import { haste } from "./surface.ts";
import type { Place, SentFile, Shown, Somebody, Surface, SurfaceOptions, Talk, Town } from "./surface.ts";

/** A running Parley on Slack's simulator. */
export interface SlackSurface extends Surface {
  readonly story: SlackStory;
  readonly slack: SlackSimulator;
}

interface SlackPlace extends Place {
  readonly channel: string;
  readonly thread: string | undefined;
}

/** Whether a text holds mentions of people as Slack's markup has them. */
const hasMention = (text: string): boolean => /<@[UW][A-Z0-9]+>/.test(text);

/** Starts a {@link SlackSurface}. */
export async function startSlackSurface(
  mode: SlackMode,
  { settings, models }: SurfaceOptions = {},
): Promise<SlackSurface> {
  let simulator: SlackSimulator | undefined;
  const slackOf = (): SlackSimulator => simulator!;
  const channels = new Map<string, SimulatedChannel>();
  const people = new Map<string, Person>();

  function toPlace(channel: string, thread?: string): SlackPlace {
    const place: SlackPlace = {
      id: thread === undefined ? channel : `${channel}:${thread}`,
      channel,
      thread,
      shown: () => seenIn(place).map((message) => toShown(message, place)),
    };
    return place;
  }
  const seenIn = ({ channel, thread }: SlackPlace): SeenMessage[] =>
    slackOf()
      .transcriptOf(channel)
      .filter((message) => message.author === "Parley" && message.thread === thread)
      // For its caller, Slack keeps the notice that a command is worked on beside the answer. It is left out.
      .filter(({ onlyFor, text }) => onlyFor === undefined || !text.startsWith("Working on it"));
  /** Returns what the bot said in all threads of the direct messages. */
  const saidDirectly = ({ id }: Somebody): Shown[] => {
    const { directMessages } = people.get(id)!;
    const messages = slackOf().transcriptOf(directMessages);
    return messages
      .filter(({ author }) => author === "Parley")
      .map((message) => toShown(message, toPlace(directMessages, message.thread)));
  };
  /** Only this module makes places, so the cast is right. */
  const whereOf = (place: Place): SlackPlace => place as SlackPlace;
  const isDirect = ({ channel }: SlackPlace): boolean => !channels.has(channel);

  function toShown(message: SeenMessage, place: Place): Shown {
    return {
      id: message.ts,
      place,
      text: message.smallPrint === "" ? message.text : withoutEnd(message.text, message.smallPrint),
      smallPrint: message.smallPrint,
      buttons: [...message.buttons, ...message.choices].map(({ label }) => label),
      canBeRated: message.feedback !== undefined,
      onlyFor: message.onlyFor,
      files: message.files,
      pings: message.pings.length > 0,
      previews: message.previewsLinks,
      edits: message.edits,
    };
  }

  const toFile = ({ name, bytes }: SentFile) => ({
    name,
    bytes,
    mediaType: mediaTypes[name.split(".").at(-1) ?? ""] ?? "application/octet-stream",
  });

  function toSomebody(person: Person): Somebody {
    const mentions = new Set<string>();
    const somebody: Somebody = {
      id: person.id,
      name: person.name,
      writes(place, text, { mention = false, files = [] } = {}) {
        const { channel, thread } = whereOf(place);
        const ts = person.sends({
          channel,
          ...(hasMention(text) ? { markup: text } : { text }),
          mentionBot: mention,
          files: files.map(toFile),
          ...(thread === undefined ? {} : { thread }),
        });
        if (mention) mentions.add(ts);
        return { id: ts, place };
      },
      async asks(place, text, files = []): Promise<Talk> {
        const where = whereOf(place);
        const before = place.shown().length;
        const isNew = where.thread === undefined;
        const said = somebody.writes(place, text, { mention: isNew && !isDirect(where), files });
        const thread = isNew ? toPlace(where.channel, said.id) : where;
        const shown = await surface.settled(thread, isNew ? 1 : before + 1);
        return { said, place: thread, answer: shown.at(-1)! };
      },
      edits({ id, place }, text, { adds = false } = {}) {
        person.edits(id, text, {
          channel: whereOf(place).channel,
          mentionBot: adds || mentions.has(id),
          isMarkup: hasMention(text),
        });
      },
      deletes: ({ id, place }) => removes(place, id),
      getsPreview: ({ id, place }) => person.getsPreview(id, { channel: whereOf(place).channel }),
      async uses(command, values, place, files = {}) {
        const { channel, thread } = whereOf(place);
        const where = { channel };
        const text = Object.entries(values)
          .map(([name, value]) => (positional.has(name) ? value : `${name}:${toWritten(value)}`))
          .join(" ");
        if (thread !== undefined)
          // Slack has no slash commands in threads.
          return void somebody.writes(place, `/${command} ${text}`, { mention: true });
        if (Object.keys(files).length === 0)
          return void (await person.usesCommand(`/${command}`, text, where));
        // Only the form takes files.
        await person.usesCommand(`/${command}`, "", where);
        await slackOf().waitFor("the form", () => person.modal());
        const filled = Object.entries(values).map(([name, value]) => [toLabel(name), value] as const);
        const attached = Object.entries(files).map(([name, file]) => [toLabel(name), toFile(file)] as const);
        await person.submitsModal(Object.fromEntries(filled), Object.fromEntries(attached));
      },
      async usesOn(label, { id, place }) {
        await person.usesShortcut(label, id, { channel: whereOf(place).channel });
      },
      async presses(label, { id, place }) {
        const where = whereOf(place);
        const message = slackOf()
          .transcriptOf(where.channel)
          .find(({ ts }) => ts === id)!;
        const isChoice = message.choices.some((choice) => choice.label === label);
        await (isChoice
          ? person.chooses(message, label, { channel: where.channel })
          : person.clicks(message, label, { channel: where.channel }));
      },
      async rates(rating, { id, place }) {
        const { channel } = whereOf(place);
        const message = slackOf()
          .transcriptOf(channel)
          .find(({ ts }) => ts === id)!;
        await person.rates(message, rating, { channel });
      },
      async form() {
        const modal = await slackOf().waitFor("the form", () => person.modal());
        return modal.inputs.map(({ label, isOptional, choices }) => ({
          label,
          isRequired: !isOptional,
          choices: choices ?? [],
        }));
      },
      async submits(values) {
        await slackOf().waitFor("the form", () => person.modal());
        await person.submitsModal(values);
      },
    };
    people.set(person.id, person);
    return somebody;
  }

  function removes(place: Place, id: string): void {
    const { channel } = whereOf(place);
    const handle =
      channels.get(channel) ??
      [...people.values()]
        .filter((person) => person.directMessages === channel)
        .map((person) => slackOf().directMessages(person))[0];
    handle?.deleteMessage(id);
  }

  const town: Town = {
    person: (name, { locale, isManager = false } = {}) =>
      toSomebody(
        slackOf().person(name, {
          isAdmin: isManager,
          ...(locale === undefined ? {} : { locale }),
        }),
      ),
    channel(name, members) {
      const made = slackOf().channel(
        name,
        members.map(({ id }) => people.get(id)!),
      );
      channels.set(made.id, made);
      return toPlace(made.id);
    },
    userTerm: ({ id }) => `slack:user:${id}`,
    channelTerm: (place) => `slack:channel:${whereOf(place).channel}`,
  };

  const requests = (): readonly SeenRequest[] => story.gateway.requests;
  const model = await createModelScript(requests, models);
  const story: SlackStory = await startSlackStory({
    mode,
    respond: (request) => model.respond(request),
    haste,
    settings(made) {
      simulator = made;
      const own = typeof settings === "function" ? settings(town) : settings;
      return {
        CHAT_MODEL: "story/chat",
        IMAGE_MODEL: "story/draw",
        TRANSCRIPTION_MODEL: "story/whisper",
        ...own,
      };
    },
  });
  const { slack } = story;
  const isIdle = (): boolean => story.parley.assistant.pending() === 0;

  const surface: SlackSurface = {
    ...town,
    name: mode === "http" ? "Slack by HTTP" : "Slack by socket",
    model,
    story,
    slack,
    direct: ({ id }) => toPlace(people.get(id)!.directMessages),
    thread(place, person, text) {
      const { id } = person.writes(place, text);
      return toPlace(whereOf(place).channel, id);
    },
    privately: (person, place) => [
      ...place.shown().filter(({ onlyFor }) => onlyFor === person.name),
      ...saidDirectly(person),
    ],
    below: ({ id, place }) => toPlace(whereOf(place).channel, id),
    threadOf: async ({ id, place }) => toPlace(whereOf(place).channel, id),
    async opened(channel) {
      const shown = await surface.shows(channel, ({ onlyFor }) => onlyFor === undefined);
      return toPlace(whereOf(channel).channel, shown.id);
    },
    appWrites(place, name, title) {
      const { channel, thread } = whereOf(place);
      const handle = channels.get(channel)!;
      const blocks = (words: string) => [{ type: "header", text: { type: "plain_text", text: words } }];
      const ts = slack.otherBotSends(handle, "alert", thread, { name, blocks: blocks(title) });
      return (words) => slack.otherBotEdits(handle, ts, "alert", { blocks: blocks(words) });
    },
    removes,
    removesChannel: (place) => channels.get(whereOf(place).channel)!.delete(),
    redelivers: () => slack.redeliver("message"),
    shows: (place, is) =>
      slack.waitFor(
        typeof is === "string" ? is : "what is to be shown",
        () =>
          place
            .shown()
            .find((shown) =>
              typeof is === "string" ? `${shown.text}\n${shown.smallPrint}`.includes(is) : is(shown),
            ),
        20_000,
      ),
    settled: (place, count = 1) =>
      slack.waitFor(
        `${count} messages in ${place.id}`,
        () => {
          const shown = place.shown();
          const isOver = shown.every(({ smallPrint }) => !smallPrint.endsWith("…"));
          return shown.length >= count && isOver && isIdle() && shown;
        },
        20_000,
      ),
    idle: async () => void (await slack.waitFor("the end of all turns", isIdle, 20_000)),
    isKept: (text) => story.isKept(text),
    gone: (text) =>
      vi.waitFor(async () => expect(await story.isKept(text), text).toBe(false), { interval: 20 }),
    everSent: () => JSON.stringify(slack.calls),
    restart: (during) => story.restart(during),
    async reset() {
      await surface.idle();
      expect(slack.badAcks).toEqual([]);
      expect(slack.lost).toEqual([]);
      model.reset();
    },
    async close() {
      const { badAcks } = slack;
      const secrets = [slack.botToken, slack.appToken, slack.signingSecret, "key-for-the-gateway"];
      const logged = story.logged.join("\n");
      await story.close();
      expect(badAcks).toEqual([]);
      for (const secret of secrets) expect(logged).not.toContain(secret);
    },
  };
  return surface;
}

/** The values of these options are written without their names. */
const positional = new Set(["prompt", "message", "search", "command", "what"]);

const mediaTypes: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  m4a: "audio/mp4",
  ogg: "audio/ogg",
  wav: "audio/wav",
  mp4: "video/mp4",
  txt: "text/plain",
};

function toWritten(value: string | number | boolean): string {
  return typeof value === "boolean" ? (value ? "yes" : "no") : String(value);
}

function toLabel(name: string): string {
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}

/** The text of a message includes its small print, which this removes. */
function withoutEnd(text: string, smallPrint: string): string {
  return text.endsWith(smallPrint) ? text.slice(0, -smallPrint.length).trimEnd() : text;
}
