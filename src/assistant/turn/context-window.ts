import { languageOf } from "./file-language.ts";
import { toFenced } from "../../support/fenced.ts";
import { LRUCache } from "lru-cache";
import { contextCutNotice, imagesLeftOutNotice } from "../../core/error-messages.ts";
import {
  lineBreak,
  namesInstructions,
  roomEnd,
  roomInstructions,
  toNamedText,
  toRoomText,
} from "./room-prompt.ts";
import { estimateTokens, tokensPerImage } from "./stored-messages.ts";
import type { ChatMessage, ContentPart } from "../../core/gateway.ts";
import type { RefusedRequest, Tolerance } from "./model-tolerance.ts";
import type { ReceiptContext } from "../../core/receipt.ts";
import type { MessagePart, StoredBlob, StoredMessage } from "../../core/storage.ts";
import { translate } from "../../words/translate.ts";

/** Most pictures sent with one request, newest first: more are refused by common services. */
export const maxImages = 8;
/** In tokens, where the gateway does not list the model's context length. */
const defaultContextLength = 32_000;

export interface ContextOptions {
  /** Oldest first; the last one is the message to answer. */
  readonly history: readonly StoredMessage[];
  /** Whether the conversation has messages older than `history`. */
  readonly hasOlder: boolean;
  readonly systemPrompt: string;
  /** Tokens the messages may take, the answer's own not counted. */
  readonly budgetTokens: number;
  /** `false`: pictures are left out, with a notice. */
  readonly seesImages: boolean | undefined;
  /** What the model was found not to take. Default: it takes all. */
  readonly tolerance?: Tolerance | undefined;
  /** Leaves out earlier questions that were not answered: one of them may be why requests are refused. Default false. */
  readonly isLean?: boolean;
  getBlob(hash: string): Promise<StoredBlob | undefined>;
}

export interface BuiltContext {
  readonly messages: readonly ChatMessage[];
  readonly notices: readonly string[];
  /** What the messages were estimated at, to learn the model's factor from its own count. */
  readonly estimatedTokens: number;
  readonly receipt: ReceiptContext;
  /** What a refusal of it may be about. */
  readonly contents: RefusedRequest;
}

/**
 * Builds the prompt: system text, then as many of the newest messages as fit, always including the last. What is left
 * out is listed in `notices`. When several people take part each user message begins with its author's name, and its
 * further lines are quoted.
 */
export async function buildContext(options: ContextOptions): Promise<BuiltContext> {
  const { tolerance } = options;
  const said = options.history.filter(
    (message) => message.inContext !== false && message.outcome !== "failed" && message.parts.length > 0,
  );
  const usable = options.isLean === true ? withoutUnanswered(said) : said;
  const budgetTokens = Math.min(options.budgetTokens, tolerance?.maxTokens ?? Number.POSITIVE_INFINITY);
  let estimatedTokens = estimateTokens(options.systemPrompt);
  let first = usable.length;
  while (first > 0) {
    const tokens = usable[first - 1]?.estimatedTokens ?? 0;
    if (first < usable.length && estimatedTokens + tokens > budgetTokens) break;
    estimatedTokens += tokens;
    first--;
  }
  // A conversation that starts with an answer to something unseen confuses models, and some services refuse it.
  while (first < usable.length - 1 && usable[first]?.role === "assistant") first++;
  const chosen = usable.slice(first);
  const notices: string[] = [];
  const cut = first;
  if (cut > 0 || options.hasOlder) {
    notices.push(contextCutNotice(chosen.length, options.hasOlder ? "more" : cut));
  }
  const images = await loadImages(chosen, options, notices);
  const isShared = new Set(usable.flatMap((message) => message.author?.id ?? [])).size > 1;
  const messages = toChatMessages(chosen, images, isShared);
  const hasRoom = chosen.some(({ room }) => room !== undefined);
  const hasFurtherLines = isShared && chosen.some(isOfSeveralLines);
  const system = [
    options.systemPrompt,
    hasRoom ? roomInstructions : "",
    hasFurtherLines ? namesInstructions : "",
  ].filter((text) => text !== "");
  return {
    messages: withInstructions(messages, system.join("\n\n"), tolerance?.takesSystem !== false),
    contents: {
      pictures: [...images.keys()].flatMap((part) => (part.kind === "image" ? [part.blob.hash] : [])),
      links: [...images.keys()].filter(({ kind }) => kind === "image-link").length,
      messages: chosen.length,
      estimatedTokens,
      hadSystem: system.length > 0 && tolerance?.takesSystem !== false,
    },
    notices,
    estimatedTokens,
    receipt: {
      messages: chosen.length,
      leftOut: cut,
      ...(options.hasOlder ? { hasOlder: true } : {}),
      estimatedTokens,
      ...imageCounts(chosen, images.size),
    },
  };
}

