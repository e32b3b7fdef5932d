import type { Clock } from "../../core/clock.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import type { MessageContent } from "../delivery/edit-target.ts";
import type { Reservation } from "../delivery/delivery-scheduler.ts";
import { committablePrefix, hasLink } from "./committable-prefix.ts";
import type { CallTiming, DeliveryCalls } from "./delivery-calls.ts";
import { isContentError, slackErrorCode } from "./errors.ts";
import { escapeMarkdown } from "./escape-markdown.ts";
import { toSlackContent } from "./message-blocks.ts";
import type { MessageMark, MessageRef } from "./web-api.ts";

/** Slack ends a stream about five minutes after its start. */
export const defaultStreamLifeMs = 4 * 60_000;

/** A message that Slack shows as growing. It is ended by exactly one of `finish` and `stop`, or left to Slack. */
export interface NativeStream {
  readonly ref: MessageRef;
  /** False: it takes no more text, and its message is edited from now on. */
  isOpen(): boolean;
  /** Whether the text continues what was sent, without a link. */
  takes(markdown: string): boolean;
  /** Appends what later text does not change. A stream that Slack has ended is closed without an error. */
  append(markdown: string, timing: CallTiming): Promise<void>;
  /** Ends it with the rest of the text, notices and buttons. False: the message has to be edited. */
  finish(content: MessageContent, timing: CallTiming): Promise<boolean>;
  /** Ends it as it is. A stream that cannot be ended is left to Slack. */
  stop(timing: CallTiming): Promise<void>;
  /** Gives back what it holds, and sends nothing more. */
  close(): void;
}

/** What {@link createNativeStream} needs. */
export interface NativeStreamOptions {
  readonly calls: Pick<DeliveryCalls, "appendStream" | "stopStream">;
  readonly ref: MessageRef;
  /** The Markdown that it was started with. */
  readonly started: string;
  readonly mark: MessageMark;
  /** Room for its end. */
  readonly reservation: Reservation;
  /** It is ended after so long. */
  readonly lifeMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** The beginning of a text that a stream can be started with. Empty: there is none yet. */
export function streamBeginning(markdown: string): string {
  const prefix = hasLink(markdown) ? "" : committablePrefix(markdown);
  return prefix.trim() === "" ? "" : prefix;
}

/** A stream that was just started. */
export function createNativeStream(options: NativeStreamOptions): NativeStream {
  const { calls, ref, mark, reservation, lifeMs, clock, log } = options;
  let sent = options.started;
  let isOpen = true;
  let last: Promise<unknown> = Promise.resolve();
  const cancelTimer = clock.after(lifeMs, () => void stop({ urgency: "final", withinMs: 30_000 }), {
    keepsAlive: false,
  });

  /** The timer must not end it during another call. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = last.then(work);
    last = Promise.allSettled([result]);
    return result;
  }

  function close(): void {
    isOpen = false;
    cancelTimer();
    reservation.release();
  }

  /** What follows the text sent so far, escaped. */
  function restOf(markdown: string): string {
    return escapeMarkdown(markdown).slice(escapeMarkdown(sent).length);
  }

  async function end(markdown: string, blocks: readonly object[], timing: CallTiming): Promise<void> {
    await calls.stopStream(ref, { markdown, blocks: [...blocks] as never, mark }, { ...timing, reservation });
    close();
  }

  function stop(timing: CallTiming): Promise<void> {
    return inTurn(async () => {
      if (!isOpen) return;
      try {
        await end("", [], timing);
      } catch (error) {
        log.info({ err: error }, "Slack stream not ended");
        close();
      }
    });
  }

  function takes(markdown: string): boolean {
    return markdown.startsWith(sent) && !hasLink(markdown);
  }

  return {
    ref,
    isOpen: () => isOpen,
    takes,
    append: (markdown, timing) =>
      inTurn(async () => {
        const prefix = committablePrefix(markdown);
        if (!isOpen || prefix.length <= sent.length || !prefix.startsWith(sent)) return;
        try {
          await calls.appendStream(ref, restOf(prefix), timing);
          sent = prefix;
        } catch (error) {
          if (!isEnded(error) && !isContentError(error)) throw error;
          log.info({ err: error }, "Slack stream ended early: going on by edits");
          // Refused content leaves it open; the edit that follows ends it.
          close();
        }
      }),
    finish: (content, timing) =>
      inTurn(async () => {
        if (!isOpen) return false;
        const isRest = takes(content.text);
        const { blocks } = toSlackContent(content);
        try {
          if (isRest) await end(restOf(content.text), blocks.filter(isNoMarkdown), timing);
          else await end("", [], timing);
          return isRest;
        } catch (error) {
          if (!isEnded(error) && !isContentError(error)) throw error;
          close();
          return false;
        }
      }),
    stop,
    close,
  };
}

const isNoMarkdown = (block: Readonly<Record<string, unknown>>): boolean => block["type"] !== "markdown";

/** Slack, or the reader by Slack's own Stop button, has ended the stream. */
function isEnded(error: unknown): boolean {
  const code = slackErrorCode(error) ?? "";
  return ["message_not_in_streaming_state", "stopped_by_user", "message_not_found"].includes(code);
}

const noStreams = new Set([
  "channel_type_not_supported",
  "feature_not_enabled",
  "invalid_arguments",
  "method_deprecated",
  "missing_recipient_team_id",
  "missing_recipient_user_id",
  "missing_scope",
  "not_allowed_token_type",
  "team_not_found",
  "unknown_method",
  "user_not_found",
]);

/** Where Slack has refused streams: it is not asked again for an hour. */
export interface StreamSupport {
  isOn(kind: "direct" | "channel"): boolean;
  /** Notes why a stream was not started. True: Slack has no streams there, and another way must be taken. */
  note(kind: "direct" | "channel", error: unknown): boolean;
}

const offMs = 60 * 60_000;

/** @see {@link StreamSupport} */
export function createStreamSupport(log: Log, clock: Clock): StreamSupport {
  const offUntil = { direct: Number.NEGATIVE_INFINITY, channel: Number.NEGATIVE_INFINITY };
  return {
    isOn: (kind) => clock.monotonic() >= offUntil[kind],
    note(kind, error) {
      if (!(error instanceof ParleyError) || !noStreams.has(slackErrorCode(error) ?? "")) return false;
      offUntil[kind] = clock.monotonic() + offMs;
      log.info({ kind, err: error }, "Slack has no streams here: replies are edited");
      return true;
    },
  };
}
