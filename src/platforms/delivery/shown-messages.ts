import type { Clock } from "../../core/clock.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Json } from "../../core/events.ts";
import type { ReplyFile } from "../../core/reply.ts";
import type { Log } from "../../core/telemetry.ts";
import { backoffMs, backoffs, retry } from "../../support/retry.ts";
import { translate } from "../../words/translate.ts";
import {
  fileHash,
  type CallHow,
  type EditTarget,
  type MessageContent,
  type ShownFiles,
} from "./message-plan.ts";
import { isTransient, retryPlatformCall } from "./receive-patiently.ts";

/** How long saving the address is tried at the end, and before something is removed. */
const saveMs = 10_000;

type PutHow = Omit<CallHow, "signal">;

interface ShownMessage {
  ref: Json;
  /** The content as JSON, or `undefined` where it is not known. */
  content: string | undefined;
}

/** How long and how urgently a call is repeated. */
interface RetryHow extends PutHow {
  /** By {@link Clock.monotonic}. */
  readonly deadline: number;
}

/**
 * Returns what a reply has shown so far: its messages and files. Their references are saved after each post.
 * Contract: the caller lets no two calls overlap.
 */
export function createShownMessages(options: {
  readonly target: EditTarget;
  readonly savedRefs: readonly Json[];
  readonly savedFiles: ShownFiles | undefined;
  readonly saveRefs: (refs: readonly Json[], files: ShownFiles | undefined) => Promise<void>;
  /** Is called before each call. @throws ParleyError `stopping` where it must not be sent */
  readonly throwUnlessOwned: () => void;
  /** Whether the final text is being shown, after which nothing has to find its messages. */
  readonly isEnding: () => boolean;
  /** Is called with each post and edit. */
  readonly onCall: () => void;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Log;
}) {
  const { target, savedFiles, throwUnlessOwned, signal, clock, log } = options;
  const { sign } = target;
  const messages: ShownMessage[] = options.savedRefs.map((ref) => ({ ref, content: undefined }));
  let files = savedFiles;
  let hasText = false;

  /** Counts what is to be saved, first that the reply has begun, and what of it is. */
  let [changes, savedChanges] = [options.savedRefs.length > 0 ? 0 : 1, 0];
  let lastSave: Promise<void> = Promise.resolve();

  async function write(): Promise<void> {
    throwUnlessOwned();
    const count = changes;
    await options.saveRefs(
      messages.map(({ ref }) => ref),
      files,
    );
    savedChanges = count;
  }

  /**
   * Saves the references, also where the store is away for a moment; the newest wins. "wait" is for what must
   * not be shown or removed before: without them another run would leave a message of this one beside its
   * own, and whoever learns of a deletion would take it for that of the answer. "later" lets the reply go on.
   * @throws ParleyError `stopping` where the store stays away: the next run of the turn saves them
   */
  function save(how: "wait" | "later"): Promise<void> {
    const wanted = changes;
    const deadline = clock.monotonic() + saveMs;
    const isAway = (error: unknown): boolean => isParleyError(error, "store-unavailable");
    const saving = lastSave.then(async () => {
      if (savedChanges >= wanted) return;
      const delayMs = (error: unknown, attempt: number) =>
        isAway(error) ? backoffMs(attempt, backoffs.moment) : undefined;
      await retry(write, { signal, clock, deadline, delayMs });
    });
    lastSave = saving.catch((error: unknown) => log.info({ err: error }, "reply address not saved yet"));
    if (how === "later") return Promise.resolve();
    return saving.catch((error: unknown) => {
      if (!isAway(error)) throw error;
      throw new ParleyError("stopping", "the address of a reply is not saved", { cause: error });
    });
  }

  /** Writes the references, which another process refuses that has the reply by now. */
  const confirm = (): Promise<void> => lastSave.then(write);

  /** Saves what was posted. The first message is found again only for a while, the others by the first. */
  async function savePosted(isFirst: boolean): Promise<void> {
    changes += 1;
    await save(isFirst && !options.isEnding() ? "wait" : "later");
  }

  /** Notes that text is shown, which needs no sign. */
  function noteText({ text }: MessageContent): void {
    if (text === "") return;
    hasText = true;
    sign?.clear();
  }

  async function post(index: number, content: MessageContent, how: PutHow): Promise<void> {
    throwUnlessOwned();
    const ref = await target.post(content, { ...how, signal });
    messages[index] = { ref, content: JSON.stringify(content) };
    noteText(content);
    await savePosted(messages.length === 1);
  }

  /** Posts or edits one message, unless it shows the content already. */
  async function put(index: number, content: MessageContent, how: PutHow): Promise<void> {
    const wanted = JSON.stringify(content);
    const message = messages[index];
    if (message?.content === wanted) return;
    throwUnlessOwned();
    options.onCall();
    if (message === undefined) {
      await post(index, content, how);
      return;
    }
    // While the edit is in flight, the shown content is unknown.
    message.content = undefined;
    const ref = await target.edit(message.ref, content, { ...how, signal }, confirm);
    message.content = wanted;
    noteText(content);
    if (JSON.stringify(ref) === JSON.stringify(message.ref)) return;
    message.ref = ref;
    await savePosted(true);
  }

  /** Calls {@link put} with retries. A message that it is too late to edit is posted again. */
  async function putWithRetry(
    index: number,
    content: MessageContent,
    { deadline, ...how }: RetryHow,
  ): Promise<void> {
    const until = how.leaves === undefined ? signal : AbortSignal.any([signal, how.leaves]);
    try {
      await retryPlatformCall(() => put(index, content, how), deadline, until, clock);
    } catch (error) {
      const isRefused = isParleyError(error, "platform-rejected") && !isTransient(error);
      if (!isRefused || messages[index] === undefined) throw error;
      log.info({ err: error }, "message not editable: posting it again");
      await retryPlatformCall(() => post(index, content, how), deadline, until, clock);
    }
  }

  async function uploadOnce(batch: readonly ReplyFile[]): Promise<readonly Json[]> {
    throwUnlessOwned();
    return await target.upload(batch, signal);
  }

  async function removeSurplus(from: number): Promise<void> {
    const surplus = messages.splice(from);
    if (surplus.length === 0) return;
    changes += 1;
    await save("wait");
    for (const { ref } of surplus) {
      signal.throwIfAborted();
      try {
        await target.remove(ref, signal);
      } catch (error) {
        log.info({ err: error }, "surplus message not deleted");
        await emptyMessage(ref);
      }
    }
  }

  /** Takes messages that an earlier run has posted and not saved for messages of the reply. */
  async function noteLost(deadline: number): Promise<void> {
    for (;;) {
      const ref = await retryPlatformCall(async () => await target.findNext?.(), deadline, signal, clock);
      if (ref === undefined) return;
      messages.push({ ref, content: undefined });
      changes += 1;
    }
  }

  async function emptyMessage(ref: Json): Promise<void> {
    try {
      const emptied = { text: translate("delivery.emptied"), state: "finished" } as const;
      await target.edit(ref, emptied, { urgency: "final", signal }, confirm);
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ err: error }, "surplus message not emptied");
    }
  }

  return {
    /** Returns the number of messages. */
    count: (): number => messages.length,
    /** Whether this process has shown text. */
    hasText: (): boolean => hasText,
    put,
    putWithRetry,
    /** Shows the final messages, and removes those of an earlier, longer answer or split of the text. */
    async putAll(contents: readonly MessageContent[], deadline: number): Promise<void> {
      signal.throwIfAborted();
      for (const [index, content] of contents.entries())
        await putWithRetry(index, content, { deadline, urgency: "final" });
      await noteLost(deadline);
      await removeSurplus(contents.length);
    },
    removeAll: () => removeSurplus(0),
    /**
     * Posts files, with retries, except those that an earlier process has posted.
     * @param answer the one file, where it is the text of the answer
     */
    async upload(all: readonly ReplyFile[], deadline: number, answer?: ReplyFile): Promise<void> {
      const batch = all.filter((file) => savedFiles?.hashes.includes(fileHash(file)) !== true);
      if (batch.length === 0) return;
      const refs = await retryPlatformCall(() => uploadOnce(batch), deadline, signal, clock);
      const [ref] = refs;
      files = {
        ...files,
        hashes: [...(files?.hashes ?? []), ...batch.map(fileHash)],
        refs: [...(files?.refs ?? []), ...refs],
        ...(answer === undefined || ref === undefined ? {} : { answer: { hash: fileHash(answer), ref } }),
      };
      await savePosted(true);
    },
    /** Removes the `answer.md` of another answer than `file`. */
    async removeOldFile(file: ReplyFile | undefined): Promise<void> {
      const { answer: old, hashes = [], refs = [] } = files ?? {};
      if (old === undefined || (file !== undefined && fileHash(file) === old.hash)) return;
      files = {
        hashes: hashes.filter((hash) => hash !== old.hash),
        refs: refs.filter((ref) => JSON.stringify(ref) !== JSON.stringify(old.ref)),
      };
      changes += 1;
      await save("wait");
      try {
        await target.remove(old.ref, signal);
      } catch (error) {
        signal.throwIfAborted();
        log.warn({ err: error }, "answer.md of an earlier answer not deleted");
      }
    },
    save,
    /** Whether nothing is saved of what is to be. */
    isUnsaved: (): boolean => changes > 0 && savedChanges === 0,
  };
}
