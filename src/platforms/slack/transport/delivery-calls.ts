import type { Clock } from "../../../core/clock.ts";
import { isParleyError, ParleyError } from "../../../core/errors.ts";
import { systemClock } from "../../../support/clock.ts";
import type {
  LaneLimit,
  Urgency,
  DeliveryScheduler,
  Reservation,
} from "../../delivery/delivery-scheduler.ts";
import type { MessageRef } from "../address.ts";
import type { SessionState, SlackApi, SlackContent, StreamEnd } from "./web-api.ts";

/** The timing says when a call is sent. */
export interface CallTiming {
  readonly urgency: Urgency;
  /** The call fails rather than wait longer than this for room. */
  readonly withinMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly reservation?: Reservation | undefined;
}

type MarkedTiming = CallTiming & { readonly mark?: string };

/** Calls count against the limits with these names. */
export const lanes = {
  posts: (channel: string): readonly string[] => [`${postMethod} ${channel}`, postMethod],
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

const postMethod = "chat.postMessage";
/** These windows are a little longer than Slack's, since calls take different times to arrive there. */
const [minuteMs, channelMs] = [61_000, 5300];
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
  if (lane === postMethod) return postLimits.workspace;
  if (lane.startsWith(`${postMethod} `)) return postLimits.channel;
  const most = perMinute[lane];
  return most === undefined
    ? undefined
    : { perWindow: most, windowMs: minuteMs, floor: Math.ceil(most / 5), isMinimum: true };
}

/** These calls of Slack's show something. Each is sent when the limits of its method have room. */
export type DeliveryCalls = ReturnType<typeof createDeliveryCalls>;

/** Returns Slack's calls that show something, which wait for room under the limits of their methods. */
export function createDeliveryCalls(api: SlackApi, scheduler: DeliveryScheduler, clock: Clock = systemClock) {
  function send<T>(callLanes: readonly string[], timing: CallTiming, work: () => Promise<T>): Promise<T> {
    const { urgency, withinMs, signal, reservation } = timing;
    const method = callLanes.at(-1) ?? "";
    const deadline = clock.monotonic() + withinMs;
    return scheduler.send({ lanes: callLanes, urgency, method, deadline, signal, reservation }, work);
  }

  return {
    post: (
      { channel, thread }: { readonly channel: string; readonly thread: string | undefined },
      content: SlackContent,
      timing: MarkedTiming,
    ) =>
      send(lanes.posts(channel), timing, () =>
        api.post(channel, thread, content, timing.mark).catch((error: unknown) => {
          throw withLane(error);
        }),
      ),
    update: (ref: MessageRef, content: SlackContent, timing: MarkedTiming) =>
      send([lanes.update], timing, () => api.update(ref, content, timing.mark)),
    remove: (ref: MessageRef, timing: CallTiming) => send([lanes.remove], timing, () => api.remove(ref)),
    startStream: (channel: string, thread: string, markdown: string, timing: CallTiming) =>
      send([lanes.startStream], timing, () => api.startStream(channel, thread, markdown)),
    appendStream: (ref: MessageRef, markdown: string, timing: CallTiming) =>
      send([lanes.appendStream], timing, () => api.appendStream(ref, markdown)),
    stopStream: (ref: MessageRef, end: StreamEnd, timing: CallTiming) =>
      send([lanes.stopStream], timing, () => api.stopStream(ref, end)),
    setSessionStatus: (channel: string, thread: string, session: SessionState, timing: CallTiming) =>
      send([lanes.sessions], timing, () => api.setSessionStatus(channel, thread, session)),
  };
}

/** Names the limit in the error, because Slack does not say which of a post's limits was reached. */
function withLane(error: unknown): unknown {
  if (!isParleyError(error) || (error.retryAfterMs ?? 0) <= maxChannelWaitMs) return error;
  const { code, message, retryAfterMs, detail, cause } = error;
  return new ParleyError(code, message, {
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    detail: { ...detail, lane: postMethod },
    cause,
  });
}

/** Refusals, notices, files and private answers come before all but final texts that wait longer. */
const noticeTiming: CallTiming = { urgency: "final", withinMs: minuteMs };

/** Returns the API for everything outside of public replies, under the same limits. */
export function createScheduledApi(api: SlackApi, scheduler: DeliveryScheduler, clock: Clock): SlackApi {
  const calls = createDeliveryCalls(api, scheduler, clock);
  function send(method: string, work: () => Promise<void>): Promise<void> {
    const deadline = clock.monotonic() + noticeTiming.withinMs;
    return scheduler.send({ lanes: [method], urgency: "final", method, deadline }, work);
  }
  return {
    ...api,
    post: (channel, thread, content, mark) =>
      calls.post({ channel, thread }, content, mark === undefined ? noticeTiming : { ...noticeTiming, mark }),
    upload: (...args) => send(lanes.uploads, () => api.upload(...args)),
    postEphemeral: (...args) => send(lanes.ephemeral, () => api.postEphemeral(...args)),
    setSessionStatus: (...args) => send(lanes.sessions, () => api.setSessionStatus(...args)),
    renameSession: (...args) => send(lanes.renames, () => api.renameSession(...args)),
  };
}

/** Returns whether a call had no effect: there was no room for it, or Slack refused it as too many. */
export function isLimited(error: unknown): error is ParleyError & { readonly retryAfterMs: number } {
  return isParleyError(error) && error.retryAfterMs !== undefined;
}
