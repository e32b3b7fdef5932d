import type { BudgetWarnings } from "../access/budgets.ts";
import { toNotice } from "../../core/error-messages.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import { storedIn, type CommandCall, type IncomingEvent, type ReplyAddress } from "../../core/events.ts";
import type { Platform, ReplyHooks } from "../../core/platform.ts";
import { toStopAction } from "../../core/press.ts";
import { inTurn, noSpan, type Tracer, currentTurn } from "../../core/telemetry.ts";
import { currentLanguage, inLanguage } from "../../words/translate.ts";
import { toLanguage } from "../../words/languages.ts";
import { applyEdit } from "../turn/read-messages.ts";
import { throwIfAbandoned, type TurnOutcome } from "../turn/turn.ts";
import { giveTitle } from "../turn/make-title.ts";
import { messageIds } from "../turn/stored-messages.ts";
import { createTracedReply, showingWaits } from "../turn/stream-answer.ts";
import {
  type ActiveTurn,
  type RunBatch,
  editsOf,
  eventsOf,
  keysOf,
  toNewReply,
  withoutDeleted,
  type PendingTurn,
  isEditedError,
  toEditedError,
} from "./pending-turn.ts";
import { createOtherTurns, endTurn, isOutage, type EndReason } from "./end-turn.ts";
import {
  answerBatch,
  canShowAnswer,
  dependenciesFor,
  type BatchOptions,
  type BatchRun,
} from "./answer-batch.ts";

interface BatchRunnerOptions extends BatchOptions {
  readonly warnings: Pick<BudgetWarnings, "afterTurn">;
  readonly tracer: Tracer;
  readonly platforms: ReadonlyMap<string, Platform>;
  readonly schedule: (turn: PendingTurn) => void;
}

/**
 * Returns a function that runs a batch. It opens the reply, runs the turn or command, and closes the inbox
 * entries. A batch that failed before anything was shown or stored stays open.
 */
