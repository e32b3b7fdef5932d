import type { Attachment, IncomingMessage } from "../../core/events.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Receiver } from "../../core/platform.ts";
import { toConversationId, toMessageKey, toReplyAddress, toUnixMs } from "./address.ts";
import { isUnresolved, toAttachment } from "./files.ts";
import type { Names } from "./names.ts";
import { mentions, toPlainText } from "./plain-text.ts";
import { passRemoval, type RemovalEvent } from "./deletion-events.ts";
import type { Identity, SlackApi, SlackFileInfo, SlackMessageInfo } from "./web-api.ts";

/** A `message` or `app_mention` event, as far as it is looked at. */
export interface MessageEvent extends SlackMessageInfo, RemovalEvent {
  readonly channel: string;
  readonly channel_type?: string;
  readonly subtype?: string;
}

export interface IncomingOptions {
  readonly api: Pick<SlackApi, "message" | "fileInfo">;
  readonly identity: Identity;
  readonly names: Names;
  readonly receiver: Receiver;
  readonly log: Log;
}

export interface Incoming {
  /** Resolves when the event is durable or is none of the bot's business; rejects when it must come again. */
  onMessage(event: MessageEvent): Promise<void>;
  /** @param isRepeat whether Slack delivers it again: then it is taken even if its files cannot be looked up */
  onMention(event: MessageEvent, isRepeat: boolean): Promise<void>;
  /** People's words and files out of a message, for a command used on it. */
  read(message: SlackMessageInfo): Promise<{ text: string; attachments: readonly Attachment[] }>;
}

/** What a person says. All other subtypes are edits, joins and the like. */
const spoken = new Set([undefined, "file_share", "thread_broadcast"]);
const keptKeys = 500;

/** Decides which of Slack's events are the bot's to answer, and turns those into messages. */
export function createIncoming({ api, identity, names, receiver, log }: IncomingOptions): Incoming {
  const accepted = new Set<string>();
  const inOrder = createOrder();

  const keyOf = (event: MessageEvent) => toMessageKey(identity.teamId, event.channel, event.ts);
  const conversationOf = (event: MessageEvent) =>
    toConversationId(identity.teamId, event.channel, event.thread_ts ?? event.ts);

  function isByPerson(event: MessageEvent): boolean {
    return (
      event.bot_id === undefined &&
      event.user !== undefined &&
      event.user !== identity.userId &&
      spoken.has(event.subtype)
    );
  }

  async function isForBot(event: MessageEvent): Promise<boolean> {
    if (event.channel_type === "im" || mentions(event.text ?? "", identity.userId)) return true;
    return event.thread_ts !== undefined && (await receiver.knows(conversationOf(event)));
  }

  async function accept(event: MessageEvent): Promise<void> {
    const key = keyOf(event);
    const user = event.user ?? "";
    const [{ text, attachments }, name] = await Promise.all([read(event), names.nameOf(user)]);
    const message: IncomingMessage = {
      kind: "message",
      key,
      platform: "slack",
      conversationId: conversationOf(event),
      author: { id: `slack:${identity.teamId}:${user}`, name },
      sentAt: toUnixMs(event.ts),
      address: toReplyAddress({
        key,
        channel: event.channel,
        user,
        thread: event.thread_ts ?? event.ts,
        since: toUnixMs(event.ts),
      }),
      text,
      attachments,
    };
    await receiver.receive(message);
    accepted.add(key);
    const oldest = accepted.values().next();
    if (accepted.size > keptKeys && oldest.done !== true) accepted.delete(oldest.value);
  }

  async function read(message: SlackMessageInfo): Promise<{ text: string; attachments: Attachment[] }> {
    const [text, files] = await Promise.all([
      toPlainText(message.text ?? "", { botUserId: identity.userId, nameOf: (id) => names.nameOf(id) }),
      Promise.all((message.files ?? []).map(resolveFile)),
    ]);
    return { text, attachments: files.map(toAttachment) };
  }

  async function resolveFile(file: SlackFileInfo): Promise<SlackFileInfo> {
    if (!isUnresolved(file)) return file;
    try {
      return await api.fileInfo(file.id);
    } catch (error) {
      // It is asked again when the file is downloaded; then the person is told.
      log.warn({ file: file.id, err: error }, "a file could not be looked up");
      return file;
    }
  }

  /** `app_mention` may come without the message's files, and may be the only event there is. */
  async function withFiles(event: MessageEvent, isRepeat: boolean): Promise<MessageEvent> {
    if (event.files !== undefined || accepted.has(keyOf(event))) return event;
    try {
      const whole = await api.message(event.channel, event.thread_ts, event.ts);
      return whole?.files === undefined ? event : { ...event, files: whole.files };
    } catch (error) {
      // Its `message` twin brings the files; only where that never comes, the next delivery is taken without.
      if (!isRepeat) throw error;
      log.warn({ key: keyOf(event), err: error }, "a mention is answered without looking for its files");
      return event;
    }
  }

  return {
    onMessage: (event) =>
      inOrder(event.channel, async () => {
        if (await passRemoval(event, identity.teamId, receiver)) return;
        if (isByPerson(event) && (await isForBot(event))) await accept(event);
      }),
    async onMention(event, isRepeat) {
      if (!isByPerson(event)) return;
      // The look-up is not waited for by others: the `message` twin may well be here first.
      const whole = await withFiles(event, isRepeat);
      await inOrder(event.channel, () => accept(whole));
    },
    read,
  };
}

/** Runs work of the same name one after the other, so that names and files to look up do not swap messages. */
function createOrder(): (name: string, work: () => Promise<void>) => Promise<void> {
  const tails = new Map<string, Promise<unknown>>();
  return async (name, work) => {
    const run = (tails.get(name) ?? Promise.resolve()).then(work, work);
    const settled = run.then(
      () => undefined,
      () => undefined,
    );
    tails.set(name, settled);
    try {
      await run;
    } finally {
      if (tails.get(name) === settled) tails.delete(name);
    }
  };
}
