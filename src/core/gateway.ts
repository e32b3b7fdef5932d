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

/** Request of {@link Gateway.chat}. */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  /** Longest answer, in tokens. Default 1024. */
  readonly maxTokens?: number;
  /** 0 to 2. Default 1. */
  readonly temperature?: number;
  /** Default true. */
  readonly stream?: boolean;
}

/** The operations of a gateway. */
export type Operation = "chat" | "image" | "transcription" | "models";

/** The operations that are asked of one model. */
export type ModelOperation = Exclude<Operation, "models">;

/** Tokens and cost of one call. `isEstimated`: computed here because the gateway did not report it. */
export interface Usage extends BilledAmounts {
  readonly costUsd?: number;
  readonly isEstimated: boolean;
}

/** An image in an answer. */
export interface GeneratedImage {
  readonly bytes: Uint8Array;
  /** Sniffed from the bytes. */
  readonly mediaType: string;
  /** The prompt as the model revised it, where it reports that. */
  readonly revisedPrompt?: string;
}

/** Why an answer ended: complete, cut at `maxTokens`, withheld by the provider, or an unknown reason. */
export type FinishReason = "stop" | "length" | "filtered" | "other";

/** A page that an answer rests on. `url` is an http(s) address. */
export interface AnswerSource {
  readonly url: string;
  readonly title?: string;
}

/** The events of a streamed answer. `finish` is always the last; a stream without it throws. */
export type ChatEvent =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "reasoning"; readonly text: string }
  /** The text of the answer so far was the model's thoughts: the answer begins after this. */
  | { readonly kind: "retract" }
  | { readonly kind: "image"; readonly image: GeneratedImage }
  | { readonly kind: "notice"; readonly text: string }
  | {
      readonly kind: "finish";
      readonly reason: FinishReason;
      readonly model: string;
      /** The model that was asked instead, because the requested one did not answer. */
      readonly fallback?: string;
      readonly usage: Usage;
      /** In the order in which the answer names them, at most ten. */
      readonly sources?: readonly AnswerSource[];
    };

/** Request of {@link Gateway.generateImages}. */
export interface ImageRequest {
  readonly model: string;
  readonly prompt: string;
  /** Number of images. */
  readonly count?: number;
  /** `<width>x<height>` in pixels. */
  readonly size?: string;
}

/** Result of {@link Gateway.generateImages}. `notices` are sentences for people. */
export interface ImageAnswer {
  readonly images: readonly GeneratedImage[];
  readonly model: string;
  /** As in {@link ChatEvent}. */
  readonly fallback?: string;
  readonly usage: Usage;
  readonly notices: readonly string[];
}

/** Request of {@link Gateway.transcribe}. */
export interface TranscriptionRequest {
  readonly model: string;
  readonly bytes: Uint8Array;
  /** With the extension that the sniffed container has: services choose their decoder by it. */
  readonly fileName: string;
  readonly mediaType: string;
  /** ISO 639-1 code of the spoken language. */
  readonly language?: string;
  /** Names and terms that guide the recognition. */
  readonly hint?: string;
  readonly durationMs?: number;
}

/** Words of a recording with the time at which they begin. */
export interface TimedWords {
  readonly fromSeconds: number;
  readonly text: string;
}

/** Result of {@link Gateway.transcribe}. `notices` are sentences for people. */
export interface TranscriptionAnswer {
  readonly text: string;
  /** The same words with times, in order, where the gateway gives them. */
  readonly timed?: readonly TimedWords[];
  readonly model: string;
  /** As in {@link ChatEvent}. */
  readonly fallback?: string;
  readonly language?: string;
  readonly usage: Usage;
  readonly notices: readonly string[];
}

/** What a model can do; `undefined` where neither the gateway's list nor a call has shown it. */
export interface ModelCapabilities {
  readonly chats?: boolean;
  readonly seesImages?: boolean;
  readonly drawsInChat?: boolean;
  readonly generatesImages?: boolean;
  readonly transcribes?: boolean;
}

/** A record of the model list. */
export interface Model {
  readonly id: string;
  readonly ownedBy?: string;
  readonly createdAt?: number;
  /** In tokens. */
  readonly contextLength?: number;
  readonly capabilities: ModelCapabilities;
  /** One line for people, where known: "$0.10 in, $0.40 out per million tokens". */
  readonly price?: string;
}

/**
 * The model gateway's four operations. Every failure is a ParleyError with a `gateway-…` code; an abort of
 * `signal` ends the request at the server at once and throws the signal's reason.
 */
export interface Gateway {
  chat(request: ChatRequest, signal: AbortSignal): AsyncIterable<ChatEvent>;
  generateImages(request: ImageRequest, signal: AbortSignal): Promise<ImageAnswer>;
  transcribe(request: TranscriptionRequest, signal: AbortSignal): Promise<TranscriptionAnswer>;
  /** From the cache where it is fresh. */
  listModels(signal: AbortSignal): Promise<readonly Model[]>;
  /** The cached list, maybe empty; never waits. */
  knownModels(): readonly Model[];
  /**
   * The most that a call can cost: the highest prices of the model and of the fallbacks that may answer in its stead.
   * `undefined`: the price of one of them is not known. Never waits.
   */
  highestPrice(operation: ModelOperation, model: string): ModelPrice | undefined;
}

/** What keeps a gateway from answering anybody. */
export type TroubleKind =
  | "unreachable"
  | "key-refused"
  | "web-page"
  | "no-model"
  | "unpaid"
  | "failing"
  | "busy";

/** Something that keeps the gateway from answering, not only one request. */
export interface GatewayTrouble {
  readonly kind: TroubleKind;
  /** For operators, after the gateway's name: `refuses the key (401)`. No secrets. */
  readonly text: string;
  /** The error that people read who ask meanwhile. */
  readonly error: ParleyError;
  /** How long it counts where nothing else is learnt, in milliseconds. 0: it is asked for again soon. */
  readonly holdsMs: number;
}

/** Whether the gateway answers, for those who show it to people. */
export interface GatewayOutlook {
  /** The error that keeps it from answering now. `undefined`: none that is known. */
  trouble(): ParleyError | undefined;
  /** Calls `listener` when a trouble begins, becomes another one or is over, until the returned function is called. */
  onChange(listener: () => void): () => void;
  /** Asks the gateway where what is known is old; the answer is a change. */
  look(): void;
}

/** What a model costs, in USD. A model has the fields that apply to it. */
export interface ModelPrice {
  /** For a million tokens of the prompt. */
  readonly inputPerMillionUsd?: number | undefined;
  /** For a million tokens of the answer. */
  readonly outputPerMillionUsd?: number | undefined;
  readonly perAudioMinuteUsd?: number | undefined;
  readonly perImageUsd?: number | undefined;
}

/** The higher of two prices, field by field: no call costs more at either. */
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

/** The amounts of a call that prices apply to. */
export interface BilledAmounts {
  readonly promptTokens?: number;
  readonly completionTokens?: number;
  readonly audioSeconds?: number;
  /** Number of images. */
  readonly images?: number;
}

/** Cost of a call in USD, to a billionth. `undefined` when the price has no field for anything that was used. */
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
