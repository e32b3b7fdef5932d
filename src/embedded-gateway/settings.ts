/** What a model is for. Without the list every operation is tried. */
export type Capability = "chat" | "vision" | "draws-in-chat" | "images" | "transcription";

/** Prices in USD. */
export interface Prices {
  readonly inputPerMillionTokens?: number | undefined;
  readonly outputPerMillionTokens?: number | undefined;
  readonly perAudioMinute?: number | undefined;
  readonly perImage?: number | undefined;
}

export interface ModelConfig {
  /** As the upstream calls it. */
  readonly id: string;
  readonly capabilities?: readonly Capability[] | undefined;
  /** In tokens. */
  readonly contextLength?: number | undefined;
  readonly prices?: Prices | undefined;
}

/** One OpenAI-compatible service. */
export interface UpstreamConfig {
  /** With its version segment, without a slash at the end. */
  readonly baseUrl: string;
  readonly apiKey?: string;
  /** Sent with each request, e.g. for an organisation. */
  readonly headers: Readonly<Record<string, string>>;
  /** What is offered; without it the upstream's own list. */
  readonly models?: readonly ModelConfig[];
  /** Whether pictures named by address are fetched here and sent as data URIs. */
  readonly inlineImages: boolean;
  /** Whether streams are asked for their usage. */
  readonly streamUsage: boolean;
  /** Further tries of one upstream, before the first byte of its answer. */
  readonly retries: number;
  /** Silence of the upstream after which it counts as failed, in milliseconds. */
  readonly timeoutMs: number;
}

/** The settings of the embedded gateway, checked. */
export interface GatewayConfig {
  /** Whether the sandbox models are offered. */
  readonly sandbox: boolean;
  /** By the prefix of their models' public ids. */
  readonly upstreams: Readonly<Record<string, UpstreamConfig>>;
  /** Further public ids and what they stand for. */
  readonly aliases: Readonly<Record<string, string>>;
  /** What is asked next where a model fails before its first byte. */
  readonly fallbacks: Readonly<Record<string, readonly string[]>>;
}

/** What holds without a file. */
export const defaultGatewayConfig: GatewayConfig = {
  sandbox: true,
  upstreams: {},
  aliases: {},
  fallbacks: {},
};
