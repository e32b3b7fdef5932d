import type { ErasureReport, RemovedMessages, StoredMessage } from "../core/storage.ts";
import { ratingBy } from "../core/raters.ts";
import { readMembers } from "./conversation-index.ts";
import { type KeyValueStore } from "./key-value.ts";
import { blobHashes } from "./retention.ts";
import type { Slots } from "./slots.ts";
import { entryAt, indexes } from "./keys.ts";

// What an erasure will remove, from one reading of a conversation, which changes nothing.

export const nothing: ErasureReport = { messages: 0, blobs: 0, conversations: 0, settings: 0, ratings: 0 };

/** What is erased from a conversation. */
export interface ErasurePlan {
  readonly conversationId: string;
  /** Whether nothing of the conversation stays. */
  readonly isWhole: boolean;
  /** The messages that go, unless all do. */
  readonly selected: readonly SelectedMessage[];
  /** Hashes of the blobs that go. */
  readonly hashes: readonly string[];
  /** Whether the first message goes, from which the title was made. */
  readonly isFirstSelected: boolean;
  /** The person whose messages and ratings go. */
  readonly author?: string;
  /** Remaining answers that this person has rated. */
  readonly rated: readonly PlacedMessage[];
  /** Remaining answers to selected questions, which have earlier versions. */
  readonly outdated: readonly PlacedMessage[];
  /** Everything that has a slot, also what was erased or cannot be read. */
  readonly slots: readonly PlacedId[];
  /** Keys of the turns of all messages. */
  readonly turnKeys: ReadonlySet<string>;
  readonly report: ErasureReport;
}

/** A message and its place. */
interface PlacedMessage {
  readonly position: number;
  readonly message: StoredMessage;
}

/** A message that is to be erased. */
export interface SelectedMessage extends PlacedMessage {
  /** The id of the last message before it that remains. */
  readonly previousId: string | undefined;
}

interface PlacedId {
  readonly position: number;
  readonly id: string | undefined;
}

export interface ErasureSource {
  readonly store: KeyValueStore;
  readonly slots: Slots;
}

/** Plans the erasure of a conversation, also of what is damaged. */
export async function planAll(source: ErasureSource, conversationId: string): Promise<ErasurePlan> {
  const scan = await scanConversation(source.slots, conversationId, { toleratesDamage: true });
  const plan = await planWhole(source, conversationId, scan);
  return { ...plan, report: { ...plan.report, conversations: scan.messages > 0 ? 1 : 0 } };
}

/**
 * Plans the erasure of what a person wrote and rated: of the whole conversation if nobody else wrote there.
 * @throws ParleyError `store-corrupt` if a message is damaged, because its author is then unknown
 */
export async function planOfAuthor(
  source: ErasureSource,
  conversationId: string,
  authorId: string,
): Promise<ErasurePlan> {
  const scan = await scanConversation(source.slots, conversationId, {
    isSelected: ({ author }) => author?.id === authorId,
    isRated: (message) => ratingBy(message, authorId) !== undefined,
  });
  return (await isOnlyAuthor(source.store, conversationId, authorId, scan))
    ? await planWhole(source, conversationId, scan)
    : { ...planPart(conversationId, scan), author: authorId };
}

/** Plans the erasure of messages, and of files that no message shows if that is asked. */
export async function planRemoval(
  source: ErasureSource,
  conversationId: string,
  { ids, shownAs = [], withLooseFiles = false }: RemovedMessages,
): Promise<ErasurePlan | undefined> {
  const [allIds, allShownAs] = [new Set(ids), new Set(shownAs)];
  const files = withLooseFiles ? await blobHashes(source.store, conversationId) : [];
  if (ids.length === 0 && shownAs.length === 0 && files.length === 0) return undefined;
  const scan = await scanConversation(source.slots, conversationId, {
    isSelected: (message) =>
      allIds.has(message.id) || message.shownAs?.some((key) => allShownAs.has(key)) === true,
  });
  const loose = files.filter((hash) => !scan.remainingBlobs.has(hash));
  return planPart(conversationId, scan, loose);
}

/** The hashes of the blobs that only this message shows, and whether it is the first of the conversation. */
export async function scanFor(
  slots: Slots,
  conversationId: string,
  messageId: string,
): Promise<Pick<ErasureScan, "hashes" | "versionHashes" | "isFirstSelected">> {
  return await scanConversation(slots, conversationId, { isSelected: ({ id }) => id === messageId });
}

function planPart(conversationId: string, scan: ErasureScan, loose: readonly string[] = []): ErasurePlan {
  const hashes = [...new Set([...scan.hashes, ...loose, ...scan.versionHashes])];
  const report = {
    ...nothing,
    messages: scan.selected.length,
    blobs: hashes.length,
    ratings: scan.rated.length,
  };
  return { ...scan, conversationId, isWhole: false, hashes, report };
}

