import { isParleyError, ParleyError } from "../../../core/errors.ts";
import type {
  DeliveryScheduler,
  LaneLimit,
  Reservation,
  Urgency,
} from "../../delivery/delivery-scheduler.ts";

export interface CallTiming {
  readonly urgency: Urgency;
  /** The call fails rather than wait longer than this for room. */
  readonly withinMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly reservation?: Reservation | undefined;
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
  renames: "agents.sessions.rename",
  ephemeral: "chat.postEphemeral",
  uploads: "files.completeUploadExternal",
} as const;

/** These windows are a little longer than Slack's, since calls take different times to arrive there. */
const [minuteMs, channelMs] = [61_000, 5300];
/** Refusals, notices, files and private answers come before all but final texts that wait longer. */
export const noticeTiming: CallTiming = { urgency: "final", withinMs: minuteMs };
/** Slack takes "several hundred" posts a minute in a workspace, and about one a second in a channel. */
const postLimits: { readonly workspace: LaneLimit; readonly channel: LaneLimit } = {
  workspace: { perWindow: 300, windowMs: minuteMs, floor: 60, isMinimum: true },
  channel: { perWindow: 5, windowMs: channelMs, floor: 3, isMinimum: true },
};
/**
 * Slack takes at least so many calls a minute in tiers 2, 3 and 4.
 * @see https://docs.slack.dev/apis/web-api/rate-limits lists the tiers.
 */
const perMinute: Readonly<Record<string, number>> = {
  [lanes.startStream]: 20,
  [lanes.stopStream]: 20,
  [lanes.update]: 50,
  [lanes.sessions]: 50,
  [lanes.renames]: 50,
  [lanes.remove]: 50,
  [lanes.appendStream]: 100,
  [lanes.uploads]: 100,
  [lanes.ephemeral]: 100,
};
/** A longer Retry-After for a post comes from the limit of the workspace. */
const maxChannelWaitMs = 5000;

/** Returns what a lane takes until Slack says otherwise, or `undefined` where there is no such limit. */
export function limitOfLane(lane: string): LaneLimit | undefined {
  if (lane === lanes.post) return postLimits.workspace;
  if (lane.startsWith(`${lanes.post} `)) return postLimits.channel;
  const most = perMinute[lane];
  return most === undefined
    ? undefined
    : { perWindow: most, windowMs: minuteMs, floor: Math.ceil(most / 5), isMinimum: true };
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

/** Reserves room for one more call. A method that is limited now is not counted on. */
export function reserveNow(
  scheduler: Pick<DeliveryScheduler, "waitMs" | "reserve">,
  lane: string,
): Reservation | undefined {
  return scheduler.waitMs([lane], "final") > 0 ? undefined : scheduler.reserve(lane);
}

/** Returns whether a call had no effect: there was no room for it, or Slack refused it as too many. */
export function isLimited(error: unknown): error is ParleyError & { readonly retryAfterMs: number } {
  return isParleyError(error) && error.retryAfterMs !== undefined;
}
