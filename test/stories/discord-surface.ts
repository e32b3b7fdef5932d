import { PermissionFlagsBits } from "discord.js";
import { expect, vi } from "vitest";
import { startStory, type Story } from "../e2e/discord/discord-story.ts";
import type { Person, Use } from "../simulators/discord/people.ts";
import type { ChannelHandle, DiscordSimulator } from "../simulators/discord/simulator.ts";
import type { SeenMessage } from "../simulators/discord/transcript.ts";
import { until } from "../simulators/discord/until.ts";
import type { SimMessage } from "../simulators/discord/world.ts";
import { haste } from "./surface.ts";
import type { Place, Shown, Somebody, Surface, SurfaceOptions, Talk, Town } from "./surface.ts";

/** A running Parley on Discord's simulator. */
export interface DiscordSurface extends Surface {
  readonly story: Story;
  readonly discord: DiscordSimulator;
}

/** Starts a {@link DiscordSurface}. */
export async function startDiscordSurface(options: SurfaceOptions = {}): Promise<DiscordSurface> {
  const { settings, models } = options;
  let simulator: DiscordSimulator | undefined;
  let started: Story | undefined;
  const discordOf = (): DiscordSimulator => simulator!;
  const storyOf = (): Story => started!;

  /** The messages that people have written, by id. */
  const messages = new Map<string, SimMessage>();
  const messageOf = ({ id }: { readonly id: string }): SimMessage => messages.get(id)!;
  const handleOf = ({ id }: { readonly id: string }): ChannelHandle => discordOf().handle(id);

  function toPlace({ id }: { readonly id: string }): Place {
    const place: Place = {
      id,
      shown: () =>
        handleOf(place)
          .fromBot()
          .map((message) => toShown(message, place)),
    };
    return place;
  }

  function toShown(message: SeenMessage, place: Place): Shown {
    const { world } = discordOf();
    const { ephemeralTo, components } =
      world.channels.get(place.id)?.messages.find(({ id }) => id === message.id) ?? {};
    const lines = message.text.split("\n");
    const isSmall = (line: string) => line.startsWith("-# ");
    const buttons = message.buttons.filter((button) => !isRating(button)).map(({ label }) => label);
    return {
      id: message.id,
      place,
      text: lines.filter((line) => !isSmall(line)).join("\n"),
      smallPrint: lines
        .filter(isSmall)
        .map((line) => line.slice(3))
        .join("\n"),
      buttons: [...buttons, ...choicesOf(components ?? [])],
      canBeRated: message.buttons.filter(isRating).length === 2,
      onlyFor: ephemeralTo === undefined ? undefined : (world.users.get(ephemeralTo)?.globalName ?? "?"),
      files: message.files,
      pings: message.pings.length > 0,
      previews: message.previews.length > 0,
      edits: message.edits,
    };
  }

  async function threadOf(channel: Place, id: string): Promise<Place> {
    const { guildId, parentId } = discordOf().world.channels.get(channel.id)!;
    if (guildId === undefined || parentId !== undefined) return channel;
    const thread = await until(() =>
      handleOf(channel)
        .threads()
        .find((one) => one.id === id),
    );
    return toPlace(thread);
  }

  function toSomebody(person: Person): Somebody {
    let last: Use | undefined;
    const somebody: Somebody = {
      id: person.id,
      name: person.name,
      writes(place, text, { mention = false, files = [] } = {}) {
        const sent = person.sends({
          channel: place,
          text,
          mentionBot: mention,
          files: files.map((file) =>
            file.name.startsWith("voice-message") ? { ...file, voiceSecs: 2 } : file,
          ),
        });
        messages.set(sent.id, sent);
        return { id: sent.id, place };
      },
      async asks(place, text, files = []): Promise<Talk> {
        const before = place.shown().length;
        const isChannel = discordOf().world.channels.get(place.id)?.guildId !== undefined;
        const isThread = discordOf().world.channels.get(place.id)?.parentId !== undefined;
        const said = somebody.writes(place, text, { mention: isChannel && !isThread, files });
        const thread = await threadOf(place, said.id);
        const shown = await surface.settled(thread, thread.id === place.id ? before + 1 : 1);
        return { said, place: thread, answer: shown.at(-1)! };
      },
      edits(said, text, { adds = false } = {}) {
        const message = messageOf(said);
        const mention = `<@${discordOf().botId}> `;
        person.edits(message, `${adds || message.content.startsWith(mention) ? mention : ""}${text}`);
      },
      deletes: (said) => person.deletes(messageOf(said)),
      getsPreview: (said) => person.getsPreview(messageOf(said)),
      async uses(command, values, place, attachments = {}) {
        last = person.usesCommand(command, values, { channel: place, attachments });
      },
      async usesOn(label, said) {
        last = person.usesMessageCommand(label, messageOf(said), { channel: said.place });
      },
      async presses(label, shown) {
        const isButton = handleOf(shown.place)
          .fromBot()
          .find(({ id }) => id === shown.id)
          ?.buttons.some((button) => button.label === label);
        last =
          isButton === false
            ? person.selects(label, shown, { channel: shown.place })
            : person.clicks(label, shown, { channel: shown.place });
      },
      async rates(rating, shown) {
        const button = handleOf(shown.place)
          .fromBot()
          .find(({ id }) => id === shown.id)
          ?.buttons.find(({ customId }) => customId.startsWith(`act:${rating}:`));
        person.clicks(button!.label, shown, { channel: shown.place });
      },
      async form() {
        const modal = await until(() => last?.interaction.modal);
        return modal.inputs.map(({ label, required, choices }) => ({
          label,
          isRequired: required,
          choices: choices.map((choice) => choice.label),
        }));
      },
      async submits(values) {
        const opened = last!;
        await until(() => opened.interaction.modal);
        last = person.submitsModal(opened, values);
      },
    };
    return somebody;
  }

  const town: Town = {
    person(name, { locale, isManager = false } = {}) {
      const person = discordOf().person(name, locale === undefined ? {} : { locale });
      if (isManager) discordOf().give(person, discordOf().role("managers", PermissionFlagsBits.ManageGuild));
      return toSomebody(person);
    },
    channel: (name) => toPlace(discordOf().channel(name)),
    userTerm: ({ id }) => `discord:user:${id}`,
    channelTerm: ({ id }) => `discord:channel:${id}`,
  };

  const story = await startStory(
    (made) => {
      simulator = made;
      return (typeof settings === "function" ? settings(town) : settings) ?? {};
    },
    {},
    models,
    haste,
  );
  started = story;
  const { discord } = story;
  const explain = (place: Place) => () => ({ shown: place.shown(), lines: storyOf().lines.slice(-20) });

  const surface: DiscordSurface = {
    ...town,
    name: "Discord",
    model: story,
    story,
    discord,
    direct: (person) => toPlace(discord.directMessages(person)),
    thread(channel, person, text) {
      const thread = toPlace(discord.thread(channel, person));
      person.writes(thread, text);
      return thread;
    },
    privately: (person, place) => [
      ...place.shown().filter(({ onlyFor }) => onlyFor === person.name),
      ...surface.direct(person).shown(),
    ],
    below: ({ id, place }) => (discord.world.channels.has(id) ? toPlace({ id }) : place),
    threadOf: ({ id, place }) => threadOf(place, id),
    opened: async (channel) => toPlace(await until(() => handleOf(channel).threads().at(-1))),
    appWrites(place, name, title) {
      const embeds = (words: string) => [{ type: "rich", title: words } as const];
      const message = discord.otherBotSends({
        channel: place,
        text: "",
        name,
        extras: { embeds: embeds(title) },
      });
      return (words) => discord.otherBotEdits(message, { embeds: embeds(words) });
    },
    removes: (place, id) => handleOf(place).purge(id),
    removesChannel: (channel) => handleOf(channel).remove(),
    redelivers: ({ id, place }) => discord.redeliver({ id, channelId: place.id }),
    shows: (place, is) =>
      until(
        () =>
          place.shown().find((shown) => (typeof is === "string" ? toWords(shown).includes(is) : is(shown))),
        { timeoutMs: 20_000, explain: explain(place) },
      ),
    async settled(place, count = 1) {
      await story.settled(handleOf(place), count);
      return place.shown();
    },
    idle: async () => void (await until(() => story.isIdle(), { timeoutMs: 20_000 })),
    isKept: (text) => story.isKept(text),
    gone: (text) =>
      vi.waitFor(async () => expect(await story.isKept(text), text).toBe(false), { interval: 20 }),
    everSent: () => JSON.stringify(discord.requests.map((request) => request.json)),
    restart: (during) => story.restart(during),
    async reset() {
      await surface.idle();
      story.reset();
    },
    close: () => story.close(),
  };
  return surface;
}

function isRating({ customId }: { readonly customId: string }): boolean {
  return /^act:(?:good|bad):/.test(customId);
}

/** All that can be read in a message. */
function toWords({ text, smallPrint }: Shown): string {
  return `${text}\n${smallPrint}`;
}

interface Row {
  readonly components?: readonly {
    readonly type?: number;
    readonly options?: readonly { label: string }[];
  }[];
}

function choicesOf(components: readonly unknown[]): string[] {
  return (components as readonly Row[]).flatMap((row) =>
    (row.components ?? []).flatMap(({ options = [] }) => options.map(({ label }) => label)),
  );
}
