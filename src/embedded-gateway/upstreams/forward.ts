import type { Log } from "../../core/telemetry.ts";
import type { Exchange } from "../exchange.ts";
import type { LoadImage } from "../load-image.ts";
import type { Target } from "../router.ts";
import type { UpstreamUsage } from "./upstream-usage.ts";
import type { UpstreamClient } from "./upstream-client.ts";

/** A client's request that is being forwarded. */
export interface Forwarding {
  readonly exchange: Exchange;
  readonly targets: readonly [Target, ...Target[]];
  readonly log: Log;
  /** Silence after which a waiting stream is opened with a comment, in milliseconds. */
  readonly pingMs: number;
  clientOf(target: Target): UpstreamClient;
  readonly loadImage: LoadImage;
  /** Whether a URL is one of this gateway's own pictures, which upstreams cannot reach. */
  isOwnPicture(url: string): boolean;
  /** Called once with the usage of the answer. Contract: must not throw. */
  onUsage(target: Target, usage: UpstreamUsage): void;
}

/** Limit of an answer that is not streamed; it may contain images as base64. */
export const maxAnswerBytes = 128 * 1024 * 1024;

/** Headers of a forwarded answer that name the upstream. */
export function toAnswerHeaders(
  target: Target,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  const requestId = headers["x-request-id"];
  return {
    "x-upstream": target.prefix,
    ...(typeof requestId === "string" ? { "x-upstream-request-id": requestId } : {}),
  };
}
