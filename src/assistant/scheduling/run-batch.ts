import type { BudgetWarnings } from "../access/budget-warnings.ts";
import { ParleyError } from "../../core/errors.ts";
import type { CommandCall } from "../../core/events.ts";
import type { Platform, ReplyHooks } from "../../core/platform.ts";
import { toStopAction } from "../../core/press.ts";
import { noSpan, type Tracer, currentTurn } from "../../core/telemetry.ts";
import { currentLanguage, inLanguage } from "../../words/translate.ts";
import { applyEdit } from "../turn/read-messages.ts";
import { throwIfAbandoned, type TurnOutcome } from "../turn/turn.ts";
import { giveTitle } from "../turn/make-title.ts";
import { messageIds } from "../turn/stored-messages.ts";
import { createTracedReply, showingWaits } from "../turn/stream-answer.ts";
import {
  type ActiveTurn,
  editsOf,
  eventsOf,
  keysOf,
  storedIn,
  withNewReply,
  withoutDeleted,
  type PendingTurn,
  isEditedError,
  toEditedError,
} from "./pending-turn.ts";
import { endWithdrawn, refuseTurn, createOtherTurns, isOutage, sealReply } from "./end-turn.ts";
import { createBatchAnswer, type BatchAnswerOptions, type BatchRun } from "./answer-batch.ts";

interface BatchRunnerOptions extends BatchAnswerOptions {
  readonly warnings: Pick<BudgetWarnings, "afterTurn">;
  readonly tracer: Tracer;
  readonly platforms: ReadonlyMap<string, Platform>;
  readonly schedule: (turn: PendingTurn) => void;
}

/**
 * Returns a function that runs a batch. It opens the reply, runs the turn or command, and closes the inbox
 * entries. A batch that failed before anything was shown or stored stays open.
 */
