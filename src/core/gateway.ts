import type { ParleyError } from "./errors.ts";

/** A piece of a message to a model. An image's `url` is an https address or a `data:<type>;base64,` URI. */
export type ContentPart =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "image"; readonly url: string };

/** One message of a conversation. */
export interface ChatMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string | readonly ContentPart[];
}

/** The request of {@link Gateway.chat}. */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  /** The longest answer in tokens. Default 1024. */
  readonly maxTokens?: number;
  /** 0 to 2. Default 1. */
  readonly temperature?: number;
  /** Default true. */
  readonly stream?: boolean;
  /** Set where nobody reads what the model writes as an answer: a title, or a summary for the model. */
  readonly isAside?: true;
}

/** The operations of a gateway. */
export type Operation = "chat" | "image" | "transcription" | "models";

/** The operations for which one model is chosen. */
export type ModelOperation = Exclude<Operation, "models">;

/** Tokens and cost of one call. `isEstimated` means that Parley computed what the gateway did not report. */
export interface Usage extends BilledAmounts {
  readonly costUsd?: number;
  readonly isEstimated: boolean;
  /** Whether `costUsd` is at an assumed price, because the model has no known one. It is estimated then. */
  readonly isAssumed?: true;
}

/** An image in an answer. */
export interface GeneratedImage {
  readonly bytes: Uint8Array;
  /** The type that was sniffed from the bytes. */
  readonly mediaType: string;
  /** The prompt as the model revised it, if the model reports that. */
  readonly revisedPrompt?: string;
}

/** Why an answer ended: complete, cut at `maxTokens`, withheld by the provider, or something else. */
export type FinishReason = "stop" | "length" | "filtered" | "other";

/** A page that an answer cites. `url` is an http(s) address. */
export interface AnswerSource {
  readonly url: string;
  readonly title?: string;
}

/** An event of a streamed answer. `finish` is always the last, and a stream without it throws. */
export type ChatEvent =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "reasoning"; readonly text: string }
  /** The answer's text so far turned out to be the model's thoughts. The answer begins after this event. */
  | { readonly kind: "retract" }
  | { readonly kind: "image"; readonly image: GeneratedImage }
  | { readonly kind: "notice"; readonly text: string }
  | {
      readonly kind: "finish";
      readonly reason: FinishReason;
      readonly model: string;
      /** The model that answered in place of the requested one, which failed. */
      readonly fallback?: string;
      readonly usage: Usage;
      /** At most ten sources, in the order in which the answer names them. */
      readonly sources?: readonly AnswerSource[];
    };

/** The request of {@link Gateway.generateImages}. */
export interface ImageRequest {
  readonly model: string;
  readonly prompt: string;
  readonly count?: number;
  /** `<width>x<height>` in pixels. */
  readonly size?: string;
}

/** The result of {@link Gateway.generateImages}. `notices` are sentences for people. */
export interface ImageAnswer {
  readonly images: readonly GeneratedImage[];
  readonly model: string;
  /** The same as in {@link ChatEvent}. */
  readonly fallback?: string;
  readonly usage: Usage;
  readonly notices: readonly string[];
}

/** The request of {@link Gateway.transcribe}. */
export interface TranscriptionRequest {
  readonly model: string;
  readonly bytes: Uint8Array;
  /** Its extension fits the sniffed container, because services choose their decoder by it. */
  readonly fileName: string;
  readonly mediaType: string;
  /** ISO 639-1 code of the spoken language. */
  readonly language?: string;
  /** Names and terms that guide the recognition. */
  readonly hint?: string;
  readonly durationMs?: number;
}

/** Words of a recording with the time at which they begin, and end where that is known. */
export interface TimedWords {
  readonly fromSeconds: number;
  readonly toSeconds?: number;
  readonly text: string;
}

/** The result of {@link Gateway.transcribe}. `notices` are sentences for people. */
export interface TranscriptionAnswer {
  readonly text: string;
  /** The same words with times, in order, if the gateway reports times. */
  readonly timed?: readonly TimedWords[];
  readonly model: string;
  /** The same as in {@link ChatEvent}. */
  readonly fallback?: string;
  readonly language?: string;
  readonly usage: Usage;
  readonly notices: readonly string[];
}

/** What a model can do. A field is `undefined` until the gateway's list or a call has shown it. */
export interface ModelCapabilities {
  readonly chats?: boolean;
  readonly seesImages?: boolean;
  readonly drawsInChat?: boolean;
  readonly generatesImages?: boolean;
  readonly transcribes?: boolean;
}

/** A model of the gateway's list. */
export interface Model {
  readonly id: string;
  readonly ownedBy?: string;
  readonly createdAt?: number;
  /** The context window in tokens. */
  readonly contextLength?: number;
  readonly capabilities: ModelCapabilities;
  readonly price?: KnownPrice;
}

