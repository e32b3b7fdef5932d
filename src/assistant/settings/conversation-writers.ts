import type { Access, Actor } from "../../core/access.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Author } from "../../core/events.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { SettingName } from "../../core/layered-settings.ts";
import type { Platform } from "../../core/platform.ts";
import { toLabel } from "../../core/quoting.ts";
import { settingLabel } from "../../core/setting-values.ts";
import type { Conversations, ConversationSettings, StoredMessage } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import { translate } from "../../words/translate.ts";

/** Who acts, and in which conversation. */
type Scene = Actor & { readonly conversationId?: string | undefined };

interface WriterOptions {
  readonly conversations: Pick<Conversations, "existing" | "recent" | "settings">;
  readonly inbox: Pick<Inbox, "openIn">;
}

/**
 * The last messages of a conversation, oldest first, or `undefined` where nothing of it is known: then it
 * takes two reads, since that is so of every thread in which nobody asked the bot.
 */
export async function lastMessagesIn(
  { conversations, inbox }: WriterOptions,
  conversationId: string,
  {
    settings,
    ...bounds
  }: Parameters<Conversations["recent"]>[1] & { readonly settings: ConversationSettings },
): Promise<readonly StoredMessage[] | undefined> {
  if (Object.keys(settings).length > 0 || (await conversations.existing([conversationId])).length > 0)
    return await conversations.recent(conversationId, bounds);
  // Its first message is accepted, but its turn has stored nothing yet.
  const open = (await inbox.openIn(conversationId)).filter(({ event }) => event.inRoom !== true);
  if (open.length === 0) return undefined;
  return open.map(({ event }) => ({
    id: event.key,
    role: "user",
    turnKey: event.key,
    author: event.author,
    parts: [],
    createdAt: event.sentAt,
    estimatedTokens: 0,
  }));
}

/** The people who wrote messages, once for each. */
export const writersOf = (messages: readonly StoredMessage[]): readonly Author[] =>
  messages.flatMap(({ author, room }) => (author === undefined || room?.isApp === true ? [] : [author]));

/** In so many of the last messages it is looked for the words of who changes the settings. */
const maxLooked = 1000;

interface ConversationDeskOptions extends WriterOptions {
  readonly access: Pick<Access, "isAdmin">;
  readonly platforms: ReadonlyMap<string, Pick<Platform, "openReply" | "channelAddress">>;
  readonly log: Log;
  /** Returns Unix milliseconds. */
  readonly now: () => number;
}

/**
 * The settings of a conversation are for those who talk there: nobody else changes what the model is told
 * behind their backs, and where there are several, a line says who has changed what.
 */
export function createConversationDesk(options: ConversationDeskOptions) {
  const { access, platforms, log, now } = options;

  async function othersIn({ conversationId = "", author }: Scene): Promise<"none" | "beside" | "alone"> {
    const settings = await options.conversations.settings(conversationId);
    const found = await lastMessagesIn(options, conversationId, { settings, maxMessages: maxLooked });
    const writers = writersOf(found ?? []);
    if (writers.every(({ id }) => id === author.id)) return "none";
    return writers.some(({ id }) => id === author.id) ? "beside" : "alone";
  }

  return {
    /** @throws ParleyError `not-permitted` for who has said nothing there and manages nothing */
    async expectMayChange(scene: Scene): Promise<void> {
      if (scene.origin?.isManager === true || access.isAdmin(scene)) return;
      if ((await othersIn(scene)) !== "alone") return;
      throw new ParleyError("not-permitted", "a visitor does not change a conversation's settings", {
        detail: { problem: translate("settings.not-talking") },
      });
    },
    /** Says in the conversation who has changed what, where there are others. It never rejects. */
    async tell(scene: Scene, names: readonly SettingName[]): Promise<void> {
      const { platform: id, conversationId = "", author } = scene;
      const platform = platforms.get(id);
      const text = translate("settings.told", {
        name: toLabel(author.name),
        settings: names.map((name) => settingLabel(name)).join(", "),
      });
      try {
        if ((await othersIn(scene)) === "none") return;
        const address = platform?.channelAddress?.(conversationId, `s${now().toString(36)}`);
        if (platform === undefined || address === undefined) return;
        const reply = platform.openReply(address, {
          isCalm: true,
          isEndOnly: true,
          saveAddress: () => Promise.resolve(),
        });
        await reply.show();
        reply.write({ text, isWhole: true });
        await reply.finish();
      } catch (error) {
        log.warn({ err: error }, "a conversation was not told that its settings were changed");
      }
    },
  };
}