/** The instructions as a message of their own, or before the words of the first message for a model without that role. */
function withInstructions(
  messages: readonly ChatMessage[],
  text: string,
  takesSystem: boolean,
): readonly ChatMessage[] {
  if (text === "") return messages;
  const [first, ...rest] = messages;
  if (takesSystem || first?.role !== "user") return [{ role: "system", content: text }, ...messages];
  const content: ChatMessage["content"] =
    typeof first.content === "string"
      ? `${text}\n\n${first.content}`
      : [{ kind: "text", text }, ...first.content];
  return [{ role: "user", content }, ...rest];
}

/** Without questions that another question follows: they were not answered. */
function withoutUnanswered(messages: readonly StoredMessage[]): readonly StoredMessage[] {
  const last = messages.at(-1);
  return messages.filter(
    (message, index) =>
      message.role !== "user" ||
      message.room !== undefined ||
      message.turnKey === last?.turnKey ||
      messages[index + 1]?.role !== "user",
  );
}

function imageCounts(
  messages: readonly StoredMessage[],
  sent: number,
): Pick<ReceiptContext, "images" | "leftOutImages"> {
  const all = messages.flatMap(picturesOf).length;
  return {
    ...(sent === 0 ? {} : { images: sent }),
    ...(sent === all ? {} : { leftOutImages: all - sent }),
  };
}

type Picture = Extract<MessagePart, { kind: "image" | "image-link" }>;

function picturesOf({ parts }: StoredMessage): Picture[] {
  return parts.filter((part) => part.kind === "image" || part.kind === "image-link");
}

/** Data URIs or addresses of the newest pictures, by their part. */
async function loadImages(
  messages: readonly StoredMessage[],
  options: ContextOptions,
  notices: string[],
): Promise<ReadonlyMap<Picture, string>> {
  const all = messages.flatMap(picturesOf);
  const urls = new Map<Picture, string>();
  if (all.length === 0) return urls;
  if (options.seesImages === false) {
    notices.push(imagesLeftOutNotice(all.length, translate("notice.images-left-out.text-model")));
    return urls;
  }
  const { tolerance } = options;
  const wanted = all.filter(
    (part) =>
      tolerance === undefined ||
      (tolerance.takesPictures && !(part.kind === "image" && tolerance.refusedPicture(part.blob.hash))),
  );
  if (wanted.length < all.length)
    notices.push(
      imagesLeftOutNotice(all.length - wanted.length, translate("notice.images-left-out.refused")),
    );
  const newest = wanted.slice(-maxImages);
  if (newest.length < wanted.length) {
    notices.push(
      imagesLeftOutNotice(
        wanted.length - newest.length,
        translate("notice.images-left-out.newest", { max: maxImages }),
      ),
    );
  }
  let missing = 0;
  for (const part of newest) {
    if (part.kind === "image-link") {
      urls.set(part, part.url);
      continue;
    }
    const blob = await options.getBlob(part.blob.hash);
    if (blob === undefined) missing++;
    else urls.set(part, `data:${blob.mediaType};base64,${Buffer.from(blob.bytes).toString("base64")}`);
  }
  if (missing > 0) notices.push(imagesLeftOutNotice(missing, translate("notice.images-left-out.gone")));
  return urls;
}

