import { z } from "zod";
import type { Space } from "./backend.ts";

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
      kind: z.enum(["retry", "confirm", "regenerate", "continue", "edit"]),
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

const shapes: Readonly<Record<Space, z.ZodType>> = {
  head: z.object({ next: position, keptFrom: position.optional(), last: text.optional() }),
  slot: message.extend({ forgotten: z.undefined().optional() }).or(tombstone),
  id: position.or(z.literal(-1)),
  settings: z.object({
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
  summary: z.object({
    text: text,
    from: position,
    until: position,
    messages: number,
    costUsd: number.optional(),
    isEstimated: flag.optional(),
    oldestAt: time.optional(),
    claim: z.optional(z.object({ token: text, until: position })),
  }),
  blob: z.object({ mediaType: text, base64: text.optional(), sizeBytes: number.optional() }),
  inbox: z
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
  turn: z.object({ keys: z.array(text), attempts: number, address: object }),
  layer: layerValues,
  record: z.unknown(),
  meta: z.unknown(),
};

/** Whether a decoded value has the shape of its space, as far as readers need it. It may have more fields. */
export function isStored(space: Space, value: unknown): boolean {
  return shapes[space].safeParse(value).success;
}
