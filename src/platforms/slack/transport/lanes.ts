import { isParleyError, ParleyError } from "../../../core/errors.ts";
import { createLimits, type LimitsOptions, type Urgency } from "../../delivery/limits.ts";

export interface CallTiming {
  readonly urgency: Urgency;
  /** The call fails rather than wait longer than this for room. */
  readonly withinMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Calls count against the limits with these names. */
export const lanes = {
  post: "chat.postMessage",
  posts: (channel: string): readonly string[] => [`${lanes.post} ${channel}`, lanes.post],
  update: "chat.update",
  remove: "chat.delete",
  startStream: "chat.startStream",
  appendStream: "chat.appendStream",
  stopStream: "chat.stopStream",
  sessions: "agents.sessions.setStatus",
  ephemeral: "chat.postEphemeral",
  uploads: "files.completeUploadExternal",
} as const;

/** These windows are a little longer than Slack's, since calls take different times to arrive there. */
const [minuteMs, channelMs] = [61_000, 5300];
/** Refusals, notices, files and private answers come before all but final texts that wait longer. */
export const noticeTiming: CallTiming = { urgency: "final", withinMs: minuteMs };
/**
 * Slack takes about one post a second in a channel, "several hundred" a minute in a workspace, and at least
 * so many calls in tiers 2, 3 and 4. Streams are started less often, so that each can be stopped.
 * @see https://docs.slack.dev/apis/web-api/rate-limits lists the tiers.
 */
const perMinute: Readonly<Record<string, number>> = {
  [lanes.post]: 300,
  [lanes.startStream]: 16,
  [lanes.stopStream]: 20,
  [lanes.update]: 50,
  [lanes.sessions]: 50,
  [lanes.remove]: 50,
  [lanes.appendStream]: 100,
  [lanes.uploads]: 100,
  [lanes.ephemeral]: 100,
};
/** A longer Retry-After for a post comes from the limit of the workspace. */
const maxChannelWaitMs = 5000;

/** Creates the limits of the calls in one workspace. */
export function createWorkspaceLimits(options: Pick<LimitsOptions, "clock" | "meter">) {
  return createLimits({
    ...options,
    platform: "slack",
    limitOf(lane) {
      if (lane.startsWith(`${lanes.post} `)) return { perWindow: 5, windowMs: channelMs };
      const perWindow = perMinute[lane];
      return perWindow === undefined ? undefined : { perWindow, windowMs: minuteMs };
    },
  });
}

/** Names the limit in the error of a post, because Slack does not say which of its limits was reached. */
export function withLane(error: unknown): unknown {
  if (!isParleyError(error) || (error.retryAfterMs ?? 0) <= maxChannelWaitMs) return error;
  const { code, message, retryAfterMs, detail, cause } = error;
  return new ParleyError(code, message, {
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    detail: { ...detail, lane: lanes.post },
    cause,
  });
}

/** Returns whether a call had no effect: there was no room for it, or Slack refused it as too many. */
export function isLimited(error: unknown): error is ParleyError & { readonly retryAfterMs: number } {
  return isParleyError(error) && error.retryAfterMs !== undefined;
}
