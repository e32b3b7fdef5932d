import { againReasons } from "../core/inbox.ts";
import { createHash } from "node:crypto";
import { z } from "zod";
import type { RollingSummary } from "../core/storage.ts";

const text = z.string();
const number = z.number();
const flag = z.boolean();
const object = z.looseObject({});

/** The range of a Date. Some platforms' times have fractions of a millisecond. */
const time = z.number().min(-8.64e15).max(8.64e15);
/** The keys of slots have ten digits. */
const position = z.int().min(0).max(9_999_999_999);
const blobRef = z.object({ hash: text, mediaType: text, sizeBytes: number });
const author = z.object({ id: text, name: text, alsoCalled: z.optional(z.array(text)) });

/** The parts of a stored message. */
const part = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("text"), text: text }),
  z.object({ kind: z.literal("image"), blob: blobRef, name: text, altText: text.optional() }),
  z.object({ kind: z.literal("image-link"), url: text }),
  z.object({
    kind: z.literal("voice"),
    blob: blobRef.optional(),
    name: text,
    text: text,
    times: z.optional(z.array(z.object({ at: number, from: number, to: number.optional() }))),
  }),
  z.object({ kind: z.literal("file"), name: text, text: text }),
  z.object({ kind: z.literal("unread"), name: text, reason: text }),
]);

const usage = z.object({ isEstimated: flag, costUsd: number.optional() });
const receipt = z.object({
  calls: z.array(
    z.object({
      operation: z.enum(["chat", "image", "transcription"]),
      asked: text,
      purpose: z.optional(z.literal("summary")),
      fallback: text.optional(),
      model: text.optional(),
      usage: usage.optional(),
    }),
  ),
  context: z.optional(
    z.object({
      messages: number,
      leftOut: number,
      hasOlder: flag.optional(),
      summedUp: number.optional(),
      estimatedTokens: number,
      images: number.optional(),
      leftOutImages: number.optional(),
    }),
  ),
  files: z.optional(z.object({ read: number, unread: number, voices: number.optional(), of: z.array(text) })),
  temperature: number.optional(),
  maxTokens: number.optional(),
  firstTextMs: number.optional(),
  totalMs: number,
});

const sources = z.array(z.object({ url: text, title: text.optional() }));
const pictures = z.array(z.object({ conversationId: text, messageId: text, number: number }));
const tombstone = z.object({ forgotten: z.literal(true), id: text });
const message = z.object({
  id: text,
  role: z.enum(["user", "assistant"]),
  turnKey: text,
  attempt: number.optional(),
  author: author.optional(),
  parts: z.array(part),
  thoughts: text.optional(),
  call: z.optional(z.object({ name: text, options: object, pictures: pictures.optional() })),
  createdAt: time,
  editedAt: time.optional(),
  estimatedTokens: number,
  outcome: z.optional(z.enum(["complete", "interrupted", "failed"])),
  failure: text.optional(),
  sources: sources.optional(),
  notices: z.optional(z.array(text)),
  model: text.optional(),
  usage: object.optional(),
  command: text.optional(),
  isCut: flag.optional(),
  receipt: receipt.optional(),
  ratings: object.optional(),
  shownAs: z.optional(z.array(text)),
  versions: z.optional(
    z.array(
      z.object({
        parts: z.array(part),
        thoughts: text.optional(),
        sources: sources.optional(),
        notices: z.optional(z.array(text)),
        model: text.optional(),
        createdAt: time,
      }),
    ),
  ),
  inContext: flag.optional(),
  room: z.optional(z.object({ isApp: flag })),
});

const attachments = z.array(z.object({ id: text, name: text }));
const incoming = {
  key: text,
  platform: text,
  conversationId: text,
  author: author,
  sentAt: time,
  within: z.optional(z.array(text)),
  address: object,
};
const incomingMessage = z.object({
  ...incoming,
  kind: z.literal("message"),
  text: text,
  attachments: attachments,
  model: text.optional(),
  edit: z.optional(z.object({ at: time })),
  pictures: pictures.optional(),
  repliesTo: z.optional(z.object({ key: text, attachments: attachments })),
  isAside: flag.optional(),
});
const commandCall = z.object({
  ...incoming,
  kind: z.literal("call"),
  name: text,
  options: object,
  pictures: pictures.optional(),
  problem: z.optional(z.object({ written: text, detail: object })),
  subject: z.optional(z.object({ author: author, text: text, attachments: attachments })),
});

const turn = z.object({
  keys: z.array(text),
  attempt: number,
  since: number,
  openedAt: time,
  again: z.optional(
    z.object({
      kind: z.enum(againReasons),
      model: text.optional(),
      isCounted: z.literal(true).optional(),
    }),
  ),
  answer: number.optional(),
  address: object,
  end: z.optional(
    z.object({
      kind: z.enum(["answer", "failed", "stopped", "refused", "sealed", "withdrawn"]),
      at: time,
      by: text.optional(),
      why: text.optional(),
      code: text.optional(),
      canRetry: z.literal(true).optional(),
      keepsEarlier: z.literal(true).optional(),
      isStored: flag,
    }),
  ),
  stoppedAt: time.optional(),
});

