import type { Admission } from "../access/admission.ts";
import type { Command } from "../../core/command.ts";
import { ParleyError } from "../../core/errors.ts";
import type { IncomingEvent } from "../../core/events.ts";
import type { Platform, Receiver, Reply, ReplyHooks } from "../../core/platform.ts";
import { actionsOf } from "../../core/reply-actions.ts";
import type { Inbox, StoredMessage } from "../../core/storage.ts";
import { runCommand } from "../commands/run-command.ts";
import { throwIfAbandoned } from "../turn/abandoned.ts";
import { runTurn } from "../turn/run-turn.ts";
import { storePlaces } from "../turn/store-places.ts";
import { messageIds, textOf } from "../turn/stored-messages.ts";
import type { LayeredSettings, TurnSettings } from "../settings/layered-settings.ts";
import type { TurnDependencies, TurnOutcome } from "../turn/turn.ts";
import type { ActiveTurn } from "./active-turn.ts";
import { endWithdrawn } from "./end-withdrawn.ts";
import {
  eventsOf,
  keysOf,
  storedIn,
  withNewReply,
  withoutDeleted,
  type PendingTurn,
} from "./pending-turn.ts";
import { isOutage, sealReply } from "./recovery.ts";
import { refuseTurn } from "./refuse-turn.ts";

/** Runs of a turn whose answer is stored, until it is sealed all the same. */
const maxShownAttempts = 20;

export interface BatchRunnerOptions {
  readonly dependencies: Omit<TurnDependencies, "gateway" | "admitBytes" | "chat" | "models">;
  readonly settings: LayeredSettings;
  readonly admission: Admission;
  readonly inbox: Inbox;
  readonly platforms: ReadonlyMap<string, Platform>;
  readonly commands: ReadonlyMap<string, Command>;
  readonly receive: Receiver["receive"];
  readonly schedule: (turn: PendingTurn) => void;
}

/** One run of a batch. */
interface BatchRun {
  readonly conversationId: string;
  readonly batch: readonly PendingTurn[];
  readonly active: ActiveTurn;
  readonly platform: Platform;
  /** 1 for the first run. */
  readonly attempt: number;
  readonly reply: Reply;
  /** In force for its first event. */
  readonly settings: TurnSettings;
  readonly shownMessageKeys: () => readonly string[];
  /** What {@link shownMessageKeys} returned last: what is stored of them. */
  readonly storedMessageKeys: () => readonly string[];
}

/**
 * Returns a function that runs a batch: opens its reply, runs the turn or command, and closes its inbox entries. A
 * batch that failed without anything shown or stored stays open.
 */
