import type { CancelTimer, Clock } from "../../core/clock.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Json } from "../../core/events.ts";
import type { ReplyFile, Reply } from "../../core/reply.ts";
import type { ReplyAction } from "../../core/press.ts";
import type { Log } from "../../core/telemetry.ts";
import { systemClock } from "../../support/clock.ts";
import {
  type EditTarget,
  type Ending,
  isBare,
  type MessageContent,
  type ShownFiles,
  planEnding,
  planStreaming,
} from "./message-plan.ts";
import { createShownMessages } from "./shown-messages.ts";
import { toMarkdown } from "./split-markdown.ts";
import { isTransient } from "./receive-patiently.ts";

/** The options of {@link createEditingReply}. */
interface EditingReplyOptions {
  readonly target: EditTarget;
  /** References of messages that an earlier process posted for this reply, in order. They are edited. */
  readonly savedRefs?: readonly Json[];
  /** Files that an earlier process posted for this reply. They are not posted again. */
  readonly savedFiles?: ShownFiles | undefined;
  /** Is called and awaited after each post, with all references in order and the files shown. */
  saveRefs(refs: readonly Json[], files: ShownFiles | undefined): Promise<void>;
  readonly log: Log;
  /** Whether the platform has its own placeholder until the first post, so that `show` posts nothing. */
  readonly firstMessageIsShown?: boolean;
  /** Whether only files are shown before the reply ends. Default false. */
  readonly isCalm?: boolean;
  /** Whether `show` changes nothing. Default false. */
  readonly isEndOnly?: boolean;
  /** A button that is there while the reply grows. */
  readonly stop?: ReplyAction | undefined;
  /** The status until the first `status` or `write`. */
  readonly placeholder?: string;
  /** Whether this process still has the lease of the conversation. The default is that it has. */
  readonly isFresh?: (() => boolean) | undefined;
  /** The default is the time of this process. */
  readonly clock?: Clock | undefined;
}

/** After so many consecutive failures that are no limits of rate only the final text is shown. */
const maxFailures = 3;
/** How long final calls are retried. */
const endingMs = 120_000;
/** How long a target without room is left alone before it is asked again. */
const [minRoomWaitMs, maxRoomWaitMs] = [50, 1000];

/**
 * Creates a reply in messages that are posted once and then edited. The first text is shown at once, and
 * later text at least `minEditIntervalMs` apart, both where the target has room. Calls never overlap, and the
 * latest text wins. After three failures in a row only the final text is shown, which is retried for two
 * minutes. Before each call the lease is asked for its age: a process that was frozen shows nothing more.
 */
