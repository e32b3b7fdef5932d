import type { FinishReason } from "../core/gateway.ts";
import { type ErrorInfo, isFields, readError } from "./error-body.ts";

/** Token counts and cost as the gateway sent them. */
export interface ReportedUsage {
  readonly promptTokens?: number;
  readonly completionTokens?: number;
  readonly costUsd?: number;
}

/** Finish reason, with the provider's own word for it. `failed`: the word means an error at the provider. */
export interface Ending {
  readonly reason: FinishReason | "failed";
  readonly word: string;
}

/** Content of one event or document. `text` may contain inline images; `images` are URLs or data URIs. */
export interface CompletionChunk {
  text: string;
  reasoning: string;
  /** Text of a refusal. */
  refusal: string;
  images: readonly string[];
  ending: Ending | undefined;
  usage: ReportedUsage | undefined;
  model: string | undefined;
  error: ErrorInfo | undefined;
  /** Whether it is a part of an answer that more chunks follow. */
  isDelta: boolean;
  /** Whether it has the shape of an answer. */
  isKnown: boolean;
}

const none: readonly string[] = [];

type Fields = Readonly<Record<string, unknown>>;

/** Reads the events or documents of one answer, in their order. Optional fields of the wrong type are ignored. */
export interface CompletionReader {
  /** Reads an error, or else `delta ?? message` of the choice that is the answer. */
  read(value: unknown): CompletionChunk;
}

/** @see {@link CompletionReader} */
export function createCompletionReader(): CompletionReader {
  const picker = createChoicePicker();
  /** Whether text came in pieces: a whole message that comes beside or after them repeats it. */
  let hasPieces = false;

  const readChoice = (choice: Fields, chunk: CompletionChunk): void => {
    const delta = choice["delta"];
    chunk.isDelta ||= isFields(delta);
    if (isFields(delta)) {
      readMessage(delta, chunk);
      if (chunk.text !== "") hasPieces = true;
    } else if (!hasPieces && isFields(choice["message"])) readMessage(choice["message"], chunk);
    else if (!hasPieces && typeof choice["text"] === "string") chunk.text += choice["text"];
    const ending = toEnding(choice["finish_reason"]);
    if (ending !== undefined) chunk.ending = ending;
  };

  return {
    read(value) {
      const chunk = emptyChunk();
      chunk.error = readError(value);
      if (chunk.error !== undefined || !isFields(value)) return chunk;
      if (typeof value["model"] === "string" && value["model"] !== "") chunk.model = value["model"];
      chunk.usage = readUsage(value["usage"]);
      const choices = value["choices"];
      if (Array.isArray(choices)) {
        chunk.isKnown = true;
        for (const choice of picker.pick(choices as unknown[])) readChoice(choice, chunk);
      } else if (isFields(value["message"])) {
        // Ollama's native stream: `{message, done, done_reason}`.
        chunk.isKnown = true;
        readMessage(value["message"], chunk);
        chunk.isDelta = value["done"] === false;
        if (value["done"] === true) chunk.ending = toEnding(value["done_reason"] ?? "stop");
      } else if (chunk.usage !== undefined) chunk.isKnown = true;
      return chunk;
    },
  };
}

function emptyChunk(): CompletionChunk {
  return {
    text: "",
    reasoning: "",
    refusal: "",
    images: none,
    ending: undefined,
    usage: undefined,
    model: undefined,
    error: undefined,
    isDelta: false,
    isKnown: false,
  };
}

/**
 * Picks the choice that is the answer: number 0, or any one where a server numbers the choices by token. Whether a choice
 * 1 after a choice 0 is the second token or another answer shows with the next event: until then it is held back.
 */
function createChoicePicker(): { pick(choices: readonly unknown[]): readonly Fields[] } {
  let count = 0;
  let held: Fields | undefined;
  let isNumbered: boolean | undefined;
  return {
    pick(choices) {
      const usable = choices.filter(isFields);
      if (usable.length !== 1) return usable.filter((choice) => (choice["index"] ?? 0) === 0);
      const [choice] = usable as [Fields];
      const index = choice["index"] ?? 0;
      const at = count++;
      if (isNumbered === undefined && at === 1 && index === 1) {
        held = choice;
        return [];
      }
      isNumbered ??= at === 2 && index === 2 && held !== undefined ? true : at === 0 ? undefined : false;
      const before = isNumbered === true && held !== undefined ? [held] : [];
      held = undefined;
      return isNumbered === true || index === 0 ? [...before, choice] : before;
    },
  };
}