export function createBatchRunner(options: BatchRunnerOptions) {
  const { dependencies, inbox, platforms } = options;
  const { log, meter } = dependencies;
  const findOtherTurns = createOtherTurns(inbox, dependencies.conversations);
  const { answer, canShowAnswer, dependenciesFor, isAllowed, payerOf } = createBatchAnswer(options);

  return async function runBatch(
    batch: readonly PendingTurn[],
    active: ActiveTurn,
  ): Promise<"ended" | "left-open"> {
    const [first] = batch;
    if (first === undefined) return "ended";
    const { event } = first;
    const platform = platforms.get(event.platform);
    if (platform === undefined) {
      log.warn({ platform: event.platform }, "platform of an open turn is off");
      return "left-open";
    }
    const otherTurnsShow = findOtherTurns(event, keysOf(first), platform);
    if (first.isWithdrawn === true)
      return await endWithdrawn(first, { otherTurnsShow, active, inbox, platform, log });
    if (first.stoppedBy !== undefined && !hasReply(first)) {
      await inbox.close(keysOf(first));
      return "ended";
    }
    if (first.stoppedBy === undefined && first.isSealed === true && !(await canShowAnswer(first))) {
      const { conversations } = dependencies;
      const isAnswered = () => canShowAnswer(first);
      await sealReply(first, {
        otherTurnsShow,
        active,
        inbox,
        conversations,
        platform,
        isAnswered,
        log,
        meter,
      });
      return "ended";
    }
    const allowed = batch.filter((turn) => eventsOf(turn).some(isAllowed));
    const refused = batch.filter((turn) => !allowed.includes(turn));
    for (const turn of refused) await refuseTurn(turn, { active, inbox, platform, log });
    if (allowed.length === 0) return "ended";
    const run = await openRun(allowed, active, platform);
    const startedAt = performance.now();
    let outcome: TurnOutcome | "shown" | "left-open";
    try {
      outcome = await inLanguage(run.language, () =>
        showingWaits(run.reply, dependencies.clock, () => answer(run)),
      );
      log.debug({ outcome }, "reply ended");
      throwIfAbandoned(active.signal);
      await storeShownMessages(run);
      await closeEvents(options, run, outcome);
      if (outcome === "complete" && run.conversationId === event.conversationId)
        giveTitle(dependenciesFor(run), platform, run.conversationId);
    } catch (error) {
      outcome = "left-open";
      active.abandon(new ParleyError("stopping", "the turn is left open", { cause: error }));
      if (isEditedError(error))
        log.info({ platform: event.platform }, "turn runs again: its question was edited");
      else log.error({ platform: event.platform, err: error }, "turn left open");
      // A permanent failure, such as a missing permission, would fail again on every recovery.
      if (!isOutage(error)) await inbox.close(allowed.flatMap(keysOf));
    }
    if (outcome !== "left-open") await inLanguage(run.language, () => warnOfBudgets(run));
    const seconds = (performance.now() - startedAt) / 1000;
    meter({ kind: "turn", platform: event.platform, event: event.kind, outcome, seconds });
    currentTurn()?.span.set({ "parley.outcome": outcome });
    const { attempt } = run;
    const durationMs = Math.round(seconds * 1000);
    log.info({ platform: event.platform, kind: event.kind, outcome, attempt, durationMs }, "turn ended");
    return outcome === "left-open" ? "left-open" : "ended";
  };

  async function warnOfBudgets(run: BatchRun): Promise<void> {
    const { author, platform, origin, address } = payerOf(run);
    const caller = { personId: author.id, platform, origin };
    await options.warnings.afterTurn({ caller, platform: run.platform, address });
  }

  async function openRun(
    batch: readonly PendingTurn[],
    active: ActiveTurn,
    platform: Platform,
  ): Promise<BatchRun> {
    const first = batch[0]!;
    const keys = batch.flatMap(keysOf);
    const settings = await options.settings.forTurn(first.event);
    const attempt = (first.progress?.attempts ?? 0) + 1;
    const address = first.progress?.address ?? batch.at(-1)!.event.address;
    let shownAt = address;
    let storedKeys: readonly string[] = [];
    let isClaimed = false;
    const saveAddress: ReplyHooks["saveAddress"] = async (grown, how) => {
      throwIfAbandoned(active.signal);
      shownAt = grown;
      const progress = { keys, address: grown, attempts: attempt };
      if (!(await (isClaimed ? inbox.saveTurn(progress, how) : inbox.claimTurn(progress)))) {
        active.abandon(new ParleyError("stopping", "another process runs this turn"));
      }
      // The lease may have been lost while the address was saved.
      throwIfAbandoned(active.signal);
      isClaimed = true;
      // The keys are stored before a message of an earlier attempt is removed, so that its deletion does not
      // look like that of the answer.
      const now = platform.shownMessageKeys(grown);
      if (storedKeys.some((known) => !now.includes(known)))
        await storeShown(storedIn(first.event), first.event.key, attempt, (storedKeys = now));
    };
    // A first attempt at one event is recorded when its reply begins, batches and retries before. If another
    // process may run the turn too, it must be claimed first, or nobody would end its reply.
    if (dependencies.queue.isShared || first.progress !== undefined || keys.length > 1)
      await saveAddress(address);
    if (attempt > 1) log.info({ platform: platform.id, attempt }, "turn resumed");
    log.debug(
      { platform: platform.id, conversation: first.event.conversationId, attempt, keys },
      "turn started",
    );
    const { isCalm } = settings;
    const language = settings.language ?? currentLanguage();
    const isResumed = first.progress !== undefined;
    const otherTurnsShow = findOtherTurns(first.event, keys, platform);
    const stop = toStopAction(first.event.key);
    const reply = createTracedReply(
      inLanguage(language, () =>
        platform.openReply(address, { saveAddress, isResumed, isCalm, otherTurnsShow, stop }),
      ),
      options.tracer,
      currentTurn()?.span ?? noSpan,
    );
    active.reply = reply;
    return {
      conversationId: storedIn(first.event),
      batch,
      active,
      platform,
      attempt,
      reply,
      settings,
      language,
      shownMessageKeys: () => (storedKeys = platform.shownMessageKeys(shownAt)),
      storedMessageKeys: () => storedKeys,
    };
  }

  /** Stores messages that were posted after the answer, so that deleting one deletes the answer. */
  async function storeShownMessages(run: BatchRun): Promise<void> {
    const before = run.storedMessageKeys();
    const now = run.shownMessageKeys();
    if (now.length === before.length && now.every((key, index) => key === before[index])) return;
    await storeShown(run.conversationId, run.batch[0]!.event.key, run.attempt, now);
  }

  async function storeShown(
    conversationId: string,
    key: string,
    attempt: number,
    keys: readonly string[],
  ): Promise<void> {
    for (const id of [messageIds.complete(key), messageIds.assistant(key, attempt)])
      await dependencies.conversations.setShownAs(conversationId, id, keys);
  }
}

/** Whether people see a reply already. A message that waits shows nothing. */
function hasReply({ event, progress }: PendingTurn): boolean {
  return event.kind === "call" || (progress?.attempts ?? 0) > 0;
}

type Closing = Pick<BatchRunnerOptions, "dependencies" | "inbox" | "schedule">;

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
  if (rest !== undefined) schedule(withNewReply(rest, run.attempt));
}

/** Applies an edit of a call's message after the call has run as it was written. */
async function closeCall({ dependencies, inbox }: Closing, run: BatchRun, call: CommandCall): Promise<void> {
  const { key } = call;
  for (let latest = call; ;) {
    const count = latest.edit?.count ?? 0;
    if (count > 0) await applyEdit(dependencies, run.conversationId, latest);
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
