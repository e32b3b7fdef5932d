import type { AnswerSource, FinishReason } from "../core/gateway.ts";
import { maxSources, toSource } from "../core/sources.ts";
import { isFields, type ErrorInfo, readError } from "./failures.ts";
import { pictureUrlOf } from "./pictures.ts";
import { withoutControls } from "../support/text.ts";

/** Token counts and cost as the gateway sent them. */
export interface ReportedUsage {
  readonly promptTokens?: number;
  readonly completionTokens?: number;
  readonly costUsd?: number;
}

/** The finish reason, with the provider's own word for it. `failed` means an error at the provider. */
export interface Ending {
  readonly reason: FinishReason | "failed";
  readonly word: string;
}

/** The content of one event or document. `text` may contain inline images. `images` are URLs or data URIs. */
export interface CompletionChunk {
  text: string;
  reasoning: string;
  /** The text of a refusal. */
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

/** Reads the events or documents of one answer, in order. Optional fields of a wrong type are ignored. */
export function createCompletionReader() {
  const picker = createChoicePicker();
  const guards = { text: createRepetitionGuard(), reasoning: createRepetitionGuard() };
  /** Whether text came in pieces. A whole message that comes beside or after them repeats it. */
  let hasPieces = false;
  const sources = new Map<string, AnswerSource>();

  const readChoice = (choice: Fields, chunk: CompletionChunk): void => {
    const delta = choice["delta"];
    chunk.isDelta ||= isFields(delta);
    if (isFields(delta)) {
      const piece = emptyChunk();
      readMessage(delta, piece);
      if (piece.text !== "") hasPieces = true;
      chunk.text += guards.text(piece.text);
      chunk.reasoning += guards.reasoning(piece.reasoning);
      chunk.refusal += piece.refusal;
      chunk.images = [...chunk.images, ...piece.images];
    } else if (!hasPieces && isFields(choice["message"])) readMessage(choice["message"], chunk);
    else if (!hasPieces && typeof choice["text"] === "string") chunk.text += choice["text"];
    // OpenRouter says "stop" where only the provider's own word tells of a failure.
    const native = toEnding(choice["native_finish_reason"]);
    const ending = native?.reason === "failed" ? native : toEnding(choice["finish_reason"]);
    if (ending !== undefined) chunk.ending = ending;
  };
  const readChoices = (around: Fields, picked: readonly Fields[], chunk: CompletionChunk): void => {
    chunk.isKnown = true;
    for (const choice of picked) readChoice(choice, chunk);
    addSources(sources, around, picked);
  };

  return {
    /** Reads an error, or else `delta ?? message` of the choice that is the answer. */
    read(received: unknown): CompletionChunk {
      const chunk = emptyChunk();
      const value = unwrapped(received);
      chunk.error = readError(value);
      if (chunk.error !== undefined || !isFields(value)) return chunk;
      if (typeof value["model"] === "string" && value["model"] !== "")
        chunk.model = withoutControls(value["model"]);
      chunk.usage = readUsage(value["usage"]);
      const choices = value["choices"];
      if (Array.isArray(choices)) readChoices(value, picker.pick(choices as unknown[]), chunk);
      else if (isFields(value["message"])) {
        // This is Ollama's native stream: `{message, done, done_reason}`.
        chunk.isKnown = true;
        readMessage(value["message"], chunk);
        chunk.isDelta = value["done"] === false;
        if (value["done"] === true) chunk.ending = toEnding(value["done_reason"] ?? "stop");
      } else if (chunk.usage !== undefined) chunk.isKnown = true;
      return cleaned(chunk);
    },
    /** Returns what was held back until the end of the answer, if anything was. */
    end(): CompletionChunk | undefined {
      const held = picker.end();
      if (held.length === 0) return undefined;
      const chunk = emptyChunk();
      readChoices({}, held, chunk);
      return cleaned(chunk);
    },
    /** Returns the sources of everything that was read. */
    sources: (): readonly AnswerSource[] => [...sources.values()],
  };
}

/** Takes out characters that no platform shows. */
function cleaned(chunk: CompletionChunk): CompletionChunk {
  for (const part of ["text", "reasoning", "refusal"] as const) chunk[part] = withoutControls(chunk[part]);
  return chunk;
}

/** A shorter answer may well have a piece that repeats it. */
const minRepeatedChars = 8;
/** A repetition may lack the blanks around the answer, or have others. */
const maxBlanks = 16;
/** In a longer answer no repetition is looked for. */
const maxGuardedChars = 1_000_000;

/**
 * Creates a function that returns the part of each piece that belongs to the answer. The last piece of some
 * servers is the whole answer once more. A piece that repeats everything before it is held back until
 * another one follows.
 */
function createRepetitionGuard(): (piece: string) => string {
  let said = "";
  let pieces = 0;
  let held = "";
  return (piece) => {
    if (piece === "" || said.length > maxGuardedChars) return piece;
    const isWholeAgain =
      pieces > 1 &&
      held === "" &&
      said.length >= minRepeatedChars &&
      Math.abs(said.length - piece.length) <= maxBlanks &&
      said.trim() === piece.trim();
    if (isWholeAgain) {
      held = piece;
      return "";
    }
    const text = held + piece;
    held = "";
    said += text;
    pieces += 1;
    return text;
  };
}

/** Unwraps `{success, data}`, into which some gateways put the answer, or each chunk. */
function unwrapped(value: unknown): unknown {
  const inner = isFields(value) && !("choices" in value) ? value["data"] : undefined;
  return isFields(inner) && Array.isArray(inner["choices"]) ? inner : value;
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

/** Picks the choices of an event that belong to the answer. */
interface ChoicePicker {
  pick(choices: readonly unknown[]): readonly Fields[];
  /** Returns the choice that is still held back when the answer ends. */
  end(): readonly Fields[];
}

/**
 * Picks the choice that is the answer. That is number 0. It is another number if all events have that one,
 * and any number where a server counts its events with it, from 0 or 1. A choice 1 after a choice 0 that goes
 * on may be the second event or another answer. The next event shows which, and until then it is held back.
 */
export function createChoicePicker(): ChoicePicker {
  let rule: "unknown" | "counted" | number = "unknown";
  let first: Fields | undefined;
  let held: Fields | undefined;
  const indexOf = (choice: Fields): unknown => choice["index"] ?? 0;

  const pickOne = (choice: Fields): readonly Fields[] => {
    const index = indexOf(choice);
    if (rule === "counted") return [choice];
    if (rule !== "unknown") return index === rule ? [choice] : [];
    if (first === undefined) {
      first = choice;
      if (index === 0) return [choice];
      held = choice;
      return [];
    }
    if (held === undefined) {
      if (index === 1 && toEnding(first["finish_reason"]) === undefined) {
        held = choice;
        return [];
      }
      rule = 0;
      return index === 0 ? [choice] : [];
    }
    const before = held;
    const heldIndex = indexOf(before);
    held = undefined;
    if (typeof heldIndex === "number" && index === heldIndex + 1) rule = "counted";
    else rule = typeof heldIndex === "number" && index === heldIndex && before === first ? heldIndex : 0;
    if (rule !== 0) return [before, choice];
    return index === 0 ? [choice] : [];
  };

  return {
    pick(choices) {
      const usable = choices.filter(isFields);
      const [only] = usable;
      if (only !== undefined && usable.length === 1) return pickOne(only);
      const wanted = typeof rule === "number" ? rule : 0;
      return usable.filter((choice) => indexOf(choice) === wanted);
    },
    end() {
      const last = held === undefined ? [] : [held];
      held = undefined;
      return last;
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
    const url = pictureUrlOf(image);
    if (url !== undefined) chunk.images = [...chunk.images, url];
  }
}

/** Returns the thoughts of a message. Servers that send them in several fields send the same ones. */
function reasoningOf(message: Fields): string {
  const texts = [message["reasoning"], message["reasoning_content"], message["thinking"]];
  const found = texts.find((text) => typeof text === "string" && text !== "");
  return typeof found === "string" ? found : textOfParts(message["reasoning_details"]);
}

/** Returns the texts of a list of parts, or a text as it is. */
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
  const url = pictureUrlOf(part);
  if (url !== undefined) chunk.images = [...chunk.images, url];
  else if (part["type"] === "refusal" && typeof part["refusal"] === "string")
    chunk.refusal += part["refusal"];
  else if (part["type"] === "thinking" || part["type"] === "reasoning")
    chunk.reasoning += textOfParts(part["text"] ?? part["thinking"] ?? part["summary"]);
  else if (typeof part["text"] === "string") chunk.text += part["text"];
}

const reasons: ReadonlyMap<string, Ending["reason"]> = new Map(
  Object.entries({
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
    sensitive: "filtered",
    safety: "filtered",
    image_safety: "filtered",
    recitation: "filtered",
    blocklist: "filtered",
    prohibited_content: "filtered",
    image_prohibited_content: "filtered",
    spii: "filtered",
    error: "failed",
    abort: "failed",
    network_error: "failed",
    insufficient_system_resource: "failed",
    malformed_function_call: "failed",
  }),
);

/** Returns `undefined` before the end, where the word is `null`, missing, empty, or "null". */
function toEnding(word: unknown): Ending | undefined {
  if (typeof word !== "string" || word === "" || word === "null") return undefined;
  return { reason: reasons.get(word.toLowerCase()) ?? "other", word };
}

/** More in one call is a mistake or an attack, and would use up any budget for good. */
const maxTokens = 1e9;
const maxCostUsd = 1e5;

/** Reads usage under its usual names. Amounts that are infinite, negative or absurdly large are dropped. */
export function readUsage(value: unknown): ReportedUsage | undefined {
  if (!isFields(value)) return undefined;
  const promptTokens = toCount(value["prompt_tokens"]) ?? toCount(value["input_tokens"]);
  const completionTokens = toCount(value["completion_tokens"]) ?? toCount(value["output_tokens"]);
  const costUsd = toAmount(value["cost"], maxCostUsd);
  if (promptTokens === undefined && completionTokens === undefined && costUsd === undefined) return undefined;
  return {
    ...(promptTokens !== undefined && { promptTokens }),
    ...(completionTokens !== undefined && { completionTokens }),
    ...(costUsd !== undefined && { costUsd }),
  };
}

function toCount(value: unknown): number | undefined {
  return Number.isInteger(value) ? toAmount(value, maxTokens) : undefined;
}

function toAmount(value: unknown, max: number): number | undefined {
  return typeof value === "number" && value >= 0 && value <= max ? value : undefined;
}

/** How many items of each list in a chunk are read. */
const maxItems = 50;

/**
 * Adds the sources that a chunk names: OpenAI's `annotations` of its choice, Perplexity's `citations` and
 * `search_results` beside them, which are repeated in each chunk. Each address once, at most ten. A title
 * that comes later is added to its source.
 */
function addSources(sources: Map<string, AnswerSource>, chunk: Fields, choices: readonly Fields[]): void {
  for (const choice of choices)
    for (const holder of [choice["delta"], choice["message"], choice])
      if (isFields(holder))
        for (const annotation of itemsOf(holder["annotations"])) add(sources, citationOf(annotation));
  for (const citation of itemsOf(chunk["citations"])) add(sources, citation);
  for (const result of itemsOf(chunk["search_results"])) add(sources, result);
}

const noEntries: readonly unknown[] = [];

function itemsOf(list: unknown): readonly unknown[] {
  return Array.isArray(list) ? (list as unknown[]).slice(0, maxItems) : noEntries;
}

function citationOf(annotation: unknown): unknown {
  if (!isFields(annotation) || annotation["type"] !== "url_citation") return undefined;
  return annotation["url_citation"] ?? annotation;
}

function add(sources: Map<string, AnswerSource>, item: unknown): void {
  const [address, name] = isFields(item) ? [item["url"], item["title"]] : [item, undefined];
  const source = toSource(address, name);
  if (source === undefined) return;
  const known = sources.get(source.url);
  if (known === undefined ? sources.size >= maxSources : known.title !== undefined) return;
  sources.set(source.url, source);
}
