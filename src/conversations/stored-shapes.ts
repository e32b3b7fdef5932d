import type { MessagePart } from "../core/storage.ts";
import type { Space } from "./backend.ts";

type Check = (value: unknown) => boolean;
type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isText: Check = (value) => typeof value === "string";
const isNumber: Check = (value) => Number.isFinite(value);
const isFlag: Check = (value) => typeof value === "boolean";
const isAny: Check = () => true;
const isWhole =
  (min: number, max: number): Check =>
  (value) =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const oneOf =
  (...words: readonly string[]): Check =>
  (value) =>
    words.includes(value as string);
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every((each) => check(each));
const fields = (checks: Readonly<Record<string, Check>>): Check => {
  const each = Object.entries(checks);
  return (value) => isObject(value) && each.every(([name, check]) => check(ownField(value, name)));
};
const ownField = (value: Fields, name: string) => (Object.hasOwn(value, name) ? value[name] : undefined);

/** The range of a Date. Some platforms' times have fractions of a millisecond. */
const isTime: Check = (value) => isNumber(value) && Math.abs(value as number) <= 8.64e15;
/** The keys of slots have ten digits. */
const maxPosition = 9_999_999_999;
const isBlobRef = fields({ hash: isText, mediaType: isText, sizeBytes: isNumber });
const isAuthor = fields({ id: isText, name: isText });

const parts: Readonly<Record<MessagePart["kind"], Check>> = {
  text: fields({ text: isText }),
  image: fields({ blob: isBlobRef, name: isText, altText: optional(isText) }),
  "image-link": fields({ url: isText }),
  voice: fields({
    blob: optional(isBlobRef),
    name: isText,
    text: isText,
    times: optional(listOf(fields({ at: isNumber, from: isNumber, to: optional(isNumber) }))),
  }),
  file: fields({ name: isText, text: isText }),
  unread: fields({ name: isText, reason: isText }),
};
const isPart: Check = (value) => {
  const kind = isObject(value) ? value["kind"] : undefined;
  return typeof kind === "string" && Object.hasOwn(parts, kind) && parts[kind as MessagePart["kind"]](value);
};

const isUsage = fields({ isEstimated: isFlag, costUsd: optional(isNumber) });
const isReceipt = fields({
  calls: listOf(
    fields({
      operation: oneOf("chat", "image", "transcription"),
      asked: isText,
      purpose: optional(oneOf("summary")),
      fallback: optional(isText),
      model: optional(isText),
      usage: optional(isUsage),
    }),
  ),
  context: optional(
    fields({
      messages: isNumber,
      leftOut: isNumber,
      hasOlder: optional(isFlag),
      summedUp: optional(isNumber),
      estimatedTokens: isNumber,
      images: optional(isNumber),
      leftOutImages: optional(isNumber),
    }),
  ),
  files: optional(
    fields({ read: isNumber, unread: isNumber, voices: optional(isNumber), of: listOf(isText) }),
  ),
  temperature: optional(isNumber),
  maxTokens: optional(isNumber),
  firstTextMs: optional(isNumber),
  totalMs: isNumber,
});

const isTranscription = fields({
  text: isText,
  timed: optional(listOf(fields({ fromSeconds: isNumber, toSeconds: optional(isNumber), text: isText }))),
  asked: isText,
  model: isText,
  fallback: optional(isText),
  usage: isUsage,
  notices: listOf(isText),
});

const isSources = listOf(fields({ url: isText, title: optional(isText) }));
const isPictures = listOf(fields({ conversationId: isText, messageId: isText, number: isNumber }));
const isTombstone = fields({ forgotten: (value) => value === true, id: isText });
const isMessage = fields({
  id: isText,
  role: oneOf("user", "assistant"),
  turnKey: isText,
  attempt: optional(isNumber),
  author: optional(isAuthor),
  parts: listOf(isPart),
  thoughts: optional(isText),
  call: optional(fields({ name: isText, options: isObject, pictures: optional(isPictures) })),
  createdAt: isTime,
  editedAt: optional(isTime),
  estimatedTokens: isNumber,
  outcome: optional(oneOf("complete", "interrupted", "failed")),
  failure: optional(isText),
  sources: optional(isSources),
  notices: optional(listOf(isText)),
  model: optional(isText),
  usage: optional(isObject),
  command: optional(isText),
  isCut: optional(isFlag),
  receipt: optional(isReceipt),
  ratings: optional(isObject),
  shownAs: optional(listOf(isText)),
  versions: optional(
    listOf(
      fields({
        parts: listOf(isPart),
        thoughts: optional(isText),
        sources: optional(isSources),
        notices: optional(listOf(isText)),
        model: optional(isText),
        createdAt: isTime,
      }),
    ),
  ),
  inContext: optional(isFlag),
  room: optional(fields({ isApp: isFlag })),
});

