import type { CancelTimer, Clock } from "../../../core/clock.ts";
import type { Log } from "../../../core/telemetry.ts";
import { retryPlatformCall } from "../../delivery/receive-patiently.ts";
import type { SlackApi } from "../transport/web-api.ts";
import { createFeature } from "../errors.ts";

/** A quick answer needs no session, unless it begins a thread: a stream would leave the session untitled. */
const delayMs = 500;
const endWithinMs = 61_000;

interface ReplySessionOptions {
  readonly channel: string;
  readonly thread: string;
  /** The session gets this title where the reply creates it. */
  readonly title: string | undefined;
  /** An earlier process may have shown the session as at work. */
  readonly isResumed: boolean;
}

interface SessionsOptions {
  readonly api: Pick<SlackApi, "setSessionStatus">;
  readonly clock: Clock;
  readonly log: Log;
}

interface Thread {
  readonly key: string;
  readonly channel: string;
  readonly ts: string;
  title: string | undefined;
  /** So many replies are at work. */
  replies: number;
  shown: "processing" | "active" | undefined;
  mayBeProcessing: boolean;
  isLeft: boolean;
  isSending: boolean;
}

/**
 * Sets each thread's session to `processing` while a reply is at work there, and to `active` after it. The
 * first never waits, and uses a part of the limit alone, so that the end finds room: a session that stays at
 * work looks like an answer that never comes.
 * @see https://docs.slack.dev/reference/methods/agents.sessions.setStatus describes the call.
 */
export function createSessions({ api, clock, log }: SessionsOptions) {
  const threads = new Map<string, Thread>();
  const feature = createFeature("sessions", log, clock);

  function threadAt(channel: string, ts: string): Thread {
    const key = `${channel} ${ts}`;
    const known = threads.get(key);
    if (known !== undefined) return known;
    const thread: Thread = {
      key,
      channel,
      ts,
      title: undefined,
      replies: 0,
      shown: undefined,
      mayBeProcessing: false,
      isLeft: false,
      isSending: false,
    };
    threads.set(key, thread);
    return thread;
  }

  /** Returns the status to set, and `undefined` where it stays as it is. */
  function wantedOf(thread: Thread): "processing" | "active" | undefined {
    if (thread.isLeft || !feature.isOn()) return undefined;
    const wanted = thread.replies > 0 ? "processing" : "active";
    if (wanted === "active" && !thread.mayBeProcessing) return undefined;
    return wanted === thread.shown ? undefined : wanted;
  }

  async function setProcessing(thread: Thread): Promise<void> {
    const { channel, ts, title } = thread;
    thread.mayBeProcessing = true;
    const timing = { urgency: "growth", withinMs: 0 } as const;
    await api.setSessionStatus(channel, ts, { status: "processing", title }, timing);
  }

  async function setActive({ channel, ts }: Thread): Promise<void> {
    const timing = { urgency: "final", withinMs: endWithinMs } as const;
    await retryPlatformCall(
      () => api.setSessionStatus(channel, ts, { status: "active" }, timing),
      clock.monotonic() + endWithinMs,
      undefined,
      clock,
    );
  }

  /** Brings what Slack shows in line with what is wanted, with one call at a time. */
  async function send(thread: Thread): Promise<void> {
    if (thread.isSending) return;
    thread.isSending = true;
    for (let status = wantedOf(thread); status !== undefined; status = wantedOf(thread)) {
      try {
        await (status === "processing" ? setProcessing(thread) : setActive(thread));
        thread.shown = status;
        if (status === "active") thread.mayBeProcessing = false;
      } catch (error) {
        if (!feature.note(error))
          log[status === "active" ? "warn" : "debug"]({ err: error, status }, "Slack session status not set");
        if (status === "processing") thread.shown = status;
        else break;
      }
    }
    thread.isSending = false;
    if (thread.replies > 0) return;
    threads.delete(thread.key);
  }

  return {
    /**
     * Opens a reply's part in a session, and returns `undefined` where Slack has no sessions for this app.
     */
    open({ channel, thread: ts, title, isResumed }: ReplySessionOptions) {
      if (!feature.isOn()) return undefined;
      let state: "new" | "waiting" | "begun" | "ended" = "new";
      let cancelTimer: CancelTimer | undefined;

      function start(): void {
        state = "begun";
        const thread = threadAt(channel, ts);
        thread.title ??= title;
        thread.replies += 1;
        thread.isLeft = false;
        thread.mayBeProcessing ||= isResumed;
        void send(thread);
      }

      return {
        /** Shows the session as at work, with Slack's Stop. A second call does nothing. */
        begin(): void {
          if (state !== "new") return;
          state = "waiting";
          if (title !== undefined) start();
          else cancelTimer = clock.after(delayMs, start, { keepsAlive: false });
        },
        /**
         * Ends the work of the reply. An abandoned reply goes on in another process, which sets the status.
         */
        end(isAbandoned: boolean): void {
          cancelTimer?.();
          const wasBegun = state === "begun";
          if (state === "ended" || (!wasBegun && (!isResumed || isAbandoned))) return;
          state = "ended";
          const thread = threadAt(channel, ts);
          if (wasBegun) thread.replies -= 1;
          thread.isLeft = isAbandoned && thread.replies === 0;
          thread.mayBeProcessing ||= isResumed;
          void send(thread);
        },
      };
    },
  };
}
