import { LRUCache } from "lru-cache";
import type { Clock } from "../../core/clock.ts";
import type { Command } from "../../core/command.ts";
import { resolveInput } from "../../core/command-input.ts";
import { ParleyError } from "../../core/errors.ts";
import type { CommandCall, RawOption } from "../../core/events.ts";
import type { Receiver } from "../../core/platform.ts";
import { steadyClock } from "../../support/steady-clock.ts";
import { isDirectMessages, placesAround, toAuthorId, toConversationId, toReplyAddress } from "./address.ts";
import { inLookupTime } from "./lookup-time.ts";
import type { ModalMemory } from "./modal.ts";
import type { Origins } from "./origin.ts";
import type { Names } from "./people.ts";
import { toPlainText } from "./plain-text.ts";
import type { MessageReader } from "./read-message.ts";
import type { SlackMessageInfo } from "./message-info.ts";
import type { Identity, SlackApi } from "./web-api.ts";
import { currentLocale, translate } from "../../words/translate.ts";

type Subject = NonNullable<CommandCall["subject"]>;

/** One use of a slash command, message shortcut or modal. */
export interface CommandUse {
  readonly command: Command;
  /** Dedupe key of the call. */
  readonly key: string;
  /** Given by the person; unchecked. */
  readonly options: Readonly<Record<string, RawOption>>;
  readonly user: string;
  /** The workspace of the user. */
  readonly team: string | undefined;
  readonly memory: ModalMemory;
  /** The message that a shortcut was used on. Default: fetched by {@link ModalMemory.subject}. */
  readonly subject?: Subject;
  /** The acknowledgement itself says that the reply is in progress. */
  readonly isAnnounced: boolean;
}

/** What {@link createCommandCalls} needs. */
export interface CommandCallOptions {
  readonly api: Pick<SlackApi, "message">;
  readonly identity: Identity;
  readonly names: Names;
  readonly origins: Pick<Origins, "originOf">;
  readonly read: MessageReader;
  readonly receiver: Pick<Receiver, "knows">;
  readonly clock: Clock;
}

/** Converters from Slack's payloads to {@link CommandCall}s. */
export interface CommandCalls {
  /**
   * @throws ParleyError `invalid-option` for wrong input; `attachment-gone` when the subject was deleted
   */
  toCall(use: CommandUse): Promise<CommandCall>;
  /** The message that a command is used on; a form about it may follow. */
  toSubject(message: SlackMessageInfo, channel: string): Promise<Subject>;
  /** The text behind a slash command, as a person reads it. */
  toCommandText(text: string): Promise<string>;
}

const maxUsed = 100;

/** Builds command calls for one workspace. */
export function createCommandCalls(options: CommandCallOptions): CommandCalls {
  const { api, identity, names, origins, read, receiver, clock } = options;
  const { teamId } = identity;
  /** Messages that forms were opened on, by channel and `ts`. */
  const used = new LRUCache<string, SlackMessageInfo>({ max: maxUsed });

  async function toSubject(message: SlackMessageInfo): Promise<Subject> {
    const user = message.user ?? "";
    const author = { id: toAuthorId(teamId, user), name: await names.nameOf(user) };
    return { author, ...(await read(message)) };
  }

  async function fetchSubject({ channel, subject }: ModalMemory): Promise<Subject | undefined> {
    if (subject === undefined) return undefined;
    const lookup = api.message(channel, subject.thread, subject.ts).then((message) => ({ message }));
    const found = await inLookupTime(lookup);
    // Slack's form waits no longer. What it was opened with is known in the process that opened it.
    const message = found === undefined ? used.get(`${channel} ${subject.ts}`) : found.message;
    if (message !== undefined) return await toSubject(message);
    if (found === undefined)
      throw new ParleyError("platform-unreachable", "Slack conversations.replies: no response in time");
    throw new ParleyError("attachment-gone", "the message was deleted", {
      detail: { name: translate("platform.the-message") },
    });
  }

  return {
    toSubject(message, channel) {
      used.set(`${channel} ${message.ts}`, message);
      return toSubject(message);
    },
    async toCall(use) {
      const { command, memory, user, team } = use;
      const subject = use.subject ?? (await fetchSubject(memory));
      const withSubject = subject === undefined ? {} : { subject };
      const resolved = resolveInput(command, { options: use.options, ...withSubject });
      const root = memory.subject?.thread ?? memory.subject?.ts;
      const conversationId = toConversationId(teamId, memory.channel, root ?? use.key);
      const privateThread = resolved.isPrivate ? memory.subject?.thread : undefined;
      return {
        kind: "call",
        name: command.name,
        key: use.key,
        platform: "slack",
        conversationId,
        author: { id: toAuthorId(teamId, user), name: await names.nameOf(user), ...currentLocale() },
        sentAt: clock.now(),
        ...placesAround(teamId, memory.channel),
        origin: await origins.originOf({ user, channel: memory.channel, team }),
        address: toReplyAddress({
          key: use.key,
          channel: memory.channel,
          user,
          ...(root === undefined ? {} : { thread: root }),
          ...(privateThread === undefined ? {} : { privateThread }),
          ...(memory.responseUrl === undefined ? {} : { responseUrl: memory.responseUrl }),
          isPrivate: resolved.isPrivate,
          isAnnounced: use.isAnnounced,
          // Messages are searched from here on: too early is only slower.
          since: Math.min(clock.now(), steadyClock.earliest()),
        }),
        options: resolved.options,
        // A message command does not start a conversation in a thread where the bot takes no part.
        inConversation: root !== undefined && (await receiver.knows(conversationId)),
        isPrivate: resolved.isPrivate,
        ...(resolved.isPrivate || isDirectMessages(memory.channel) ? {} : { isCallerHidden: true }),
        ...withSubject,
      };
    },
    async toCommandText(text) {
      const plain = await toPlainText(text, { botUserId: "", nameOf: (id) => names.nameOf(id) });
      // Phones and Macs type curly quotes, which would end an option's value at its first space.
      return plain.replaceAll(/:[“”]([^“”"]*)[“”]/g, ':"$1"');
    },
  };
}
