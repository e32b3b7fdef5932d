import type { IndexChange } from "./backend.ts";
import { readMembers } from "./index-members.ts";
import type { Change, KeyValueStore } from "./key-value.ts";
import { indexes, platformOf } from "./store-keys.ts";

/** Lists a conversation among those of its platform, as the one with the latest activity. `now` in Unix ms. */
export function indexActivity(conversationId: string, now: number): IndexChange[] {
  const platform = platformOf(conversationId);
  return [
    {
      kind: "add-member",
      index: indexes.conversations(platform),
      member: conversationId,
      score: now,
    },
    { kind: "add-member", index: indexes.platforms, member: platform, score: 0 },
  ];
}

/** Lists a conversation among those that an author has written in. */
export function indexAuthor(conversationId: string, authorId: string): IndexChange[] {
  return addTo(indexes.conversationsOf(authorId), conversationId);
}

/** Lists a conversation no more among those that an author has written in. */
export function unindexAuthor(conversationId: string, authorId: string): IndexChange[] {
  return removeFrom(indexes.conversationsOf(authorId), conversationId);
}

/** Lists a conversation among the pinned ones, or no more. */
export function indexPin(conversationId: string, isPinned: boolean): IndexChange[] {
  const index = indexes.pinned(platformOf(conversationId));
  return isPinned ? addTo(index, conversationId) : removeFrom(index, conversationId);
}

/** Moves a conversation from the places that it was within to those that it is within now. */
export function indexPlaces(
  conversationId: string,
  before: readonly string[],
  now: readonly string[],
): IndexChange[] {
  return [
    ...before
      .filter((place) => !now.includes(place))
      .flatMap((place) => removeFrom(indexes.conversationsWithin(place), conversationId)),
    ...now.flatMap((place) => addTo(indexes.conversationsWithin(place), conversationId)),
  ];
}

/** The changes that remove a conversation from every index of conversations. */
export async function unindexConversation(
  store: KeyValueStore,
  conversationId: string,
): Promise<readonly Change[]> {
  const listings = await readMembers(store, indexes.listings(conversationId));
  return [
    ...listings.flatMap((index) => removeFrom(index, conversationId)),
    {
      kind: "remove-member",
      index: indexes.conversations(platformOf(conversationId)),
      member: conversationId,
    },
  ];
}

/** Platforms that have or had conversations. */
export async function readPlatforms(store: KeyValueStore): Promise<readonly string[]> {
  return readMembers(store, indexes.platforms);
}

function addTo(index: string, conversationId: string): IndexChange[] {
  return [
    { kind: "add-member", index, member: conversationId, score: 0 },
    { kind: "add-member", index: indexes.listings(conversationId), member: index, score: 0 },
  ];
}

function removeFrom(index: string, conversationId: string): IndexChange[] {
  return [
    { kind: "remove-member", index, member: conversationId },
    { kind: "remove-member", index: indexes.listings(conversationId), member: index },
  ];
}