export function createEditingReply(options: EditingReplyOptions): Reply {
  const { target, stop, log, clock = systemClock } = options;
  const { sign } = target;
  const abandoned = new AbortController();
  /** Growing text that waits for room leaves it to the final text. */
  let growth = new AbortController();
  const pace = createPace(target, clock);
  const shown = createShownMessages({
    ...options,
    savedRefs: options.savedRefs ?? [],
    savedFiles: options.savedFiles,
    saveRefs: (refs, shownFiles) => options.saveRefs(refs, shownFiles),
    throwUnlessOwned,
    isEnding: () => state === "ending",
    onCall: () => pace.called(),
    signal: abandoned.signal,
    clock,
  });
  let text = "";
  /** Whether the text is complete. */
  let isWhole = false;
  let status = options.placeholder;
  let isLongStep = false;
  let isChanged = false;
  let state: "open" | "ending" | "ended" | "abandoned" = "open";
  let cancelTimer: CancelTimer | undefined;
  /** The call in flight, which never rejects. */
  let running: Promise<void> | undefined;

  const files = createFileQueue(async (batch) => {
    // Files are posted below the text.
    await idle();
    await shown.upload(batch, clock.monotonic() + endingMs);
    if (target.isBelowFiles === true && text === "") await runAlone(() => shown.removeAll());
  });

  async function idle(): Promise<void> {
    for (let current = running; current !== undefined; current = running) await current;
  }

  /** Runs `work` while no other call is in flight. It starts synchronously where none is. */
  function runAlone(work: () => Promise<void>): Promise<void> {
    if (running !== undefined) return idle().then(() => runAlone(work));
    const result = work();
    const settled = result.then(
      () => undefined,
      () => undefined,
    );
    running = settled.then(() => {
      running = undefined;
      stream();
    });
    return result;
  }

  /** Is called before anything is sent. @throws ParleyError `stopping` where the reply was abandoned */
  function throwUnlessOwned(): void {
    if (options.isFresh?.() === false)
      abandon(new ParleyError("stopping", "the lease of the conversation is over"));
    abandoned.signal.throwIfAborted();
  }

  function abandon(reason: ParleyError): void {
    if (state === "ended") return;
    state = "abandoned";
    cancelTimer?.();
    close();
    abandoned.abort(reason);
  }

  function planGrowing(): MessageContent[] {
    return planStreaming(text, { status, actions: stop === undefined || isWhole ? [] : [stop] }, target);
  }

  /** Shows the latest changes, now or when the pace allows it. */
  function stream(): void {
    const isWanted = options.isCalm !== true && isChanged && state === "open" && running === undefined;
    if (!isWanted || pace.isOver()) return;
    cancelTimer?.();
    // A status has no message unless it must be read, and stands in those of an earlier run only with new
    // text.
    if (sign !== undefined && text === "" && !isLongStep) return;
    const waitMs = pace.waitMs(urgencyNow());
    if (waitMs > 0) cancelTimer = clock.after(waitMs, stream);
    else void runAlone(streamOnce);
  }

  /** A status is no words. */
  const urgencyNow = (): "first" | "growth" => (text === "" || shown.hasText() ? "growth" : "first");

  async function streamOnce(): Promise<void> {
    isChanged = false;
    const { signal: leaves } = growth;
    try {
      // The first text is sent within the call that writes it.
      if (shown.isUnsaved()) await shown.save("wait");
      for (const [index, content] of planGrowing().entries()) {
        if (state !== "open") return;
        await shown.put(index, content, { urgency: urgencyNow(), leaves });
      }
      pace.succeeded();
    } catch (error) {
      isChanged = true;
      if (leaves.aborted) return;
      const { isLimited, ...fields } = pace.failed(error);
      log[isLimited ? "debug" : "warn"]({ err: error, ...fields }, "streaming edit failed");
    }
  }

  /** Shows a placeholder, also where the platform is away for a moment, until the reply ends. */
  async function showFirst(content: MessageContent): Promise<void> {
    const { signal: leaves } = growth;
    // What an earlier run has shown is left as it is where no change is taken now: the turn must not wait.
    const isResumed = shown.count() > 0;
    const deadline = clock.monotonic() + (isResumed ? 0 : endingMs);
    try {
      await shown.putWithRetry(0, content, { deadline, urgency: "first", leaves });
    } catch (error) {
      if (!leaves.aborted && !(isResumed && isTransient(error))) throw error;
    }
  }

  async function end(ending: Ending): Promise<void> {
    abandoned.signal.throwIfAborted();
    if (state !== "open") {
      log.warn({ state: ending.state }, "reply already ended");
      return;
    }
    state = "ending";
    cancelTimer?.();
    growth.abort("ended");
    try {
      await files.idle();
      await runAlone(() => showEnding(ending));
      state = "ended";
      close();
    } catch (error) {
      abandoned.signal.throwIfAborted();
      // The caller may still call `fail`.
      state = "open";
      growth = new AbortController();
      pace.giveUp();
      throw error;
    }
  }

  function close(): void {
    sign?.clear();
    target.close?.(state === "abandoned");
  }

  async function showEnding(ending: Ending): Promise<void> {
    const deadline = clock.monotonic() + endingMs;
    abandoned.signal.throwIfAborted();
    const isFilesAlone = text === "" && isBare(ending) && shown.count() === 0 && files.count() > 0;
    if (!isFilesAlone) await showMessages(ending, deadline);
    await shown.save("wait");
  }

  async function showMessages(ending: Ending, deadline: number): Promise<void> {
    const plan = planEnding(text, ending, target);
    try {
      await shown.putAll(plan.contents, deadline);
    } catch (error) {
      // It may be the text that the platform refuses. Why the reply failed is then said without it.
      const isRefused = isParleyError(error, "platform-rejected") && !isTransient(error);
      if (!isRefused || ending.state !== "failed" || text === "") throw error;
      log.warn({ err: error }, "text of a failed reply not taken: showing the failure alone");
      return await shown.putAll(planEnding("", ending, target).contents, clock.monotonic() + endingMs);
    }
    await shown.removeOldFile(plan.file);
    if (plan.file === undefined) return;
    try {
      await shown.upload([plan.file], deadline, plan.file);
    } catch (error) {
      log.warn({ err: error }, "answer.md not uploaded: showing the answer in messages");
      const { contents } = planEnding(text, ending, target, Infinity);
      await shown.putAll(contents, clock.monotonic() + endingMs);
    }
  }

  return {
    async show() {
      if (options.isEndOnly === true) return;
      await runAlone(async () => {
        const [first] = planGrowing();
        if (first === undefined) throw new ParleyError("internal", "no message planned for a reply");
        const isShown = options.firstMessageIsShown === true || options.isCalm === true;
        if (!isShown) sign?.show();
        // The messages of an earlier run lose their buttons, and say that there will be another answer.
        const isResumed = shown.count() > 0 && (target.roomInMs?.("first") ?? 0) <= 0;
        if (isResumed || (!isShown && sign === undefined)) await showFirst(first);
        await shown.save("wait");
      });
    },
    status(next, { isLong = false } = {}) {
      if (state !== "open") return;
      status = next;
      isLongStep = isLong;
      isChanged = true;
      if (text === "" && options.isCalm !== true) sign?.show();
      stream();
    },
    write(content) {
      if (state !== "open") return;
      text = toMarkdown(content);
      isWhole = content.isWhole === true;
      status = undefined;
      isChanged = true;
      stream();
    },
    attach: (file) => files.add(file),
    finish: (ending = {}) => end({ state: "finished", ...ending }),
    fail: ({ text: failure, ...rest }) => end({ state: "failed", failure, ...rest }),
    abandon: () => abandon(new ParleyError("stopping", "the reply was abandoned")),
  };
}

