import type { CancelTimer, Clock } from "../../core/clock.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Json } from "../../core/events.ts";
import type { ReplyFile, Reply } from "../../core/platform.ts";
import type { ReplyAction } from "../../core/press.ts";
import type { Log } from "../../core/telemetry.ts";
import { systemClock, sleepUnlessAborted } from "../../support/clock.ts";
import { translate } from "../../words/translate.ts";
import type { SuspensionWatch, Urgency } from "./delivery-scheduler.ts";
import {
  type EditTarget,
  type Ending,
  fileHash,
  isBare,
  type MessageContent,
  type parseShownFiles,
  planEnding,
  planEndingWithoutFile,
  planStreaming,
} from "./message-plan.ts";
import { isTransient, retryPlatformCall } from "./receive-patiently.ts";
import { toMarkdown } from "./split-markdown.ts";

type ShownFiles = NonNullable<ReturnType<typeof parseShownFiles>>;

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
  /** The default notices none. */
  readonly suspensions?: Pick<SuspensionWatch, "waitMs">;
  /** The default is the time of this process. */
  readonly clock?: Clock | undefined;
}

/** After this many consecutive failures streaming stops, and only the final text is shown. */
const maxFailures = 3;
/** The upper limit of the edit interval, which doubles with each rate limit. */
const maxIntervalMs = 10_000;
/** How long final calls are retried. */
const endingMs = 120_000;
/** How long a target without room is left alone before it is asked again. */
const maxRoomWaitMs = 1000;

interface PostedMessage {
  ref: Json;
  /** The content as JSON, or `undefined` where it is not known. */
  content: string | undefined;
}

/**
 * Creates a reply in messages that are posted once and then edited. The first text is shown at once, and
 * later text at least `minEditIntervalMs` apart, both where the target has room. Calls never overlap, and the
 * latest text wins. Failed edits slow streaming down and finally stop it. The final text is retried for two
 * minutes. After the process was suspended, everything waits a second, since another process may have resumed
 * the reply.
 */
