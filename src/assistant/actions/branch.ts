import { toAsked } from "../../core/command-input.ts";
import type { Actor, Asker } from "../../core/access.ts";
import type { BranchOutcome, BranchRequest } from "../../core/receiver.ts";
import type { IncomingMessage, PictureRef } from "../../core/events.ts";
import type { Inbox } from "../../core/inbox.ts";
import {
  type ConversationQueue,
  type Conversations,
  type ConversationSettings,
  type MessagePart,
  type StoredMessage,
  charsOf,
} from "../../core/storage.ts";
import { ParleyError } from "../../core/errors.ts";
import { inLanguage, translate } from "../../words/translate.ts";
import { toLanguage } from "../../words/languages.ts";
import { toTitle } from "../../support/text.ts";
import { messageIds } from "../../core/message-ids.ts";
import { textOf, withoutRetriedAttempts } from "../turn/stored-messages.ts";
import { createRecent } from "../../support/recent.ts";

interface BranchOptions {
  readonly conversations: Conversations;
  readonly inbox: Pick<Inbox, "adopt" | "read">;
  readonly queue: Pick<ConversationQueue, "run">;
  /** @throws ParleyError `access-denied` */
  readonly expectAllowed: (asker: Asker) => Promise<void>;
  /** Returns Unix ms. */
  readonly now: () => number;
  /** The limit for texts and files that one person copies in an hour. Default 250 MB. */
  readonly maxBytesAnHour?: number;
}

const hourMs = 3_600_000;
/** How many people's copies are counted at once. */
const maxCounted = 10_000;

/** The highest number of copied messages, each of which is a write. */
const maxMessages = 2000;
/** The limit for all their texts together. */
const maxChars = 32_000_000;

/**
 * Copies a conversation up to one of its messages into a new one, with files and settings. No model is asked,
 * so bytes are counted instead of money.
 * @throws ParleyError `access-denied`, `busy` above the hourly limit, and `store-unavailable`, after which a
 * repetition continues the copy
 */
export function createBranch(options: BranchOptions) {
  const { conversations, inbox, queue, expectAllowed, now, maxBytesAnHour = 250_000_000 } = options;
  /** The key is the `Author.id`. */
  const copies = createRecent<{ readonly since: number; readonly bytes: number }>(maxCounted);

  /** Counts the bytes before they are copied. @throws ParleyError `busy` */
  function count(bytes: number, person: string): void {
    const known = copies.get(person);
    const current = known === undefined || now() - known.since >= hourMs ? { since: now(), bytes: 0 } : known;
    const counted = { ...current, bytes: current.bytes + bytes };
    if (counted.bytes > maxBytesAnHour) {
      throw new ParleyError("busy", "a person has copied too much within an hour", {
        retryAfterMs: current.since + hourMs - now(),
      });
    }
    copies.set(person, counted);
  }

  return async function branch(request: BranchRequest, by: Actor): Promise<BranchOutcome> {
    await expectAllowed(by);
    const { from, to } = request;
    const isOwn = [from, to].every((id) => id.startsWith(`${by.platform}:`));
    if (!isOwn || from === to) return "gone";
    return await queue.run(to, () => inLanguage(toLanguage(by.author.locale), () => copyInto(request, by)));
  };

  async function copyInto(request: BranchRequest, by: Actor): Promise<BranchOutcome> {
    const { from, to } = request;
    // One message more shows whether there are more.
    const all = await conversations.recent(from, { maxMessages: maxMessages + 1, maxChars });
    const stored = withoutRetriedAttempts(all);
    const copied = cutAt(stored, request.until);
    const isTooLong = all.length > maxMessages || charsOf(all) > maxChars;
    if (copied === undefined) return isTooLong ? "too-long" : "gone";
    if (isTooLong) return "too-long";
    const ids = new Map(copied.map((message) => [message.id, newIdOf(message, request)]));
    const [first] = copied;
    const isNew = (await conversations.existing([to])).length === 0;
    // An existing target must be an earlier copy of this conversation.
    if (!isNew && (first === undefined || !(await hasMessage(to, ids.get(first.id) ?? "")))) return "gone";
    if (isNew) count(bytesOf(copied), by.author.id);
    for (const message of copied) {
      const parts = await copyParts(message.parts, request);
      await conversations.append(to, toCopy(message, { parts, ids, request }));
    }
    await conversations.saveSettings(to, toSettings(await conversations.settings(from), first, ids));
    await makeKnown(copied, request, by);
    return "branched";
  }

  async function hasMessage(conversationId: string, id: string): Promise<boolean> {
    return (await conversations.find(conversationId, id)) !== undefined;
  }

  async function copyParts(
    parts: readonly MessagePart[],
    { from, to }: BranchRequest,
  ): Promise<readonly MessagePart[]> {
    const copies: MessagePart[] = [];
    for (const part of parts) {
      if (!("blob" in part) || part.blob === undefined) {
        copies.push(part);
        continue;
      }
      const blob = await conversations.getBlob(from, part.blob.hash);
      if (blob === undefined)
        copies.push({ kind: "unread", name: part.name, reason: translate("branch.file-gone") });
      else copies.push({ ...part, blob: await conversations.putBlob(to, blob.bytes, blob.mediaType) });
    }
    return copies;
  }

  /** Stores the events of the last turn as answered ones, so that the answer can be asked for anew. */
  async function makeKnown(
    copied: readonly StoredMessage[],
    { to, toKey, toAddress }: BranchRequest,
    { platform, origin }: Actor,
  ): Promise<void> {
    const answer = copied.at(-1);
    if (answer?.role !== "assistant" || answer.outcome === "failed") return;
    const [record] = await inbox.read([answer.turnKey]);
    const keys = record?.turn?.keys ?? [answer.turnKey];
    const known = await inbox.read(keys);
    const events: IncomingMessage[] = [];
    for (const key of keys) {
      const question = copied.find(({ id }) => id === messageIds.user(key));
      // A command runs as it was written, so it has no question for a model in this conversation.
      if (question?.author === undefined || question.call !== undefined) return;
      const before = known.find(({ event, state }) => event.key === key && state !== "erased")?.event;
      if (before !== undefined && before.kind !== "message") return;
      events.push({
        ...(before ?? {
          kind: "message",
          platform,
          author: question.author,
          ...(origin === undefined ? {} : { origin }),
          sentAt: question.createdAt,
        }),
        text: "",
        attachments: [],
        key: toKey(key),
        conversationId: to,
        address: toAddress(toKey(key)),
      });
    }
    const newKeys = events.map(({ key }) => key);
    const turnKey = toKey(answer.turnKey);
    const over = { acceptedAt: now(), version: 1, isInLog: true } as const;
    const turn = { keys: newKeys, attempt: 1, since: 0, openedAt: now(), address: toAddress(turnKey) };
    await inbox.adopt(
      events.map((event) =>
        event.key === turnKey
          ? { ...over, event, state: "over", turn }
          : { ...over, event, state: "joined", in: turnKey },
      ),
    );
  }
}