/** Says when growing text may be shown. */
function createPace(target: EditTarget, clock: Clock) {
  let failures = 0;
  let lastCallAt = Number.NEGATIVE_INFINITY;
  /** The target has no room until this time. */
  let noRoomUntil = Number.NEGATIVE_INFINITY;

  return {
    /** Whether it has failed so often that only the final text is shown. */
    isOver: () => failures >= maxFailures,
    /** How long a change has to wait. The first words do not wait for the interval after a status. */
    waitMs(urgency: "first" | "growth"): number {
      const intervalEndsAt =
        urgency === "first" ? Number.NEGATIVE_INFINITY : lastCallAt + target.minEditIntervalMs;
      const now = clock.monotonic();
      const waitMs = Math.max(intervalEndsAt, noRoomUntil) - now;
      if (waitMs > 0) return waitMs;
      const roomInMs = Math.min(target.roomInMs?.(urgency) ?? 0, maxRoomWaitMs);
      noRoomUntil = now + roomInMs;
      return roomInMs;
    },
    called(): void {
      lastCallAt = clock.monotonic();
    },
    succeeded(): void {
      failures = 0;
    },
    /** Notes a failure. Where the rate is limited it does not count. */
    failed(error: unknown): { readonly failures: number; readonly isLimited: boolean } {
      lastCallAt = clock.monotonic();
      const retryAfterMs = isParleyError(error) ? error.retryAfterMs : undefined;
      if (retryAfterMs === undefined) failures += 1;
      const againInMs = Math.max(minRoomWaitMs, retryAfterMs ?? target.minEditIntervalMs);
      noRoomUntil = lastCallAt + Math.min(againInMs, maxRoomWaitMs);
      return { failures, isLimited: retryAfterMs !== undefined };
    },
    giveUp(): void {
      failures = maxFailures;
    },
  };
}

interface Waiting {
  readonly file: ReplyFile;
  resolve(): void;
  reject(error: unknown): void;
}

/** Uploads files in order. Files added in one tick or during an upload are uploaded together. */
function createFileQueue(upload: (files: readonly ReplyFile[]) => Promise<void>) {
  let waiting: Waiting[] = [];
  let running: Promise<void> | undefined;
  let count = 0;

  async function drain(): Promise<void> {
    // This collects the files that are added in this tick.
    await Promise.resolve();
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        await upload(batch.map(({ file }) => file));
        count += batch.length;
        for (const entry of batch) entry.resolve();
      } catch (error) {
        for (const entry of batch) entry.reject(error);
      }
    }
    running = undefined;
  }

  return {
    /** Resolves when the platform has the file. It rejects with the error of the upload. */
    add: (file: ReplyFile): Promise<void> =>
      new Promise((resolve, reject) => {
        waiting.push({ file, resolve, reject });
        running ??= drain();
      }),
    /** Resolves when no upload is in flight, successful or not. */
    async idle(): Promise<void> {
      for (let current = running; current !== undefined; current = running) await current;
    },
    /** Returns the number of uploaded files. */
    count: (): number => count,
  };
}
