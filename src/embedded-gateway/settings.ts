import type { ModelPrice } from "../core/model-price.ts";

/** What a model is for. A model without the list is tried for every operation. */
export type Capability = "chat" | "vision" | "draws-in-chat" | "images" | "transcription";

/** A model of an upstream, as the settings describe it. */
export interface ModelConfig {
  /** The upstream's own id. */
  readonly id: string;
  readonly capabilities?: readonly Capability[] | undefined;
  /** In tokens. */
  readonly contextLength?: number | undefined;
  readonly prices?: ModelPrice | undefined;
}

/** One OpenAI-compatible service. */
export interface UpstreamConfig {
  /** With its version segment, without a trailing slash. */
  readonly baseUrl: string;
  readonly apiKey?: string;
  /** Sent with each request, e.g. for an organisation. */
  readonly headers: Readonly<Record<string, string>>;
  /** The models that are offered. Default: the upstream's own list. */
  readonly models?: readonly ModelConfig[];
  /** Whether image URLs are downloaded here and sent as data URIs. */
  readonly inlineImages: boolean;
  /** Whether streams are requested with usage. */
  readonly streamUsage: boolean;
  /** Retries of one upstream, before the first byte of its answer. */
  readonly retries: number;
  /** Silence after which the upstream counts as failed, in milliseconds. */
  readonly timeoutMs: number;
}

/** Validated settings of the embedded gateway. */
export interface GatewayConfig {
  /** Whether the sandbox models are offered. */
  readonly sandbox: boolean;
  /** Keyed by the prefix of their models' public ids. */
  readonly upstreams: Readonly<Record<string, UpstreamConfig>>;
  /** Additional public ids, each for another public id. */
  readonly aliases: Readonly<Record<string, string>>;
  /** Models that are tried in order when a model fails before its first byte. */
  readonly fallbacks: Readonly<Record<string, readonly string[]>>;
}

/** The settings without a file: the sandbox alone. */
export const defaultGatewayConfig: GatewayConfig = {
  sandbox: true,
  upstreams: {},
  aliases: {},
  fallbacks: {},
};