function toChatMessages(
  messages: readonly StoredMessage[],
  images: ReadonlyMap<Picture, string>,
  isShared: boolean,
): ChatMessage[] {
  const result: ChatMessage[] = [];
  // Services refuse pictures in assistant messages, so generated pictures go into the next user message.
  let generated: ContentPart[] = [];
  for (const [index, message] of messages.entries()) {
    const name = isShared && message.role === "user" ? message.author?.name : undefined;
    const isFirstOfRoom = message.room !== undefined && messages[index - 1]?.room === undefined;
    const isLastOfRoom = message.room !== undefined && messages[index + 1]?.room === undefined;
    const words =
      message.room === undefined
        ? toText(message, name)
        : toRoomText(message, toText(message, undefined), isFirstOfRoom);
    const text = isLastOfRoom ? `${words}\n\n${roomEnd}` : words;
    const pictures = message.parts.flatMap((part): ContentPart[] => {
      const url = part.kind === "image" || part.kind === "image-link" ? images.get(part) : undefined;
      return url === undefined ? [] : [{ kind: "image", url }];
    });
    if (message.role === "assistant") {
      generated = [...generated, ...pictures];
      result.push({ role: "assistant", content: text });
      continue;
    }
    const parts = [...generated, ...pictures];
    generated = [];
    const before = result.at(-1);
    // What was said in a row is one message.
    if (message.room !== undefined && !isFirstOfRoom && before !== undefined) {
      result[result.length - 1] = { role: "user", content: joinContents(before.content, text, parts) };
      continue;
    }
    result.push({ role: "user", content: parts.length === 0 ? text : [{ kind: "text", text }, ...parts] });
  }
  return result;
}

/** Whether a person's message is shown in several lines. */
function isOfSeveralLines({ role, room, parts }: StoredMessage): boolean {
  if (role !== "user" || room !== undefined) return false;
  return (
    parts.length > 1 || parts.some((part) => part.kind === "file" || lineBreak.test(toPiece(part, role)))
  );
}

function joinContents(
  before: ChatMessage["content"],
  text: string,
  pictures: readonly ContentPart[],
): ChatMessage["content"] {
  if (typeof before === "string" && pictures.length === 0) return `${before}\n\n${text}`;
  const parts: readonly ContentPart[] =
    typeof before === "string" ? [{ kind: "text", text: before }] : before;
  return [...parts, { kind: "text", text }, ...pictures];
}

function toText(message: StoredMessage, name: string | undefined): string {
  const pieces = message.parts.map((part) => toPiece(part, message.role));
  const text = pieces.filter((piece) => piece !== "").join("\n\n");
  return name === undefined ? text : toNamedText(name, text);
}

function toPiece(part: MessagePart, role: StoredMessage["role"]): string {
  switch (part.kind) {
    case "text":
      return part.text;
    case "voice":
      return `[voice note ${part.name}, transcribed] ${part.text}`;
    case "file":
      return `[file ${part.name}]\n${toQuoted(part)}\n[end of ${part.name}]`;
    case "image":
      if (role === "assistant") return `[picture: ${part.altText ?? part.name}]`;
      return part.altText === undefined
        ? `[picture ${part.name}]`
        : `[picture ${part.name}: ${part.altText}]`;
    case "image-link":
      return "[picture at an address]";
    case "unread":
      return `[file ${part.name}, not read: ${part.reason}]`;
  }
}

/** Code and tables go into a code block of their language. */
function toQuoted({ name, text }: Extract<MessagePart, { kind: "file" }>): string {
  const language = languageOf(name);
  return language === undefined ? text : toFenced(text, language);
}

/** The tokens left for messages beside the answer; never less than 1,000. */
export function budgetFor(contextLength: number | undefined, maxTokens: number, factor: number): number {
  const available = (contextLength ?? defaultContextLength) * 0.9 - maxTokens;
  return Math.max(1000, Math.floor(available / factor));
}

/** How many real tokens one estimated token stands for, learned per model from the gateway's own counts. */
export interface TokenFactors {
  of(model: string): number;
  learn(model: string, estimated: number, counted: number | undefined): void;
}

/** Most models whose factor is remembered. */
const maxModels = 500;

/** @see {@link TokenFactors} */
export function createTokenFactors(): TokenFactors {
  const factors = new LRUCache<string, number>({ max: maxModels });
  return {
    of: (model) => factors.get(model) ?? 1,
    learn(model, estimated, counted) {
      // Few tokens say little, and pictures are counted differently.
      if (counted === undefined || estimated < 200 || counted < 50 || estimated % tokensPerImage === 0)
        return;
      const seen = Math.min(4, Math.max(0.25, counted / estimated));
      factors.set(model, (factors.get(model) ?? seen) * 0.7 + seen * 0.3);
    },
  };
}