/** A record of version 4, which is migrated when the store is opened. */
const earlierRecord = z.object({
  event: z.looseObject({ kind: z.enum(["message", "call"]), key: text, author: author, sentAt: time }),
  acceptedAt: time,
  state: z.enum(["open", "edited", "stopping", "withdrawn", "answered", "erased"]),
});

/** Settings of other versions may have other names. */
const layerValues = z.record(text, z.union([text, number, z.array(text)]));

/** A space of the store, which is a namespace of Keyv. */
interface StoredSpace {
  /** What it holds, whose that is, when an erasure removes it, and when it expires by itself. */
  readonly row: string;
  /** The shape of its values, as far as readers need it. They may have more fields. */
  readonly shape: z.ZodType;
}

/** Everything that is stored beside the sorted indexes. docs/architecture.md has it as a table. */
export const stored = {
  head: {
    row: "the end of a conversation's log | a conversation | with the conversation | a day after its messages",
    shape: z.object({
      // The estimated position of the next message, which may be too low.
      next: position,
      // Every slot from this position to the next was written without expiry, so a missing one is damage. It
      // is absent with a retention, and while the conversation is erased.
      keptFrom: position.optional(),
      // The key of the last turn that was begun, so that it is known which one may be answered anew.
      last: text.optional(),
    }),
  },
  slot: {
    row: "a message, or what is left of an erased one | a conversation | alone, with its author or with the conversation | `RETENTION_DAYS`",
    shape: message.extend({ forgotten: z.undefined().optional() }).or(tombstone),
  },
  id: {
    row: "where the message with an id is | a conversation | with the conversation | `RETENTION_DAYS`",
    shape: position.or(z.literal(-1)),
  },
  settings: {
    row: "title, place and model of a conversation | a conversation | with the conversation | a day after its messages",
    shape: z.object({
      title: text.optional(),
      name: text.optional(),
      isPinned: flag.optional(),
      model: text.optional(),
      chosen: layerValues.optional(),
      resetAfter: text.optional(),
      lastPicture: text.optional(),
      within: z.optional(z.array(text)),
      answerTo: z.optional(z.enum(["mentions", "every-message"])),
      room: z.optional(
        z.object({
          readUpTo: text.optional(),
          readAt: time.optional(),
          told: z.optional(z.object({ permission: text, turnKey: text })),
          hinted: text.optional(),
        }),
      ),
      aside: z.optional(
        z.object({
          from: time,
          to: time,
          words: z.optional(z.object({ from: time, to: time })),
          isShared: flag.optional(),
        }),
      ),
    }),
  },
  summary: {
    row: "what sums up the beginning of a conversation | a conversation | with it, or with a message that it may quote | `RETENTION_DAYS`",
    shape: z.object({
      text: text,
      from: position,
      until: position,
      messages: number,
      costUsd: number.exactOptional(),
      isEstimated: flag.exactOptional(),
      // When the oldest of its messages was said, after which the retention counts.
      oldestAt: time.exactOptional(),
      // A request that is being made, by whom, and the position after the last message that it may quote. It
      // is what makes an erasure known to a request that has read the message before.
      claim: z.exactOptional(z.object({ token: text, until: position })),
    }),
  },
  blob: {
    row: "a file, or its media type and size | a conversation | with the last message that shows it | a day after its messages",
    shape: z.object({ mediaType: text, base64: text.optional(), sizeBytes: number.optional() }),
  },
  inbox: {
    row: "an accepted event and the state of its turn | an event | with its author or its conversation | a week after its end, the last turn like its messages",
    shape: z
      .object({
        event: z.discriminatedUnion("kind", [incomingMessage, commandCall]),
        acceptedAt: time,
        state: z.enum(["open", "ending", "over", "joined", "erased"]),
        version: number,
        isInLog: z.literal(true).optional(),
        dueAt: time.optional(),
        in: text.optional(),
        turn: z.optional(turn),
      })
      .or(earlierRecord),
  },
  turn: {
    row: "the progress of a turn of version 4 | an event | by the first start of this version | never",
    shape: z.object({ keys: z.array(text), attempts: number, address: object }),
  },
  layer: {
    row: "what people set for a server, channel or person | one of these | with it | never",
    shape: layerValues,
  },
  record: {
    row: "small values of other rooms | another room | by that room | as that room says",
    shape: z.unknown(),
  },
  meta: {
    row: "marks of the store | the store | never | never",
    shape: z.unknown(),
  },
} satisfies Readonly<Record<string, StoredSpace>>;

/** The value of a conversation's head. */
export type Head = Readonly<z.infer<typeof stored.head.shape>>;
/** The rest of an erased message. Its position stays taken, so that the numbering has no gap. */
export type Tombstone = Readonly<z.infer<typeof tombstone>>;
/** The value of a conversation's summary. */
export type StoredSummary = Readonly<z.infer<typeof stored.summary.shape>> & RollingSummary;