export function createBatchRunner(options: BatchRunnerOptions): RunBatch {
  const { inbox, platforms } = options;
  const { access, clock, conversations, log, meter } = options.dependencies;
  const findOtherTurns = createOtherTurns(inbox, conversations);
  const isAllowed = (event: IncomingEvent): boolean => access.refusalOf(event) === undefined;

  return inTurnScope(options.tracer, async (batch, active) => {
    const [first] = batch;
    if (first === undefined) return "ended";
    const { event } = first;
    const platform = platforms.get(event.platform);
    if (platform === undefined) {
      log.warn({ platform: event.platform }, "platform of an open turn is off");
      return "left-open";
    }
    const isAnswered = () => canShowAnswer(conversations, first);
    const end = (turn: PendingTurn, why: EndReason) => {
      const otherTurnsShow = findOtherTurns(turn.event, keysOf(turn), platform);
      return endTurn(
        { turn, active, platform, inbox, conversations, otherTurnsShow, isAnswered, meter, log },
        why,
      );
    };
    if (first.state === "withdrawn") return await end(first, "deleted");
    if (first.state === "stopping") {
      if (!hasReply(first)) return await end(first, "stopped");
    } else if (first.isSealed === true && !(await isAnswered())) return await end(first, "sealed");
    const allowed = batch.filter((turn) => eventsOf(turn).some(isAllowed));
    for (const turn of batch) if (!allowed.includes(turn)) await end(turn, "refused");
    if (allowed.length === 0) return "ended";
    const run = await openRun(allowed, active, platform);
    const startedAt = performance.now();
    let outcome: TurnOutcome | "shown" | "left-open";
    try {
      outcome = await inLanguage(run.language, () =>
        showingWaits(run.reply, clock, () => answerBatch(options, run)),
      );
      log.debug({ outcome }, "reply ended");
      throwIfAbandoned(active.signal);
      await run.storeShownMessages();
      await closeEvents(options, run, outcome);
      if (outcome === "complete" && run.conversationId === event.conversationId)
        giveTitle(run.dependencies, platform, run.conversationId);
    } catch (error) {
      outcome = "left-open";
      // Nothing else would end this reply, because the events are closed below.
      const isShown = !isOutage(error) && (await failVisibly(run, error));
      active.abandon(new ParleyError("stopping", "the turn is left open", { cause: error }));
      if (isEditedError(error))
        log.info({ platform: event.platform }, "turn runs again: its question was edited");
      else log.error({ platform: event.platform, err: error }, "turn left open");
      // A permanent failure, such as a missing permission, would fail again on every recovery.
      if (!isOutage(error)) {
        if (!isShown && isParleyError(error, "platform-forbidden")) await tellAlone(run, error);
        await inbox.close(allowed.flatMap(keysOf));
      }
    }
    if (outcome !== "left-open") await inLanguage(run.language, () => warnOfBudgets(run));
    const seconds = (performance.now() - startedAt) / 1000;
    meter({ kind: "turn", platform: event.platform, event: event.kind, outcome, seconds });
    currentTurn()?.span.set({ "parley.outcome": outcome });
    const { attempt } = run;
    const durationMs = Math.round(seconds * 1000);
    log.info({ platform: event.platform, kind: event.kind, outcome, attempt, durationMs }, "turn ended");
    return outcome === "left-open" ? "left-open" : "ended";
  });

  /** Resolves to whether the reply shows the failure, or has ended before. */
  async function failVisibly({ reply, allowed, language }: BatchRun, error: unknown): Promise<boolean> {
    const retryKey = allowed[0]!.key;
    try {
      await inLanguage(language, () => reply.fail({ text: toNotice(error), retryKey }));
      return true;
    } catch (failure) {
      log.info({ err: failure }, "the failure of a turn is not shown");
      return false;
    }
  }

  /** Says why there is no answer to the person who sees nothing of it in the place where they asked. */
  async function tellAlone({ allowed, platform, language }: BatchRun, error: ParleyError): Promise<void> {
    const { author, address } = allowed[0]!;
    try {
      await platform.tellAlone(
        address,
        author.id,
        inLanguage(language, () => toNotice(error)),
      );
    } catch (failure) {
      log.info({ platform: platform.id, err: failure }, "nobody could be told that an answer is not shown");
    }
  }

  async function warnOfBudgets({ allowed, platform }: BatchRun): Promise<void> {
    const { author, origin, address } = allowed[0]!;
    const caller = { personId: author.id, platform: platform.id, origin };
    await options.warnings.afterTurn({ caller, platform, address });
  }

  async function openRun(
    batch: readonly PendingTurn[],
    active: ActiveTurn,
    platform: Platform,
  ): Promise<BatchRun> {
    const { event, progress: earlier } = batch[0]!;
    const events = batch.flatMap(eventsOf);
    const keys = events.map(({ key }) => key);
    const conversationId = storedIn(event);
    const settings = await options.settings.forTurn(event);
    const attempt = (earlier?.attempts ?? 0) + 1;
    const address = earlier?.address ?? batch.at(-1)!.event.address;
    let shownAt = address;
    /** The messages that the stored answer names. What an earlier run has stored is not known. */
    let storedKeys: readonly string[] | undefined = earlier === undefined ? [] : undefined;

    const progressAt = (grown: ReplyAddress) => ({ keys, address: grown, attempts: attempt });
    const saveAddress: ReplyHooks["saveAddress"] = async (grown, how) => {
      throwIfAbandoned(active.signal);
      shownAt = grown;
      await noteSaved(grown, await inbox.saveTurn(progressAt(grown), how));
    };

    async function noteSaved(grown: ReplyAddress, isOurs: boolean): Promise<void> {
      if (!isOurs) active.abandon(new ParleyError("stopping", "another process runs this turn"));
      // The lease may have been lost while the address was saved.
      throwIfAbandoned(active.signal);
      // The keys are stored before a message of an earlier attempt is removed, so that its deletion does not
      // look like that of the answer.
      const now = platform.shownMessageKeys(grown);
      if (storedKeys?.every((known) => now.includes(known)) !== true) await storeShown(now);
    }

    async function storeShown(shown: readonly string[]): Promise<void> {
      // Where a write fails, it is repeated with the address.
      storedKeys = undefined;
      for (const id of [messageIds.complete(event.key), messageIds.assistant(event.key, attempt)])
        await conversations.setShownAs(conversationId, id, shown);
      storedKeys = shown;
    }

    // The claim comes before all else. Another process may run the turn too, and after a crash a turn that
    // was begun goes before messages that were sent earlier and accepted later.
    throwIfAbandoned(active.signal);
    await noteSaved(address, await inbox.claimTurn(progressAt(address)));
    if (attempt > 1) log.info({ platform: platform.id, attempt }, "turn resumed");
    log.debug({ platform: platform.id, conversation: event.conversationId, attempt, keys }, "turn started");
    const language = settings.language ?? currentLanguage();
    const hooks: ReplyHooks = {
      saveAddress,
      isResumed: earlier !== undefined,
      isCalm: settings.isCalm,
      otherTurnsShow: findOtherTurns(event, keys, platform),
      stop: toStopAction(event.key),
    };
    const reply = createTracedReply(
      inLanguage(language, () => platform.openReply(address, hooks)),
      options.tracer,
      currentTurn()?.span ?? noSpan,
    );
    active.reply = reply;
    const allowed = events.filter(isAllowed);
    return {
      conversationId,
      batch,
      allowed,
      active,
      platform,
      attempt,
      reply,
      language,
      dependencies: dependenciesFor(options, events, allowed[0]!, settings),
      shownMessageKeys: () => (storedKeys = platform.shownMessageKeys(shownAt)),
      async storeShownMessages() {
        const shown = platform.shownMessageKeys(shownAt);
        if (shown.join(" ") !== storedKeys?.join(" ")) await storeShown(shown);
      },
    };
  }
}