async function planWhole(
  { store }: ErasureSource,
  conversationId: string,
  scan: ErasureScan,
): Promise<ErasurePlan> {
  const hashes = await blobHashes(store, conversationId);
  const keys = hashes.map((hash) => entryAt.blob(conversationId, hash).key);
  // Others have expired.
  const blobs = (await store.hasMany("blob", keys)).filter(Boolean).length;
  const report = { ...nothing, messages: scan.messages, blobs, conversations: 1 };
  return { ...scan, conversationId, isWhole: true, hashes, report };
}

/** Whether the author wrote there and nobody else did, so that the conversation is erased as a whole. */
async function isOnlyAuthor(
  store: KeyValueStore,
  conversationId: string,
  authorId: string,
  { selected, rated, othersWrote }: ErasureScan,
): Promise<boolean> {
  if (othersWrote || selected.length > 0) return !othersWrote;
  if (rated.length > 0) return false;
  // An erasure that was interrupted has left no messages, but it unlists the conversation last.
  const listings = await readMembers(store, indexes.listings(conversationId));
  return listings.includes(indexes.conversationsOf(authorId));
}

/** The result of one pass over a conversation. */
interface ErasureScan extends Pick<
  ErasurePlan,
  "selected" | "isFirstSelected" | "rated" | "outdated" | "slots" | "turnKeys"
> {
  /** The number of all messages. */
  readonly messages: number;
  /** Whether a user message is left. */
  readonly othersWrote: boolean;
  /** Hashes of the blobs that the remaining messages show. */
  readonly remainingBlobs: ReadonlySet<string>;
  /** Hashes of the blobs that only selected messages show. */
  readonly hashes: readonly string[];
  /** Hashes of the blobs that only outdated versions and selected messages show. */
  readonly versionHashes: readonly string[];
}

/** What a pass over a conversation looks for. Default: nothing. */
interface ScanOptions {
  readonly isSelected?: (message: StoredMessage) => boolean;
  readonly isRated?: (message: StoredMessage) => boolean;
  readonly toleratesDamage?: boolean;
}

async function scanConversation(
  slots: Slots,
  conversationId: string,
  { isSelected = () => false, isRated = () => false, toleratesDamage = false }: ScanOptions,
): Promise<ErasureScan> {
  const selected: SelectedMessage[] = [];
  const remainingBlobs = new Set<string>();
  /** Ids and turns of the selected questions, because answers name either. */
  const questions = new Set<string>();
  const outdated: PlacedMessage[] = [];
  const rated: PlacedMessage[] = [];
  const all: PlacedId[] = [];
  const turnKeys = new Set<string>();
  let previousId: string | undefined;
  let othersWrote = false;
  let messages = 0;
  let firstId: string | undefined;
  for await (const { position, id, message, damage } of slots.all(conversationId)) {
    if (damage !== undefined && !toleratesDamage) throw damage;
    all.push({ position, id });
    if (message === undefined) continue;
    messages++;
    turnKeys.add(message.turnKey);
    firstId ??= message.id;
    if (isSelected(message)) {
      selected.push({ position, message, previousId });
      if (message.role === "user") questions.add(message.id).add(message.turnKey);
    } else {
      othersWrote ||= message.role === "user";
      const isOutdated = message.versions !== undefined && answersTo(message, questions);
      if (isOutdated) outdated.push({ position, message });
      if (isRated(message)) rated.push({ position, message });
      for (const hash of hashesOf(isOutdated ? withoutVersions(message) : message)) remainingBlobs.add(hash);
      previousId = message.id;
    }
  }
  const shownOnlyBy = (gone: readonly PlacedMessage[]) =>
    [...new Set(gone.flatMap(({ message }) => hashesOf(message)))].filter(
      (hash) => !remainingBlobs.has(hash),
    );
  return {
    selected,
    outdated,
    rated,
    slots: all,
    turnKeys,
    messages,
    othersWrote,
    remainingBlobs,
    hashes: shownOnlyBy(selected),
    versionHashes: shownOnlyBy(outdated),
    isFirstSelected: selected[0] !== undefined && selected[0].message.id === firstId,
  };
}

/** Whether a message answers one of the questions, which are given by ids and turns. */
function answersTo({ turnKey, receipt }: StoredMessage, questions: ReadonlySet<string>): boolean {
  return questions.has(turnKey) || (receipt?.files?.of ?? []).some((id) => questions.has(id));
}

/** A message or slot without the earlier versions of its answer. */
export function withoutVersions<T extends object>(message: T): T {
  if (!("versions" in message)) return message;
  const { versions: _versions, ...rest } = message;
  return rest as T;
}

/** The hashes of the blobs that a message and its earlier versions show. */
export function hashesOf({ parts, versions = [] }: Pick<StoredMessage, "parts" | "versions">): string[] {
  return [
    ...parts.flatMap((part) => ("blob" in part && part.blob !== undefined ? [part.blob.hash] : [])),
    ...versions.flatMap((version) => hashesOf(version)),
  ];
}