export function createEditingReply(options: EditingReplyOptions): Reply {
  const { target, log, clock = systemClock } = options;
  const { stop } = options;
  /** Whether the text is complete. */
  let isWhole = false;
  const messages: PostedMessage[] = (options.savedRefs ?? []).map((ref) => ({ ref, content: undefined }));
  let shownFiles = options.savedFiles;
  let text = "";
  let status = options.placeholder;
  let isLongStep = false;
  let state: "open" | "ending" | "ended" | "abandoned" = "open";
  let isChanged = false;
  let hasTriedText = false;
  let areRefsSaved = true;
  let failures = 0;
  let intervalMs = target.minEditIntervalMs;
  let lastCallAt = Number.NEGATIVE_INFINITY;
  /** The platform limits the rate until this time. */
  let pauseUntil = Number.NEGATIVE_INFINITY;
  /** The target has no room until this time. */
  let noRoomUntil = Number.NEGATIVE_INFINITY;
  let cancelTimer: CancelTimer | undefined;
  const abandoned = new AbortController();
  /** The call in flight, which never rejects. */
  let running: Promise<void> | undefined;

  const files = createFileQueue(async (batch) => {
    // Files are posted below the text.
    await idle();
    await uploadWithRetry(batch, clock.monotonic() + endingMs);
  });
  const { sign } = target;

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

  /** Returns the wait after a suspension, in which a process learns of a lost lease and gives up. */
  function suspensionWaitMs(): number {
    return options.suspensions?.waitMs() ?? 0;
  }

  /**
   * Is called before anything is sent. Returns `undefined` where it may be sent at once.
   * @throws the reason of the abort where the reply was abandoned
   */
  function whenOwned(): Promise<void> | undefined {
    abandoned.signal.throwIfAborted();
    const waitMs = suspensionWaitMs();
    return waitMs > 0 ? clock.sleep(waitMs, abandoned.signal) : undefined;
  }

  /** @param answer the one file, where it is the text of the answer */
  async function uploadWithRetry(
    all: readonly ReplyFile[],
    deadline: number,
    answer?: ReplyFile,
  ): Promise<void> {
    const batch = all.filter((file) => options.savedFiles?.hashes.includes(fileHash(file)) !== true);
    if (batch.length === 0) return;
    const refs = await retryPlatformCall(() => upload(batch), deadline, abandoned.signal, clock);
    const [ref] = refs;
    shownFiles = {
      ...shownFiles,
      hashes: [...(shownFiles?.hashes ?? []), ...batch.map(fileHash)],
      refs: [...(shownFiles?.refs ?? []), ...refs],
      ...(answer === undefined || ref === undefined ? {} : { answer: { hash: fileHash(answer), ref } }),
    };
    await savePosted();
  }

  async function upload(batch: readonly ReplyFile[]): Promise<readonly Json[]> {
    const owned = whenOwned();
    if (owned !== undefined) await owned;
    return await target.upload(batch, abandoned.signal);
  }

  /** Shows the latest changes, now or when the interval has passed. */
  function stream(): void {
    if (
      options.isCalm === true ||
      !isChanged ||
      state !== "open" ||
      running !== undefined ||
      failures >= maxFailures
    )
      return;
    cancelTimer?.();
    // A status has no message unless it must be read, and stands in those of an earlier run only with new
    // text.
    if (sign !== undefined && text === "" && !isLongStep) return;
    // The first text does not wait for the interval after a status.
    const isFirstText = text !== "" && !hasTriedText;
    const intervalEndsAt = isFirstText ? Number.NEGATIVE_INFINITY : lastCallAt + intervalMs;
    const now = clock.monotonic();
    let waitMs = Math.max(Math.max(intervalEndsAt, pauseUntil, noRoomUntil) - now, suspensionWaitMs());
    if (waitMs <= 0) {
      waitMs = Math.min(target.roomInMs?.(isFirstText ? "first" : "preview") ?? 0, maxRoomWaitMs);
      noRoomUntil = now + waitMs;
    }
    if (waitMs > 0) cancelTimer = clock.after(waitMs, stream);
    else void runAlone(streamOnce);
  }

  async function streamOnce(): Promise<void> {
    isChanged = false;
    hasTriedText ||= text !== "";
    try {
      if (!areRefsSaved) await saveRefs();
      for (const [index, content] of planStreaming(
        text,
        { status, actions: stop === undefined || isWhole ? [] : [stop] },
        target,
      ).entries()) {
        if (state !== "open") return;
        await put(index, content, "preview");
      }
      failures = 0;
    } catch (error) {
      isChanged = true;
      failures += 1;
      lastCallAt = clock.monotonic();
      const retryAfterMs = isParleyError(error) ? error.retryAfterMs : undefined;
      if (retryAfterMs !== undefined) {
        intervalMs = Math.min(intervalMs * 2, maxIntervalMs);
        pauseUntil = lastCallAt + retryAfterMs;
      }
      log.warn({ err: error, failures, intervalMs }, "streaming edit failed");
    }
  }

  /** Posts or edits one message, unless it shows the content already. */
  async function put(index: number, content: MessageContent, urgency: Urgency): Promise<void> {
    const wanted = JSON.stringify(content);
    const message = messages[index];
    if (message?.content === wanted) return;
    const owned = whenOwned();
    if (owned !== undefined) await owned;
    lastCallAt = clock.monotonic();
    if (message === undefined) {
      await post(index, content, urgency);
      return;
    }
    // While the edit is in flight, the shown content is unknown.
    message.content = undefined;
    const ref = await target.edit(message.ref, content, abandoned.signal, urgency, saveRefs);
    message.content = wanted;
    if (content.text !== "") sign?.clear();
    if (JSON.stringify(ref) === JSON.stringify(message.ref)) return;
    message.ref = ref;
    await savePosted();
  }

  async function post(index: number, content: MessageContent, urgency: Urgency): Promise<void> {
    const owned = whenOwned();
    if (owned !== undefined) await owned;
    const ref = await target.post(content, abandoned.signal, urgency);
    messages[index] = { ref, content: JSON.stringify(content) };
    if (content.text !== "") sign?.clear();
    await savePosted();
  }

  async function savePosted(): Promise<void> {
    try {
      await saveRefs();
    } catch (error) {
      if (state !== "ending") throw error;
      // The final text is visible, and nothing has to find this message later.
      log.error({ err: error }, "reply address not saved");
    }
  }

  async function saveRefs(): Promise<void> {
    areRefsSaved = false;
    const owned = whenOwned();
    if (owned !== undefined) await owned;
    await options.saveRefs(
      messages.map(({ ref }) => ref),
      shownFiles,
    );
    areRefsSaved = true;
  }

  /** Calls {@link put} with retries. A message that it is too late to edit is posted again. */
  async function putWithRetry(
    index: number,
    content: MessageContent,
    { deadline, urgency }: { readonly deadline: number; readonly urgency: Urgency },
  ): Promise<void> {
    try {
      await retryPlatformCall(() => put(index, content, urgency), deadline, abandoned.signal, clock);
    } catch (error) {
      const isRefused = isParleyError(error, "platform-rejected") && !isTransient(error);
      if (!isRefused || messages[index] === undefined) throw error;
      log.info({ err: error }, "message not editable: posting it again");
      await retryPlatformCall(() => post(index, content, urgency), deadline, abandoned.signal, clock);
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
    try {
      await files.idle();
      await runAlone(() => showEnding(ending));
      state = "ended";
      close();
    } catch (error) {
      abandoned.signal.throwIfAborted();
      // The caller may still call `fail`.
      state = "open";
      failures = maxFailures;
      throw error;
    }
  }

  function close(): void {
    sign?.clear();
    target.close?.(state === "abandoned");
  }

  async function showEnding(ending: Ending): Promise<void> {
    const deadline = clock.monotonic() + endingMs;
    const waitMs = Math.min(pauseUntil - clock.monotonic(), endingMs);
    if (waitMs > 0) await sleepUnlessAborted(waitMs, abandoned.signal, clock);
    abandoned.signal.throwIfAborted();
    const plan = planEnding(text, ending, target);
    if (text === "" && isBare(ending) && messages.length === 0 && files.count() > 0) return;
    await putAll(plan.contents, deadline);
    await removeOldFile(plan.file);
    if (plan.file !== undefined) {
      try {
        await uploadWithRetry([plan.file], deadline, plan.file);
      } catch (error) {
        log.warn({ err: error }, "answer.md not uploaded: showing the answer in messages");
        await putAll(planEndingWithoutFile(text, ending, target).contents, clock.monotonic() + endingMs);
      }
    }
  }

  async function putAll(contents: readonly MessageContent[], deadline: number): Promise<void> {
    abandoned.signal.throwIfAborted();
    for (const [index, content] of contents.entries())
      await putWithRetry(index, content, { deadline, urgency: "final" });
    await removeSurplus(contents.length);
  }

  /** Removes the `answer.md` of another answer. */
  async function removeOldFile(file: ReplyFile | undefined): Promise<void> {
    const { answer: old, hashes = [], refs = [] } = shownFiles ?? {};
    if (old === undefined || (file !== undefined && fileHash(file) === old.hash)) return;
    shownFiles = {
      hashes: hashes.filter((hash) => hash !== old.hash),
      refs: refs.filter((ref) => JSON.stringify(ref) !== JSON.stringify(old.ref)),
    };
    // This is saved before the deletion, as below.
    await savePosted();
    try {
      await target.remove(old.ref, abandoned.signal);
    } catch (error) {
      abandoned.signal.throwIfAborted();
      log.warn({ err: error }, "answer.md of an earlier answer not deleted");
    }
  }

  /** Removes the messages of an earlier, longer answer, or of an earlier split of the text. */
  async function removeSurplus(from: number): Promise<void> {
    const surplus = messages.splice(from);
    if (surplus.length === 0) return;
    // These are saved as gone first, so that deleting one does not delete the answer.
    await savePosted();
    for (const { ref } of surplus) {
      abandoned.signal.throwIfAborted();
      try {
        await target.remove(ref, abandoned.signal);
      } catch (error) {
        log.info({ err: error }, "surplus message not deleted");
        await emptyMessage(ref);
      }
    }
  }

  async function emptyMessage(ref: Json): Promise<void> {
    try {
      const emptied = { text: translate("delivery.emptied"), state: "finished" } as const;
      await target.edit(ref, emptied, abandoned.signal, "final", saveRefs);
    } catch (error) {
      abandoned.signal.throwIfAborted();
      log.warn({ err: error }, "surplus message not emptied");
    }
  }

  return {
    async show() {
      if (options.isEndOnly === true) return;
      await runAlone(async () => {
        const actions = stop === undefined || isWhole ? [] : [stop];
        const [first] = planStreaming(text, { status, actions }, target);
        if (first === undefined) throw new ParleyError("internal", "no message planned for a reply");
        areRefsSaved &&= messages.length > 0;
        const isShown = options.firstMessageIsShown === true || options.isCalm === true;
        if (!isShown) sign?.show();
        // The messages of an earlier run lose their buttons, and say that there will be another answer.
        const isResumed = messages.length > 0 && (target.roomInMs?.("first") ?? 0) <= 0;
        if (isResumed || (!isShown && sign === undefined)) {
          await putWithRetry(0, first, { deadline: clock.monotonic() + endingMs, urgency: "preview" });
        }
        if (!areRefsSaved) await saveRefs();
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
    abandon() {
      if (state === "ended") return;
      state = "abandoned";
      cancelTimer?.();
      close();
      abandoned.abort(new ParleyError("stopping", "the reply was abandoned"));
    },
  };
}

/** Uploads the files of a reply. */
interface FileQueue {
  /** Resolves when the platform has the file. It rejects with the error of the upload. */
  add(file: ReplyFile): Promise<void>;
  /** Resolves when no upload is in flight, successful or not. */
  idle(): Promise<void>;
  /** Returns the number of uploaded files. */
  count(): number;
}

interface Waiting {
  readonly file: ReplyFile;
  resolve(): void;
  reject(error: unknown): void;
}

/** Uploads files in order. Files added in one tick or during an upload are uploaded together. */
function createFileQueue(upload: (files: readonly ReplyFile[]) => Promise<void>): FileQueue {
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
    add: (file) =>
      new Promise((resolve, reject) => {
        waiting.push({ file, resolve, reject });
        running ??= drain();
      }),
    async idle() {
      for (let current = running; current !== undefined; current = running) await current;
    },
    count: () => count,
  };
}
