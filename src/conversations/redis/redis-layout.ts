import { createHash } from "node:crypto";
import { countedPrefix, type EntryAddress, type Space } from "../backend.ts";
import { indexes } from "../store-keys.ts";

/** Names of the keys that Redis sees. */
export interface KeyNames {
  entry(at: EntryAddress): string;
  index(name: string): string;
}

/** What a key of a space begins with. */
export const namespaceOf = (space: Space): string => `parley:${space}`;

/** Of one server. */
export const serverNames: KeyNames = {
  entry: (at) => `${namespaceOf(at.space)}::${at.key}`,
  // Indexes were called rankings in the first version; stores in use have the keys.
  index: (name) => `parley:ranking::${name}`,
};

/**
 * Of a cluster: a hash tag keeps a group on one server. What grows is spread: a conversation's messages, settings and
 * pictures are a group. The inbox and all sorted indexes are one, and so are the counts.
 */
export const clusterNames: KeyNames = {
  entry: (at) => `${namespaceOf(at.space)}::${tagOfEntry(at)}${at.key}`,
  index: (name) => `parley:ranking::${tagOfIndex(name)}${name}`,
};

/** The key within its space, of a name in it. */
export function keyOf(name: string): string {
  return name.replace(/^\{[^}]*\}/, "");
}

const blobsPrefix = "blobs:";

/** The tag is also the name of the group. */
export function tagOfEntry({ space, key }: EntryAddress): string {
  switch (space) {
    case "head":
    case "settings":
    case "slot":
    case "id":
      return toTag(folderOfEscaped(key.split("/", 1)[0] ?? ""));
    case "blob":
      return toTag(key.split("/", 1)[0] ?? "");
    case "inbox":
    case "turn":
    case "layer":
    case "record":
    case "meta":
      return "{parley}";
  }
}

/** @see {@link tagOfEntry} */
export function tagOfIndex(name: string): string {
  if (name.startsWith(blobsPrefix)) return toTag(name.slice(blobsPrefix.length));
  return name.startsWith(countedPrefix) || name === indexes.countedIndexes ? "{ledger}" : "{parley}";
}

/** A digest: it holds no brace. */
function folderOfEscaped(escaped: string): string {
  const id = escaped.replaceAll("%2F", "/").replaceAll("%25", "%");
  return createHash("sha256").update(id).digest("hex").slice(0, 32);
}

function toTag(folder: string): string {
  return `{${folder}}`;
}
