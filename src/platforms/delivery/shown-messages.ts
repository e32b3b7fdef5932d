import type { Clock } from "../../core/clock.ts";
import { isParleyError } from "../../core/errors.ts";
import type { Json } from "../../core/events.ts";
import type { ReplyFile } from "../../core/platform.ts";
import type { Log } from "../../core/telemetry.ts";
import { translate } from "../../words/translate.ts";
import type { Urgency } from "./delivery-scheduler.ts";
import { type EditTarget, fileHash, type MessageContent, type ShownFiles } from "./message-plan.ts";
import { isTransient, retryPlatformCall } from "./receive-patiently.ts";

interface ShownMessage {
  ref: Json;
  /** The content as JSON, or `undefined` where it is not known. */
  content: string | undefined;
}

/** How long and how urgently a call is repeated. */
interface CallHow {
  /** By {@link Clock.monotonic}. */
  readonly deadline: number;
  readonly urgency: Urgency;
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
  /** Resolves when the next call may be sent. It returns `undefined` where that is now. */
  readonly whenOwned: () => Promise<void> | undefined;
  /** Whether the final text is being shown, after which nothing has to find its messages. */
  readonly isEnding: () => boolean;
  /** Is called with each post and edit. */
  readonly onCall: () => void;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Log;
}) {
  const { target, savedFiles, whenOwned, signal, clock, log } = options;
  const { sign } = target;
  const messages: ShownMessage[] = options.savedRefs.map((ref) => ({ ref, content: undefined }));
  let files = savedFiles;
  let areRefsSaved = messages.length > 0;

  async function save(): Promise<void> {
    areRefsSaved = false;
    const owned = whenOwned();
    if (owned !== undefined) await owned;
    await options.saveRefs(
      messages.map(({ ref }) => ref),
      files,
    );
    areRefsSaved = true;
  }

  async function savePosted(): Promise<void> {
    try {
      await save();
    } catch (error) {
      if (!options.isEnding()) throw error;
      // The final text is visible, and nothing has to find this message later.
      log.error({ err: error }, "reply address not saved");
    }
  }

  async function post(index: number, content: MessageContent, urgency: Urgency): Promise<void> {
    const owned = whenOwned();
    if (owned !== undefined) await owned;
    const ref = await target.post(content, signal, urgency);
    messages[index] = { ref, content: JSON.stringify(content) };
    if (content.text !== "") sign?.clear();
    await savePosted();
  }

  /** Posts or edits one message, unless it shows the content already. */
  async function put(index: number, content: MessageContent, urgency: Urgency): Promise<void> {
    const wanted = JSON.stringify(content);
    const message = messages[index];
    if (message?.content === wanted) return;
    const owned = whenOwned();
    if (owned !== undefined) await owned;
    options.onCall();
    if (message === undefined) {
      await post(index, content, urgency);
      return;
    }
    // While the edit is in flight, the shown content is unknown.
    message.content = undefined;
    const ref = await target.edit(message.ref, content, signal, urgency, save);
    message.content = wanted;
    if (content.text !== "") sign?.clear();
    if (JSON.stringify(ref) === JSON.stringify(message.ref)) return;
    message.ref = ref;
    await savePosted();
  }

  /** Calls {@link put} with retries. A message that it is too late to edit is posted again. */
  async function putWithRetry(
    index: number,
    content: MessageContent,
    { deadline, urgency }: CallHow,
  ): Promise<void> {
    try {
      await retryPlatformCall(() => put(index, content, urgency), deadline, signal, clock);
    } catch (error) {
      const isRefused = isParleyError(error, "platform-rejected") && !isTransient(error);
      if (!isRefused || messages[index] === undefined) throw error;
      log.info({ err: error }, "message not editable: posting it again");
      await retryPlatformCall(() => post(index, content, urgency), deadline, signal, clock);
    }
  }

  async function uploadOnce(batch: readonly ReplyFile[]): Promise<readonly Json[]> {
    const owned = whenOwned();
    if (owned !== undefined) await owned;
    return await target.upload(batch, signal);
  }

  async function removeSurplus(from: number): Promise<void> {
    const surplus = messages.splice(from);
    if (surplus.length === 0) return;
    // These are saved as gone first, so that deleting one does not delete the answer.
    await savePosted();
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

  async function emptyMessage(ref: Json): Promise<void> {
    try {
      const emptied = { text: translate("delivery.emptied"), state: "finished" } as const;
      await target.edit(ref, emptied, signal, "final", save);
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ err: error }, "surplus message not emptied");
    }
  }

  return {
    /** Returns the number of messages. */
    count: (): number => messages.length,
    put,
    putWithRetry,
    /** Shows the final messages, and removes those of an earlier, longer answer or split of the text. */
    async putAll(contents: readonly MessageContent[], deadline: number): Promise<void> {
      signal.throwIfAborted();
      for (const [index, content] of contents.entries())
        await putWithRetry(index, content, { deadline, urgency: "final" });
      await removeSurplus(contents.length);
    },
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
      await savePosted();
    },
    /** Removes the `answer.md` of another answer than `file`. */
    async removeOldFile(file: ReplyFile | undefined): Promise<void> {
      const { answer: old, hashes = [], refs = [] } = files ?? {};
      if (old === undefined || (file !== undefined && fileHash(file) === old.hash)) return;
      files = {
        hashes: hashes.filter((hash) => hash !== old.hash),
        refs: refs.filter((ref) => JSON.stringify(ref) !== JSON.stringify(old.ref)),
      };
      // This is saved before the deletion, as for surplus messages.
      await savePosted();
      try {
        await target.remove(old.ref, signal);
      } catch (error) {
        signal.throwIfAborted();
        log.warn({ err: error }, "answer.md of an earlier answer not deleted");
      }
    },
    /**
     * Saves the references where that failed, or where nothing was shown or saved before. Returns `undefined`
     * where nothing is to be saved.
     */
    saveIfNeeded: (): Promise<void> | undefined => (areRefsSaved ? undefined : save()),
  };
}
