import type { BilledAmounts, ModelPrice } from "./model-price.ts";

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
