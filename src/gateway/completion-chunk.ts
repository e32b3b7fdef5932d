import type { FinishReason } from "../core/gateway.ts";
import { type ErrorInfo, isFields, readError } from "./error-body.ts";

/** Token counts and cost as the gateway sent them. */
export interface ReportedUsage {
  readonly promptTokens?: number;
  readonly completionTokens?: number;
  readonly costUsd?: number;
}

/** How an answer ended, in the provider's word. `failed`: the word means that the provider broke down. */
export interface Ending {
  readonly reason: FinishReason | "failed";
  readonly word: string;
}

/** What one event or document of an answer holds. `text` may hold inline images; `images` are addresses or data URIs. */
export interface Piece {
  text: string;
  reasoning: string;
  /** A refusal in the model's own words. */
  refusal: string;
  images: readonly string[];
  ending: Ending | undefined;
  usage: ReportedUsage | undefined;
  model: string | undefined;
  error: ErrorInfo | undefined;
  /** The value was a part of an answer, to be followed by more. */
  isDelta: boolean;
  /** It had the shape of an answer at all. */
  isKnown: boolean;
}

const none: readonly string[] = [];

/**
 * Reads one event or document: an error first, then `delta ?? message` of the first choice. Anything optional that
 * is not of its type is taken as absent; items of lists fail one by one.
 */
export function readPiece(value: unknown): Piece {
  const piece: Piece = {
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
  piece.error = readError(value);
  if (piece.error !== undefined || !isFields(value)) return piece;
  if (typeof value["model"] === "string" && value["model"] !== "") piece.model = value["model"];
  piece.usage = readUsage(value["usage"]);
  const choices = value["choices"];
  if (Array.isArray(choices)) {
    piece.isKnown = true;
    for (const choice of choices as unknown[]) {
      if (isFields(choice) && (choice["index"] ?? 0) === 0) readChoice(choice, piece);
    }
  } else if (isFields(value["message"])) {
    // The native stream of a well-known local server: `{message, done, done_reason}`.
    piece.isKnown = true;
    readMessage(value["message"], piece);
    piece.isDelta = value["done"] === false;
    if (value["done"] === true) piece.ending = toEnding(value["done_reason"] ?? "stop");
  } else if (piece.usage !== undefined) piece.isKnown = true;
  return piece;
}

function readChoice(choice: Readonly<Record<string, unknown>>, piece: Piece): void {
  const delta = choice["delta"];
  const message = delta ?? choice["message"];
  piece.isDelta = isFields(delta);
  if (isFields(message)) readMessage(message, piece);
  else if (typeof choice["text"] === "string") piece.text += choice["text"];
  const ending = toEnding(choice["finish_reason"]);
  if (ending !== undefined) piece.ending = ending;
}

function readMessage(message: Readonly<Record<string, unknown>>, piece: Piece): void {
  const content = message["content"];
  if (typeof content === "string") piece.text += content;
  else if (Array.isArray(content)) for (const part of content as unknown[]) readPart(part, piece);
  const reasoning = message["reasoning"] ?? message["reasoning_content"];
  if (typeof reasoning === "string") piece.reasoning += reasoning;
  const refusal = message["refusal"];
  if (typeof refusal === "string") piece.refusal += refusal;
  const images = message["images"];
  if (!Array.isArray(images)) return;
  for (const image of images as unknown[]) {
    const url = imageAddress(image);
    if (url !== undefined) piece.images = [...piece.images, url];
  }
}

function readPart(part: unknown, piece: Piece): void {
  if (typeof part === "string") piece.text += part;
  if (!isFields(part)) return;
  const url = imageAddress(part);
  if (url !== undefined) piece.images = [...piece.images, url];
  else if (part["type"] === "refusal" && typeof part["refusal"] === "string")
    piece.refusal += part["refusal"];
  else if (part["type"] === "thinking" || part["type"] === "reasoning") {
    const thought = part["text"] ?? part["thinking"];
    if (typeof thought === "string") piece.reasoning += thought;
  } else if (typeof part["text"] === "string") piece.text += part["text"];
}

/** The address in an image part: `image_url` as object or text, `b64_json`, or `inline_data`. */
function imageAddress(part: unknown): string | undefined {
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

/** `undefined` while an answer goes on: `null`, missing, empty, or the word "null". */
function toEnding(word: unknown): Ending | undefined {
  if (typeof word !== "string" || word === "" || word === "null") return undefined;
  return { reason: reasons[word.toLowerCase()] ?? "other", word };
}

/** Usage under its usual names. `undefined`: nothing usable in it. */
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