/**
 * Runs each batch in the scope of its turn. Its log lines name the turn, it is one step of the trace that
 * began with its first event, and it uses the language of the person who asked first.
 */
function inTurnScope(tracer: Tracer, runBatch: RunBatch): RunBatch {
  return async (batch, active) => {
    const [first] = batch;
    if (first === undefined) return "ended";
    const { event, progress } = first;
    const [arrival, ...links] = batch.map((turn) => turn.arrival);
    const span = tracer.start("turn", {
      parent: arrival,
      links: links.filter((link) => link !== undefined),
      fields: {
        "parley.turn": event.key,
        "parley.platform": event.platform,
        "parley.attempt": (progress?.attempts ?? 0) + 1,
        "parley.events": batch.flatMap(eventsOf).length,
      },
    });
    let end: "ended" | "left-open" = "left-open";
    try {
      const language = toLanguage(event.author.locale);
      end = await inTurn({ turn: event.key, span }, () =>
        inLanguage(language, () => runBatch(batch, active)),
      );
      return end;
    } catch (error) {
      span.fail(error);
      throw error;
    } finally {
      span.end();
      for (const turn of batch) {
        turn.arrival?.set({ "parley.outcome": end });
        turn.arrival?.end();
      }
    }
  };
}

/** Whether people see a reply already. A message that waits shows nothing. */
function hasReply({ event, progress }: PendingTurn): boolean {
  return event.kind === "call" || (progress?.attempts ?? 0) > 0;
}

type Closing = Pick<BatchRunnerOptions, "inbox" | "schedule">;

/** Closes what was answered. Messages of a batch that was cancelled for deleted ones run again. */
async function closeEvents(options: Closing, run: BatchRun, outcome: TurnOutcome | "shown"): Promise<void> {
  const { inbox, schedule } = options;
  const rest =
    outcome === "cancelled" ? withoutDeleted(run.batch, (key) => run.active.isDeleted(key)) : undefined;
  const left = rest === undefined ? [] : keysOf(rest);
  const answered = run.batch.flatMap(keysOf).filter((key) => !left.includes(key));
  const edits = new Map(run.batch.flatMap((turn) => [...editsOf(turn)]));
  const [{ event }] = run.batch as readonly [PendingTurn];
  if (event.kind === "call") return await closeCall(options, run, event);
  const how = { attempts: run.attempt, edits };
  if (!(await inbox.close(answered, how))) await closeChanged(options, answered, how);
  if (rest === undefined) return;
  const progress = toNewReply(rest, run.attempt);
  await inbox.saveTurn(progress);
  schedule({ ...rest, progress });
}

/** Applies an edit of a call's message after the call has run as it was written. */
async function closeCall({ inbox }: Closing, run: BatchRun, call: CommandCall): Promise<void> {
  const { key } = call;
  for (let latest = call; ;) {
    const count = latest.edit?.count ?? 0;
    if (count > 0) await applyEdit(run.dependencies, run.conversationId, latest);
    if (await inbox.close([key], { attempts: run.attempt, edits: new Map([[key, count]]) })) return;
    const [entry] = await inbox.lookUp([key]);
    if (entry?.event.kind !== "call" || (entry.event.edit?.count ?? 0) <= count)
      throw new ParleyError("stopping", "another process runs this turn");
    latest = entry.event;
  }
}

/** Reruns events that could not be closed because of an edit. Otherwise another process has them. */
async function closeChanged(
  { inbox, schedule }: Closing,
  keys: readonly string[],
  how: { readonly attempts: number; readonly edits: ReadonlyMap<string, number> },
): Promise<void> {
  const known = await inbox.lookUp(keys);
  for (const { event } of known) {
    if (event.kind !== "message" || (event.edit?.count ?? 0) <= (how.edits.get(event.key) ?? 0)) continue;
    schedule({ event, progress: undefined, others: [], isEdited: true });
    throw toEditedError();
  }
  // Some events were erased while they were being closed.
  if (known.length < keys.length && (await inbox.close(keys, how))) return;
  throw new ParleyError("stopping", "another process runs this turn");
}