/** The approximate size of a copy in the store. A file that several messages show is stored once. */
function bytesOf(messages: readonly StoredMessage[]): number {
  const parts = messages.flatMap((message) => message.parts);
  const files = new Map(
    parts.flatMap((part) =>
      "blob" in part && part.blob !== undefined ? [[part.blob.hash, part.blob.sizeBytes]] : [],
    ),
  );
  const texts = parts.reduce((sum, part) => sum + ("text" in part ? part.text.length : 0), 0);
  return texts + [...files.values()].reduce((sum, bytes) => sum + bytes, 0);
}

/** The messages up to the named one, or `undefined` if it does not exist. */
function cutAt(
  stored: readonly StoredMessage[],
  until: BranchRequest["until"],
): readonly StoredMessage[] | undefined {
  if ("beforeKey" in until) {
    const index = stored.findIndex(({ id }) => id === messageIds.user(until.beforeKey));
    return index === -1 ? undefined : stored.slice(0, index);
  }
  const index = stored.findIndex(({ role, turnKey }) => role === "assistant" && turnKey === until.turnKey);
  return index === -1 ? undefined : stored.slice(0, index + 1);
}

/** Makes the same ids as turns do, so that a copied message is found by its key. */
function newIdOf(message: StoredMessage, { toKey }: BranchRequest): string {
  const key = toKey(message.turnKey);
  if (message.role === "user") return messageIds.user(key);
  return messageIds.answer(key);
}

interface Copy {
  readonly parts: readonly MessagePart[];
  readonly ids: ReadonlyMap<string, string>;
  readonly request: BranchRequest;
}

function toCopy(message: StoredMessage, { parts, ids, request }: Copy): StoredMessage {
  // Ratings, the messages that show an answer and its earlier versions belong only to the original.
  const { ratings: _ratings, shownAs: _shownAs, versions: _versions, call, receipt, ...rest } = message;
  const { files } = receipt ?? {};
  const toId = (id: string): string => ids.get(id) ?? id;
  const toRef = (ref: PictureRef): PictureRef => {
    const messageId = ref.conversationId === request.from ? ids.get(ref.messageId) : undefined;
    return messageId === undefined ? ref : { ...ref, conversationId: request.to, messageId };
  };
  return {
    ...rest,
    id: toId(message.id),
    turnKey: request.toKey(message.turnKey),
    // The new conversation counts its own attempts.
    ...(message.attempt === undefined ? {} : { attempt: 1 }),
    parts,
    ...(call && { call: { ...call, ...(call.pictures && { pictures: call.pictures.map(toRef) }) } }),
    ...(receipt && {
      receipt: { ...receipt, ...(files && { files: { ...files, of: files.of.map(toId) } }) },
    }),
  };
}

function toSettings(
  { title, model, chosen, resetAfter, lastPicture }: ConversationSettings,
  first: StoredMessage | undefined,
  ids: ReadonlyMap<string, string>,
): ConversationSettings {
  const known = title ?? toTitle(toAsked(textOf(first?.parts ?? []).slice(0, 1000)));
  const reset = resetAfter === undefined ? undefined : ids.get(resetAfter);
  const picture = lastPicture === undefined ? undefined : ids.get(lastPicture);
  return {
    ...(known === "" ? {} : { title: translate("branch.title", { title: known }) }),
    ...(model === undefined ? {} : { model }),
    ...(chosen === undefined ? {} : { chosen }),
    ...(reset === undefined ? {} : { resetAfter: reset }),
    ...(picture === undefined ? {} : { lastPicture: picture }),
  };
}
