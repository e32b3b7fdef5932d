import type { CancelTimer, Clock } from "../../core/clock.ts";
import type { Log } from "../../core/telemetry.ts";
import { systemClock } from "../../support/clock.ts";
import type { WorkSign } from "../delivery/edit-target.ts";
import type { DeliveryCalls } from "./delivery-calls.ts";
import { translate } from "../../words/translate.ts";

/** A quick answer needs no status line. */
const delayMs = 500;
/** Slack clears it after two minutes. */
const refreshMs = 100_000;

/** The line "Parley is thinking…" below a thread. */
export interface StatusLine extends WorkSign {
  /** Slack clears the line when the app posts in the thread. */
  posted(): void;
}

/** Shows a status line after half a second, and until it is cleared or something is posted. */
export function createStatusLine(options: {
  readonly calls: Pick<DeliveryCalls, "setStatus">;
  readonly channel: string;
  readonly thread: string;
  /** Default: the time of this process. */
  readonly clock?: Clock | undefined;
  readonly log: Log;
}): StatusLine {
  const { calls, channel, thread, clock = systemClock, log } = options;
  let wanted = "";
  let shown = "";
  let isSending = false;
  let cancelTimer: CancelTimer | undefined;

  /** Brings what Slack shows in line with what is wanted; one call at a time. */
  async function send(): Promise<void> {
    if (isSending) return;
    isSending = true;
    while (shown !== wanted) {
      const status = wanted;
      try {
        await calls.setStatus(channel, thread, status, { urgency: "preview", withinMs: 1000 });
      } catch (error) {
        // The next refresh tries again.
        log.debug({ err: error }, "optional Slack call failed");
        shown = "";
        break;
      }
      shown = status;
    }
    isSending = false;
  }

  function refresh(): void {
    if (wanted === "") return;
    shown = "";
    cancelTimer = clock.after(refreshMs, refresh, { keepsAlive: false });
    void send();
  }

  function clear(): void {
    wanted = "";
    cancelTimer?.();
    cancelTimer = undefined;
    void send();
  }

  return {
    showsWords: true,
    show(status) {
      wanted = toStatus(status);
      if (cancelTimer === undefined) cancelTimer = clock.after(delayMs, refresh, { keepsAlive: false });
      else if (shown !== "") void send();
    },
    clear,
    posted() {
      if (!isSending) shown = "";
      clear();
    },
  };
}

/** Slack puts the app's name before it: "Parley is drawing…"; "Parley is waiting. The gateway is busy; …". */
function toStatus(status = translate("delivery.thinking")): string {
  // Clauses are a sentence of their own, of which the app is not the subject.
  if (/[;；。]/.test(status)) return translate("slack.status.sentence", { status });
  return translate("slack.status", { status: `${status.slice(0, 1).toLowerCase()}${status.slice(1)}` });
}
