import {
  InteractionType,
  type APIInteraction,
  type APIInteractionDataResolved,
  type APIUser,
} from "discord.js";
import type { Clock } from "../../../core/clock.ts";
import { inTime } from "../../../support/clock.ts";
import { toPlainText, type Names } from "../intake/incoming.ts";
import type { DiscordApi } from "../transport/api.ts";

/** So many people in one command or form are looked up, and for so long. */
const maxPeople = 5;
const lookupMs = 800;

const person = /<@!?(\d+)>/g;
const anyMark = /<[@#/:a-zA-Z]/;

/** What somebody typed has this name in the data of commands and forms, beside ids and choices. */
interface Typed {
  value: string;
}

/**
 * Returns a function that puts the names of people, roles and channels into what somebody typed into a
 * command or a form, in place of ids. They are read as in messages, but a mention of the bot is a word
 * there.
 */
export function createTypedTexts(options: {
  readonly api: Pick<DiscordApi, "getMember">;
  readonly names: (guildId: string | undefined) => Names;
  readonly clock: Clock;
}): (interaction: APIInteraction) => Promise<void> {
  const { api, clock } = options;

  async function findPerson(id: string, guildId: string | undefined) {
    if (guildId === undefined) return undefined;
    const looking = api.getMember(guildId, id).catch(() => undefined);
    const member = await inTime(looking, lookupMs, { clock });
    return member === undefined ? undefined : { ...member.user, member };
  }

  return async (interaction) => {
    if (
      interaction.type !== InteractionType.ApplicationCommand &&
      interaction.type !== InteractionType.ModalSubmit
    )
      return;
    const { data, guild_id: guildId, member, user = member?.user } = interaction;
    const texts = typedIn("options" in data ? data.options : "components" in data ? data.components : []);
    if (texts.length === 0) return;
    const names = options.names(guildId);
    const resolved =
      "resolved" in data ? (data.resolved as APIInteractionDataResolved | undefined) : undefined;
    const { users = {}, members = {} } = resolved ?? {};
    const known = new Map<string, Pick<APIUser, "id" | "username">>();
    for (const one of Object.values(users))
      known.set(one.id, Object.assign({ ...one }, { member: members[one.id] }));
    if (user !== undefined) known.set(user.id, Object.assign({ ...user }, { member }));
    known.set(names.botId, { id: names.botId, username: names.botName });
    const mentioned = texts.flatMap(({ value }) => [...value.matchAll(person)].map(([, id = ""]) => id));
    const unknown = [...new Set(mentioned)].filter((id) => !known.has(id)).slice(0, maxPeople);
    for (const one of await Promise.all(unknown.map((id) => findPerson(id, guildId))))
      if (one !== undefined) known.set(one.id, one);
    const mentions = [...known.values()] as APIUser[];
    for (const typed of texts)
      typed.value = toPlainText(
        { content: typed.value, mentions },
        { ...names, botId: "", botRoleId: undefined },
      );
  };
}

/** Returns the places of texts with marks, at any depth. */
function typedIn(node: unknown): Typed[] {
  if (typeof node !== "object" || node === null) return [];
  const { value } = node as Partial<Record<"value", unknown>>;
  const own = typeof value === "string" && anyMark.test(value) ? [node as Typed] : [];
  return [...own, ...Object.values(node).flatMap(typedIn)];
}