/**
 * The four operations of the model gateway. Every failure is a ParleyError with a `gateway-…` code. An abort
 * of `signal` ends the request at the server at once and throws the signal's reason.
 */
export interface Gateway {
  chat(request: ChatRequest, signal: AbortSignal): AsyncIterable<ChatEvent>;
  generateImages(request: ImageRequest, signal: AbortSignal): Promise<ImageAnswer>;
  transcribe(request: TranscriptionRequest, signal: AbortSignal): Promise<TranscriptionAnswer>;
  /** Uses the cache while it is fresh. */
  listModels(signal: AbortSignal): Promise<readonly Model[]>;
  /** Returns the cached list, which may be empty, without waiting. */
  knownModels(): readonly Model[];
  /**
   * The highest price of a call, over the model and all fallbacks that may answer for it. It is `undefined`
   * if one of their prices is unknown. It never waits.
   */
  highestPrice(operation: ModelOperation, model: string): ModelPrice | undefined;
}

/** What can keep a gateway from answering anybody. */
export type TroubleKind =
  | "unreachable"
  | "key-refused"
  | "web-page"
  | "redirects"
  | "no-model"
  | "unpaid"
  | "failing"
  | "busy";

/** A problem of the gateway that affects more than one request. */
export interface GatewayTrouble {
  readonly kind: TroubleKind;
  /** Tells operators the problem after the gateway's name: `refuses the key (401)`. No secrets. */
  readonly text: string;
  /** The error that people see who ask in the meantime. */
  readonly error: ParleyError;
  /** How long it counts without further news, in milliseconds. 0: the gateway is soon asked again. */
  readonly holdsMs: number;
}

/** Tells the parts that face people whether the gateway answers. */
export interface GatewayOutlook {
  /** The error that keeps it from answering now, if one is known. */
  trouble(): ParleyError | undefined;
  /** Calls `listener` when a trouble begins, changes or ends. The returned function removes the listener. */
  onChange(listener: () => void): () => void;
  /** Asks the gateway if the known state is old. The answer arrives as a change. */
  look(): void;
}

/** What a model costs, in USD. Only the fields that apply to the model are set. */
export interface ModelPrice {
  /** Price per million tokens of the prompt. */
  readonly inputPerMillionUsd?: number | undefined;
  /** Price per million tokens of the answer. */
  readonly outputPerMillionUsd?: number | undefined;
  readonly perAudioMinuteUsd?: number | undefined;
  readonly perImageUsd?: number | undefined;
}

/** A model's price. `isGuess` means that it was inferred from the model's name. */
export interface KnownPrice {
  readonly price: ModelPrice;
  readonly isGuess: boolean;
}

/** Takes the higher of two prices field by field, so that no call costs more at either. */
export function higherPrice(one: ModelPrice, other: ModelPrice): ModelPrice {
  const highest = (field: keyof ModelPrice): number | undefined => {
    const values = [one[field], other[field]].filter((value) => value !== undefined);
    return values.length === 0 ? undefined : Math.max(...values);
  };
  return {
    inputPerMillionUsd: highest("inputPerMillionUsd"),
    outputPerMillionUsd: highest("outputPerMillionUsd"),
    perAudioMinuteUsd: highest("perAudioMinuteUsd"),
    perImageUsd: highest("perImageUsd"),
  };
}

/** The amounts of a call to which prices apply. */
export interface BilledAmounts {
  readonly promptTokens?: number;
  readonly completionTokens?: number;
  readonly audioSeconds?: number;
  readonly images?: number;
}

/** Whether there is a price for everything that the operation is billed by. A free model has the price 0. */
export function isPriced(operation: ModelOperation, price: ModelPrice | undefined): price is ModelPrice {
  if (price === undefined) return false;
  const hasTokens = price.inputPerMillionUsd !== undefined && price.outputPerMillionUsd !== undefined;
  if (operation === "image") return price.perImageUsd !== undefined || hasTokens;
  if (operation === "transcription") return price.perAudioMinuteUsd !== undefined || hasTokens;
  return hasTokens;
}

/** Cost of a call in USD, to a billionth. It is `undefined` if the price covers nothing that was used. */
export function costOf(price: ModelPrice, amounts: BilledAmounts): number | undefined {
  const items = [
    [price.inputPerMillionUsd, (amounts.promptTokens ?? Number.NaN) / 1e6],
    [price.outputPerMillionUsd, (amounts.completionTokens ?? Number.NaN) / 1e6],
    [price.perAudioMinuteUsd, (amounts.audioSeconds ?? Number.NaN) / 60],
    [price.perImageUsd, amounts.images ?? Number.NaN],
  ] as const;
  let cost: number | undefined;
  for (const [each, amount] of items) {
    if (each !== undefined && !Number.isNaN(amount)) cost = (cost ?? 0) + each * amount;
  }
  return cost === undefined ? undefined : Math.round(cost * 1e9) / 1e9;
}