export function createBatchRunner(options: BatchRunnerOptions) {
  const { dependencies, inbox, platforms } = options;
  const { log, meter } = dependencies;

  return async function runBatch(
    batch: readonly PendingTurn[],
    active: ActiveTurn,
  ): Promise<"ended" | "left-open"> {
    const [first] = batch;
    if (first === undefined) return "ended";
    const { event } = first;
    const platform = platforms.get(event.platform);
    if (platform === undefined) {
      log.warn({ key: event.key, platform: event.platform }, "platform of an open turn is off");
      return "left-open";
    }
    if (first.isWithdrawn === true) return await endWithdrawn(first, { active, inbox, platform, log });
    if (first.isSealed === true && !(await canShowAnswer(first))) {
      await sealReply(first, { inbox, platform, isAnswered: () => canShowAnswer(first), log });
      return "ended";
    }
    const allowed = batch.filter((turn) => eventsOf(turn).some(isAllowed));
    const refused = batch.filter((turn) => !allowed.includes(turn));
    for (const turn of refused) await refuseTurn(turn, { inbox, platform, log });
    if (allowed.length === 0) return "ended";
    const run = await openRun(allowed, active, platform);
    const startedAt = performance.now();
    let outcome: TurnOutcome | "shown" | "left-open";
    try {
      outcome = await answer(run);
      throwIfAbandoned(active.signal);
      await storeShownMessages(run);
      await closeEvents(run, outcome);
    } catch (error) {
      outcome = "left-open";
      active.abandon(new ParleyError("stopping", "the turn is left open", { cause: error }));
      log.error({ key: event.key, platform: event.platform, err: error }, "turn left open");
      // A permanent failure (missing permission, deleted channel) would fail again on every recovery.
      if (!isOutage(error)) await inbox.close(allowed.flatMap(keysOf));
    }
    const seconds = (performance.now() - startedAt) / 1000;
    meter.turn({ platform: event.platform, kind: event.kind, outcome }, seconds);
    return outcome === "left-open" ? "left-open" : "ended";
  };

  /** The rules may have changed since the event was accepted: before a restart, or before a Retry. */
  function isAllowed(event: IncomingEvent): boolean {
    return dependencies.access.refusalOf(event) === undefined;
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
        throwIfAbandoned(active.signal);
      }
      isClaimed = true;
    };
    // A first attempt at one event is recorded when its reply begins; batches and retries must be known before. Where
    // another process may run it too, nothing is posted before it is claimed: nobody would end that reply.
    if (dependencies.queue.isShared || first.progress !== undefined || keys.length > 1)
      await saveAddress(address);
    if (attempt > 1) log.info({ key: first.event.key, platform: platform.id, attempt }, "turn resumed");
    const { isCalm } = settings;
    const isResumed = first.progress !== undefined;
    const otherTurnsShow = async (wanted: readonly string[]): Promise<readonly string[]> => {
      const open = await inbox.listOpenIn(first.event.conversationId);
      const others = open.filter(({ event }) => !keys.includes(event.key));
      const shown = others.flatMap(({ turn }) =>
        turn === undefined ? [] : platform.shownMessageKeys(turn.address),
      );
      return wanted.filter((key) => shown.includes(key));
    };
    const reply = platform.openReply(address, { saveAddress, isResumed, isCalm, otherTurnsShow });
    active.reply = reply;
    return {
      conversationId: storedIn(first.event),
      batch,
      active,
      platform,
      attempt,
      reply,
      settings,
      shownMessageKeys: () => (storedKeys = platform.shownMessageKeys(shownAt)),
      storedMessageKeys: () => storedKeys,
    };
  }

  /** Messages that were posted after the answer was stored show it too: who deletes one deletes the answer. */
  async function storeShownMessages(run: BatchRun): Promise<void> {
    const before = run.storedMessageKeys();
    const now = run.shownMessageKeys();
    if (now.length === before.length && now.every((key, index) => key === before[index])) return;
    const { key } = run.batch[0]!.event;
    for (const id of [messageIds.complete(key), messageIds.assistant(key, run.attempt)])
      await dependencies.conversations.setShownAs(run.conversationId, id, now);
  }

  async function answer(run: BatchRun): Promise<TurnOutcome | "shown"> {
    const { event, isConfirmed = false } = run.batch[0]!;
    if (!isConfirmed && (await showStoredAnswer(run, event))) return "shown";
    const common = {
      attempt: run.attempt,
      platform: run.platform,
      conversationId: run.conversationId,
      reply: run.reply,
      signal: run.active.signal,
      shownMessageKeys: run.shownMessageKeys,
    };
    if (event.kind === "call") {
      const { commands, receive } = options;
      return await runCommand(dependenciesFor(run), commands, {
        ...common,
        call: event,
        isConfirmed,
        receive,
        inbox,
        settings: options.settings.servicesFor(event),
      });
    }
    const events = run.batch.flatMap(eventsOf).filter(isAllowed);
    const messages = events.filter((one) => one.kind === "message");
    return await runTurn(dependenciesFor(run), {
      ...common,
      key: event.key,
      messages,
      lead: "",
      model: messages.findLast(({ model }) => model !== undefined)?.model,
    });
  }

  /** What the run's person is admitted to. */
  function dependenciesFor(run: BatchRun): TurnDependencies {
    const { admission } = options;
    const events = run.batch.flatMap(eventsOf);
    const { author, platform, origin } = events.find(isAllowed) ?? events[0]!;
    const personId = author.id;
    const { chat, models } = run.settings;
    return {
      ...dependencies,
      chat,
      models,
      gateway: admission.gatewayFor({ personId, platform, origin }),
      admitBytes: (bytes, signal) => admission.admitBytes(personId, bytes, signal),
    };
  }

  /** After a crash between storing the answer and closing the turn, the stored answer is shown; nothing is asked again. */
  async function showStoredAnswer(run: BatchRun, event: IncomingEvent): Promise<boolean> {
    if (run.attempt === 1) return false;
    const stored = await findCompleteAnswer(event, run.attempt - 1);
    if (stored === undefined) return false;
    await run.reply.show();
    run.reply.write({ text: textOf(stored.parts) });
    await run.reply.finish({
      notices: stored.notices ?? [],
      actions: actionsOf(run.conversationId, stored),
    });
    // The earlier run may have ended before it had stored them.
    if (run.conversationId === event.conversationId)
      await storePlaces(dependencies, run.conversationId, event.within);
    return true;
  }

  /** Whether a turn that failed too often only has to show its answer. Not for ever: showing it may be what fails. */
  async function canShowAnswer({ event, progress }: PendingTurn): Promise<boolean> {
    const attempts = progress?.attempts ?? 0;
    return attempts < maxShownAttempts && (await findCompleteAnswer(event, attempts)) !== undefined;
  }

  async function findCompleteAnswer(
    event: IncomingEvent,
    attempts: number,
  ): Promise<StoredMessage | undefined> {
    const { conversations } = dependencies;
    const stored = await conversations.find(storedIn(event), messageIds.complete(event.key));
    if (stored !== undefined) return stored;
    // Earlier versions of Parley stored each attempt's answer under an id of its own.
    for (let earlier = attempts; earlier > 0; earlier--) {
      const old = await conversations.find(storedIn(event), messageIds.assistant(event.key, earlier));
      if (old?.outcome === "complete") return old;
    }
    return undefined;
  }

  /** Closes what was answered. Messages of a batch that was cancelled because others were deleted run again. */
  async function closeEvents(run: BatchRun, outcome: TurnOutcome | "shown"): Promise<void> {
    const rest =
      outcome === "cancelled" ? withoutDeleted(run.batch, (key) => run.active.isDeleted(key)) : undefined;
    const left = rest === undefined ? [] : keysOf(rest);
    const answered = run.batch.flatMap(keysOf).filter((key) => !left.includes(key));
    if (!(await inbox.close(answered, { attempts: run.attempt })))
      throw new ParleyError("stopping", "another process runs this turn");
    if (rest !== undefined) options.schedule(withNewReply(rest, run.attempt));
  }
}