/** A space of the store. */
export type Space = keyof typeof stored;

/** The address of an entry. `key` is case-sensitive, and may hold any Unicode but NUL. */
export interface EntryAddress {
  readonly space: Space;
  readonly key: string;
}

/** All spaces. */
export const spaces = Object.keys(stored) as readonly Space[];

/** Whether a decoded value has the shape of its space. */
export function isStored(space: Space, value: unknown): boolean {
  return stored[space].shape.safeParse(value).success;
}

/** The prefix of indexes whose scores change with every turn and which are seldom read in order. */
export const countedPrefix = "ledger:";

/** Addresses of a conversation's entries. Ids may hold anything, so their `/` and `%` are escaped. */
export const entryAt = {
  head: (conversationId: string): EntryAddress => ({ space: "head", key: escapeId(conversationId) }),
  settings: (conversationId: string): EntryAddress => ({ space: "settings", key: escapeId(conversationId) }),
  summary: (conversationId: string): EntryAddress => ({ space: "summary", key: escapeId(conversationId) }),
  slot: (conversationId: string, position: number): EntryAddress => ({
    space: "slot",
    // The position is padded so that keys sort by it.
    key: `${escapeId(conversationId)}/${String(position).padStart(10, "0")}`,
  }),
  messageId: (conversationId: string, messageId: string): EntryAddress => ({
    space: "id",
    key: `${escapeId(conversationId)}/${messageId}`,
  }),
  blob: (conversationId: string, hash: string): EntryAddress => ({
    space: "blob",
    key: `${folderOf(conversationId)}/${hash}`,
  }),
  event: (key: string): EntryAddress => ({ space: "inbox", key }),
  layer: (holder: string): EntryAddress => ({ space: "layer", key: holder }),
} as const;

/** The names of the sorted indexes. */
export const indexes = {
  /** Platforms that have or had conversations. */
  platforms: "platforms",
  /** A platform's conversations by the time of their last message. */
  conversations: (platform: string) => `conversations:${platform}`,
  /** Conversations in which an author has written. */
  conversationsOf: (authorId: string) => `conversations-of:${authorId}`,
  /** Conversations within a place: a server, workspace or channel. */
  conversationsWithin: (place: string) => `conversations-within:${place}`,
  /** A platform's pinned conversations. */
  pinned: (platform: string) => `pinned:${platform}`,
  /** Names of the three kinds of indexes above that list a conversation, from which it can be removed. */
  listings: (conversationId: string) => `listings:${conversationId}`,
  /** Hashes of a conversation's blobs. */
  blobs: (conversationId: string) => `blobs:${folderOf(conversationId)}`,
  /** Keys of open events in the order of acceptance. */
  openEvents: "inbox",
  /** Keys of a conversation's open events in the order of acceptance. */
  openEventsIn: (conversationId: string) => `open-events-in:${conversationId}`,
  /** Keys of events that are over and keep their words, by the time when they expire (Unix ms). */
  repeatable: "repeatable",
  /** Turns of each person that began in a minute (Unix minutes). */
  turns: (minute: number) => `${countedPrefix}turns:${minute}`,
  turnsPrefix: `${countedPrefix}turns:`,
  /** Reserves for running calls in a period, by what is charged, in billionths of a USD. */
  reserved: (period: number) => `${countedPrefix}reserved:${period}`,
  reservedPrefix: `${countedPrefix}reserved:`,
  /** Settled reserves of a period. */
  settled: (period: number) => `${countedPrefix}settled:${period}`,
  /** Spending in a day (`YYYY-MM-DD`) or a month (`YYYY-MM`), by what is charged, in billionths of a USD. */
  spent: (period: string) => `${countedPrefix}spent:${period}`,
  /** The share in percent of each budget of a day or a month that people were told of. */
  told: (period: string) => `${countedPrefix}told:${period}`,
  /** Usage on a day by person, channel, model, operation and measure. */
  usage: (day: string) => `${countedPrefix}usage:${day}`,
  /** Ratings that an earlier version counted, which are erased with their person. */
  ratings: (day: string) => `${countedPrefix}ratings:${day}`,
  /** Days on which a person has used something, or that have an answer which the person has rated. */
  usageDaysOf: (personId: string) => `${countedPrefix}days-of:${personId}`,
  /** Names of the indexes that hold counts, by the time when they may be removed. */
  countedIndexes: "ledger",
} as const;

/** The first part of a conversation's id. */
export function platformOf(conversationId: string): string {
  return conversationId.split(":", 1)[0] ?? "";
}

/** A folder name for a conversation. It is a hash, so that no id can lead out of the parent folder. */
export function folderOf(conversationId: string): string {
  return createHash("sha256").update(conversationId).digest("hex").slice(0, 32);
}

function escapeId(id: string): string {
  return id.replaceAll("%", "%25").replaceAll("/", "%2F");
}
