import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Json } from "../../core/events.ts";
import type { Log } from "../../core/telemetry.ts";
import { toMarkdown } from "./reply-markdown.ts";
import type { Reply } from "../../core/platform.ts";
import type { EditTarget, MessageContent } from "./edit-target.ts";
import { createFileQueue } from "./file-queue.ts";
import { planEnding, planEndingWithoutFile, planStreaming, type Ending } from "./message-plan.ts";
import { sleepUnlessAborted } from "../../support/sleep.ts";
import { isTransient, retryPlatformCall } from "./platform-retry.ts";
import { createSleepWatch } from "./sleep-watch.ts";

export interface EditingReplyOptions {
  readonly target: EditTarget;
  /** What an earlier process posted for this reply, in order: it is edited instead of posted anew. */
  readonly savedRefs?: readonly Json[];
  /** Called, and waited for, after each post, with all references in order. */
  saveRefs(refs: readonly Json[]): Promise<void>;
  readonly log: Log;
  /** The platform shows a placeholder of its own until the first post; there is nothing to post in `show`. */
  readonly firstMessageIsShown?: boolean;
  /** Status shown until there is another one, or text. */
  readonly placeholder?: string;
}

/** Growing edits that fail in a row before growing is left off and only the end is shown. */
const maxFailures = 3;
/** The longest pause that failures lead to. */
const maxIntervalMs = 10_000;
/** How long the end of a reply is tried for. */
const endingMs = 120_000;
/** How long a process that was paused edits nothing. */
const afterSleepMs = 1000;

interface Shown {
  readonly ref: Json;
  /** Its content as JSON; `undefined` where it is not known. */
  content: string | undefined;
}

/**
 * A reply in messages that are posted once and edited. The first text is shown at once, later text at least
 * `minEditIntervalMs` apart, never the same twice and never two calls at a time; the latest text wins. Failed
 * edits slow it down and at last leave only the end, which is tried for two minutes. After the process itself has
 * been asleep, growing waits a moment: another process may have taken the reply over.
 */