const isAttachments = listOf(fields({ id: isText, name: isText }));
const incoming = {
  key: isText,
  platform: isText,
  conversationId: isText,
  author: isAuthor,
  sentAt: isTime,
  within: optional(listOf(isText)),
  address: isObject,
};
const isIncomingMessage = fields({
  ...incoming,
  kind: oneOf("message"),
  text: isText,
  attachments: isAttachments,
  model: optional(isText),
  edit: optional(fields({ at: isTime, takenAt: isTime, count: isNumber, attemptsBefore: isNumber })),
  fixedWords: optional(listOf(fields({ name: isText, position: isNumber, text: isText }))),
  pictures: optional(isPictures),
  repliesTo: optional(fields({ key: isText, attachments: isAttachments })),
  isAside: optional(isFlag),
});
const isCommandCall = fields({
  ...incoming,
  kind: oneOf("call"),
  name: isText,
  options: isObject,
  pictures: optional(isPictures),
  problem: optional(fields({ written: isText, detail: isObject })),
  subject: optional(fields({ author: isAuthor, text: isText, attachments: isAttachments })),
});

const isSettingValue: Check = (value) => isText(value) || isNumber(value) || listOf(isText)(value);
/** Settings of other versions may have other names. */
const isLayerValues: Check = (value) =>
  isObject(value) && Object.values(value).every((each) => isSettingValue(each));

/** Whether a decoded value has the shape of its space, as far as readers need it. It may have more fields. */
export const isStored: Readonly<Record<Space, Check>> = {
  head: fields({ next: isWhole(0, maxPosition), keptFrom: optional(isWhole(0, maxPosition)) }),
  slot: (value) => (isObject(value) && Object.hasOwn(value, "forgotten") ? isTombstone : isMessage)(value),
  id: isWhole(-1, maxPosition),
  settings: fields({
    title: optional(isText),
    name: optional(isText),
    isPinned: optional(isFlag),
    model: optional(isText),
    chosen: optional(isLayerValues),
    resetAfter: optional(isText),
    lastPicture: optional(isText),
    within: optional(listOf(isText)),
    answerTo: optional(oneOf("mentions", "every-message")),
    room: optional(
      fields({
        readUpTo: optional(isText),
        readAt: optional(isTime),
        told: optional(fields({ permission: isText, turnKey: isText })),
      }),
    ),
    aside: optional(fields({ from: isTime, to: isTime })),
  }),
  summary: fields({
    text: isText,
    from: isWhole(0, maxPosition),
    until: isWhole(0, maxPosition),
    messages: isNumber,
    costUsd: optional(isNumber),
    oldestAt: optional(isTime),
    claim: optional(fields({ token: isText, until: isWhole(0, maxPosition) })),
  }),
  blob: fields({ mediaType: isText, base64: optional(isText), sizeBytes: optional(isNumber) }),
  inbox: fields({
    event: (value) => isIncomingMessage(value) || isCommandCall(value),
    acceptedAt: isTime,
    version: optional(isNumber),
    attempts: optional(isNumber),
    isClosed: optional(isFlag),
    isForgotten: optional(isFlag),
    redo: optional(fields({ kind: isText, since: isNumber, requestedAt: isTime, model: optional(isText) })),
    stoppedBy: optional(isText),
    wasAnswered: optional(isFlag),
    heard: optional(listOf(fields({ hash: isText, answer: optional(isTranscription) }))),
  }),
  turn: fields({ keys: listOf(isText), address: isObject, attempts: isNumber }),
  layer: isLayerValues,
  record: isAny,
  meta: isAny,
};