function readMessage(message: Fields, chunk: CompletionChunk): void {
  const content = message["content"];
  if (typeof content === "string") chunk.text += content;
  else if (Array.isArray(content)) for (const part of content as unknown[]) readPart(part, chunk);
  chunk.reasoning += reasoningOf(message);
  const refusal = message["refusal"];
  if (typeof refusal === "string") chunk.refusal += refusal;
  const images = message["images"];
  if (!Array.isArray(images)) return;
  for (const image of images as unknown[]) {
    const url = imageUrlOf(image);
    if (url !== undefined) chunk.images = [...chunk.images, url];
  }
}

/** The thoughts of a message; servers that send them in several fields send the same ones. */
function reasoningOf(message: Fields): string {
  const texts = [message["reasoning"], message["reasoning_content"], message["thinking"]];
  const found = texts.find((text) => typeof text === "string" && text !== "");
  return typeof found === "string" ? found : textOfParts(message["reasoning_details"]);
}

/** The texts of a list of parts, or a text as it is. */
function textOfParts(value: unknown): string {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return "";
  return (value as unknown[])
    .flatMap((part) => (isFields(part) && typeof part["text"] === "string" ? [part["text"]] : []))
    .join("");
}

function readPart(part: unknown, chunk: CompletionChunk): void {
  if (typeof part === "string") chunk.text += part;
  if (!isFields(part)) return;
  const url = imageUrlOf(part);
  if (url !== undefined) chunk.images = [...chunk.images, url];
  else if (part["type"] === "refusal" && typeof part["refusal"] === "string")
    chunk.refusal += part["refusal"];
  else if (part["type"] === "thinking" || part["type"] === "reasoning")
    chunk.reasoning += textOfParts(part["text"] ?? part["thinking"] ?? part["summary"]);
  else if (typeof part["text"] === "string") chunk.text += part["text"];
}

/** The URL in an image part: `image_url` as object or text, `b64_json`, or `inline_data`. */
function imageUrlOf(part: unknown): string | undefined {
  if (typeof part === "string") return /^(?:data:|https?:)/i.test(part.slice(0, 8)) ? part : undefined;
  if (!isFields(part)) return undefined;
  const image = part["image_url"] ?? (part["type"] === "image" ? (part["image"] ?? part["url"]) : undefined);
  if (typeof image === "string" && image !== "") return image;
  if (isFields(image) && typeof image["url"] === "string" && image["url"] !== "") return image["url"];
  if (typeof part["b64_json"] === "string") return `data:;base64,${part["b64_json"]}`;
  const inline = part["inline_data"] ?? part["inlineData"] ?? part["source"];
  if (isFields(inline) && typeof inline["data"] === "string") return `data:;base64,${inline["data"]}`;
  return undefined;
}

const reasons: Readonly<Record<string, Ending["reason"]>> = {
  stop: "stop",
  end_turn: "stop",
  stop_sequence: "stop",
  eos: "stop",
  complete: "stop",
  completed: "stop",
  length: "length",
  max_tokens: "length",
  max_output_tokens: "length",
  model_length: "length",
  content_filter: "filtered",
  refusal: "filtered",
  safety: "filtered",
  image_safety: "filtered",
  recitation: "filtered",
  blocklist: "filtered",
  prohibited_content: "filtered",
  image_prohibited_content: "filtered",
  spii: "filtered",
  error: "failed",
  insufficient_system_resource: "failed",
  malformed_function_call: "failed",
};

/** `undefined` before the end: `null`, missing, empty, or the word "null". */
function toEnding(word: unknown): Ending | undefined {
  if (typeof word !== "string" || word === "" || word === "null") return undefined;
  return { reason: reasons[word.toLowerCase()] ?? "other", word };
}

/** Usage under its usual names. `undefined` without any valid field. */
export function readUsage(value: unknown): ReportedUsage | undefined {
  if (!isFields(value)) return undefined;
  const promptTokens = toCount(value["prompt_tokens"]) ?? toCount(value["input_tokens"]);
  const completionTokens = toCount(value["completion_tokens"]) ?? toCount(value["output_tokens"]);
  const cost = value["cost"];
  const costUsd = typeof cost === "number" && Number.isFinite(cost) && cost >= 0 ? cost : undefined;
  if (promptTokens === undefined && completionTokens === undefined && costUsd === undefined) return undefined;
  return {
    ...(promptTokens !== undefined && { promptTokens }),
    ...(completionTokens !== undefined && { completionTokens }),
    ...(costUsd !== undefined && { costUsd }),
  };
}

function toCount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : undefined;
}