export function createEditingReply(options: EditingReplyOptions): Reply {
  const { target, log } = options;
  const messages: Shown[] = (options.savedRefs ?? []).map((ref) => ({ ref, content: undefined }));
  let text = "";
  let status = options.placeholder;
  let state: "open" | "ending" | "ended" | "abandoned" = "open";
  let isChanged = false;
  let hasTriedText = false;
  let areRefsSaved = true;
  let failures = 0;
  let intervalMs = target.minEditIntervalMs;
  let lastCallAt = Number.NEGATIVE_INFINITY;
  /** Nothing is sent before: the platform asked for it. */
  let pauseUntil = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  const abandoned = new AbortController();
  const sleep = createSleepWatch();
  /** The one thing under way; never rejects. */
  let running: Promise<void> | undefined;

  const files = createFileQueue(async (batch) => {
    // Below the placeholder, not above it.
    await idle();
    await retryPlatformCall(() => target.upload(batch), performance.now() + endingMs, abandoned.signal);
  });

  async function idle(): Promise<void> {
    for (let current = running; current !== undefined; current = running) await current;
  }

  /** Runs `work` with nothing else under way. It begins within this call where nothing is. */
  function alone(work: () => Promise<void>): Promise<void> {
    if (running !== undefined) return idle().then(() => alone(work));
    const result = work();
    const settled = result.then(
      () => undefined,
      () => undefined,
    );
    running = settled.then(() => {
      running = undefined;
      grow();
    });
    return result;
  }

  /** Shows what has changed, now or when it is time. */
  function grow(): void {
    if (!isChanged || state !== "open" || running !== undefined || failures >= maxFailures) return;
    clearTimeout(timer);
    // Whoever was paused finds out within a moment what it has lost meanwhile, and abandons the reply.
    if (sleep.hasSlept()) pauseUntil = Math.max(pauseUntil, performance.now() + afterSleepMs);
    // People wait for the first words; a status that was just shown does not hold them up.
    const isFirstText = text !== "" && !hasTriedText;
    const pacedAt = isFirstText ? Number.NEGATIVE_INFINITY : lastCallAt + intervalMs;
    const waitMs = Math.max(pacedAt, pauseUntil) - performance.now();
    if (waitMs > 0) timer = setTimeout(grow, waitMs);
    else void alone(growOnce);
  }

  async function growOnce(): Promise<void> {
    isChanged = false;
    hasTriedText ||= text !== "";
    try {
      if (!areRefsSaved) await saveRefs();
      for (const [index, content] of planStreaming(text, status, target).entries()) {
        if (state !== "open") return;
        await put(index, content);
      }
      failures = 0;
    } catch (error) {
      isChanged = true;
      failures += 1;
      lastCallAt = performance.now();
      const retryAfterMs = isParleyError(error) ? error.retryAfterMs : undefined;
      if (retryAfterMs !== undefined) {
        intervalMs = Math.min(intervalMs * 2, maxIntervalMs);
        pauseUntil = lastCallAt + retryAfterMs;
      }
      log.warn({ err: error, failures, intervalMs }, "a growing reply could not be shown");
    }
  }

  /** Makes a message show its content, unless it does. */
  async function put(index: number, content: MessageContent): Promise<void> {
    abandoned.signal.throwIfAborted();
    const wanted = JSON.stringify(content);
    const message = messages[index];
    if (message?.content === wanted) return;
    lastCallAt = performance.now();
    if (message === undefined) {
      await post(index, content);
      return;
    }
    // Until the platform has answered, it may show the one or the other.
    message.content = undefined;
    await target.edit(message.ref, content, abandoned.signal);
    message.content = wanted;
  }

  async function post(index: number, content: MessageContent): Promise<void> {
    const ref = await target.post(content, abandoned.signal);
    messages[index] = { ref, content: JSON.stringify(content) };
    try {
      await saveRefs();
    } catch (error) {
      if (state !== "ending") throw error;
      // It is there for people to see, and nothing comes after it that would have to find it.
      log.error({ err: error }, "the address of a shown message could not be saved");
    }
  }

  async function saveRefs(): Promise<void> {
    areRefsSaved = false;
    await options.saveRefs(messages.map(({ ref }) => ref));
    areRefsSaved = true;
  }

  /** Like {@link put}, until it works; a message that cannot be edited any more is posted anew. */
  async function putForSure(index: number, content: MessageContent, deadline: number): Promise<void> {
    try {
      await retryPlatformCall(() => put(index, content), deadline, abandoned.signal);
    } catch (error) {
      const isRefused = isParleyError(error, "platform-rejected") && !isTransient(error);
      if (!isRefused || messages[index] === undefined) throw error;
      log.info({ err: error }, "a message of a reply cannot be edited any more; it is posted anew");
      await retryPlatformCall(() => post(index, content), deadline, abandoned.signal);
    }
  }

  async function end(ending: Ending): Promise<void> {
    abandoned.signal.throwIfAborted();
    if (state !== "open") {
      log.warn({ state: ending.state }, "a reply ends once; what came second is not shown");
      return;
    }
    state = "ending";
    clearTimeout(timer);
    try {
      await files.idle();
      await alone(() => showEnding(ending));
      state = "ended";
      sleep.stop();
    } catch (error) {
      abandoned.signal.throwIfAborted();
      // Whoever asked may still say that it failed.
      state = "open";
      failures = maxFailures;
      throw error;
    }
  }

  async function showEnding(ending: Ending): Promise<void> {
    const deadline = performance.now() + endingMs;
    const pauseMs = Math.min(pauseUntil - performance.now(), endingMs);
    if (pauseMs > 0) await sleepUnlessAborted(pauseMs, abandoned.signal);
    abandoned.signal.throwIfAborted();
    const plan = planEnding(text, ending, target);
    if (text === "" && isBare(ending) && messages.length === 0 && files.count() > 0) return;
    await putAll(plan.contents, deadline);
    if (plan.file !== undefined) {
      const { file } = plan;
      try {
        await retryPlatformCall(() => target.upload([file]), deadline, abandoned.signal);
      } catch (error) {
        log.warn({ err: error }, "an answer could not be uploaded; it is shown in messages");
        await putAll(planEndingWithoutFile(text, ending, target).contents, performance.now() + endingMs);
      }
    }
  }

  async function putAll(contents: readonly MessageContent[], deadline: number): Promise<void> {
    abandoned.signal.throwIfAborted();
    for (const [index, content] of contents.entries()) await putForSure(index, content, deadline);
    // An earlier process had more to say, or the cuts have moved: nothing old is left standing.
    for (let index = contents.length; index < messages.length; index += 1) {
      abandoned.signal.throwIfAborted();
      try {
        await put(index, { text: "…", state: "finished" });
      } catch (error) {
        log.warn({ err: error }, "a message that is not needed any more could not be emptied");
      }
    }
  }

  return {
    async show() {
      await alone(async () => {
        const [first] = planStreaming(text, status, target);
        if (first === undefined) throw new ParleyError("internal", "a reply plans at least one message");
        areRefsSaved &&= messages.length > 0;
        if (messages.length > 0 || options.firstMessageIsShown !== true) {
          await putForSure(0, first, performance.now() + endingMs);
        }
        if (!areRefsSaved) await saveRefs();
      });
    },
    status(words) {
      if (state !== "open") return;
      status = words;
      isChanged = true;
      grow();
    },
    write(content) {
      if (state !== "open") return;
      text = toMarkdown(content);
      status = undefined;
      isChanged = true;
      grow();
    },
    attach: (file) => files.add(file),
    finish: (ending = {}) => end({ state: "finished", ...ending }),
    fail: ({ text: failure, ...rest }) => end({ state: "failed", failure, ...rest }),
    abandon() {
      if (state === "ended") return;
      state = "abandoned";
      clearTimeout(timer);
      sleep.stop();
      abandoned.abort(new ParleyError("stopping", "the reply is left to whoever goes on with it"));
    },
  };
}

/** Whether there is nothing to say beside the files. */
function isBare(ending: Ending): boolean {
  return ending.state === "finished" && (ending.notices ?? []).length === 0;
}
