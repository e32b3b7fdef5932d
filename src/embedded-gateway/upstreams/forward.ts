import type { Log } from "../../core/telemetry.ts";
import type { Charge } from "../charge.ts";
import type { Exchange } from "../exchange.ts";
import type { LoadImage } from "../load-image.ts";
import type { Target } from "../router.ts";
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
  /** What the request costs; {@link tryTargets} tells it of each attempt. */
  readonly charge: Charge;
}

/** Headers of a forwarded answer that name the upstream. What could not be sent as a header is left out. */
export function toAnswerHeaders(
  target: Target,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  const requestId = headers["x-request-id"];
  return {
    "x-upstream": target.prefix,
    ...(typeof requestId === "string" && /^[\w.:/=+-]{1,200}$/.test(requestId)
      ? { "x-upstream-request-id": requestId }
      : {}),
  };
}
