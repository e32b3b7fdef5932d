import type { Log } from "../../core/telemetry.ts";
import type { Exchange } from "../exchange.ts";
import type { LoadImage } from "../load-image.ts";
import type { Target } from "../router.ts";
import type { UpstreamUsage } from "./upstream-usage.ts";
import type { UpstreamClient } from "./upstream-client.ts";

/** One client's request on its way to upstreams. */
export interface Forwarding {
  readonly exchange: Exchange;
  readonly targets: readonly [Target, ...Target[]];
  readonly log: Log;
  /** Silence after which a waiting stream is begun with a comment, in milliseconds. */
  readonly pingMs: number;
  clientOf(target: Target): UpstreamClient;
  readonly loadImage: LoadImage;
  /** Whether a picture's address is this gateway's own, which no upstream can reach. */
  isOwnPicture(url: string): boolean;
  /** Called once with what the answer used. Contract: must not throw. */
  onUsage(target: Target, usage: UpstreamUsage): void;
}

/** The largest answer that is not a stream; pictures come as base64. */
export const maxAnswerBytes = 128 * 1024 * 1024;

/** Headers of a forwarded answer: who gave it. */
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
