import { toNotice } from "../../core/error-messages.ts";
import { ParleyError } from "../../core/errors.ts";
import type { IncomingEvent, IncomingMessage } from "../../core/events.ts";
import type { Begun } from "../../core/inbox.ts";
import type { Result } from "../../core/result.ts";
import { currentTurn, inTurn } from "../../core/telemetry.ts";
import { inLanguage } from "../../words/translate.ts";
import { toLanguage } from "../../words/languages.ts";
import { runCommand } from "../commands/run-command.ts";
import { giveTitle } from "../turn/make-title.ts";
import { runTurn } from "../turn/run-turn.ts";
import { showingWaits } from "../turn/stream-answer.ts";
import { isOutage, type Run } from "../turn/turn.ts";
import { type ActiveTurn, isOvertaken, toOvertaken } from "./active-turn.ts";
import { accessDenied, type AttemptOptions, dependenciesFor, type OpenedRun, toAttempt } from "./attempt.ts";
import { createBegin } from "./begin-attempt.ts";
import { conclude, concludeAgain, type TurnOutcome } from "./conclude.ts";
import type { Task } from "./decide-next.ts";
import { createLeaving } from "./leave-attempt.ts";
import { createOpenRun } from "./open-run.ts";
import type { AttemptRunner } from "./turn-loop.ts";

/** Begins attempts, runs them to a result, and ends them. */
export function createAttemptRunner(options: AttemptOptions): AttemptRunner {
  const { inbox, platforms, log, meter } = options;
  const { access, conversations, archive, clock, now } = options.dependencies;
  const { begin, tellRefused, askedWith } = createBegin(options);
  const { endFailed, giveBack } = createLeaving(options);
  const open = createOpenRun(options, askedWith);
  const isAllowed = (event: IncomingEvent): boolean => access.refusalOf(event) === undefined;
  const concluding = { inbox, conversations, archive, now, log };

  async function run(kind: Task["kind"], begun: Begun, active: ActiveTurn): Promise<"ended" | "again"> {
    const { event } = begun.record;
    const platform = platforms.get(event.platform)!;
    const startedAt = performance.now();
    const { attempt: number, keys } = begun.record.turn;
    log.debug(
      { platform: platform.id, conversation: event.conversationId, attempt: number, keys },
      "turn started",
    );
    const opened = await open(begun, active, platform).catch(async (error: unknown) => {
      if (isOutage(error)) await giveBack(begun);
      throw error;
    });
    let outcome: TurnOutcome | "left-open";
    let isLeft = false;
    try {
      outcome = await inLanguage(opened.language, () =>
        showingWaits(opened.reply, clock, () => runOpened(kind, opened)),
      );
    } catch (error) {
      if (isOvertaken(error)) {
        active.abandon(toOvertaken());
        log.info({ platform: platform.id }, "turn left to its next attempt");
        outcome = "left-open";
      } else {
        outcome = await endFailed(opened, error);
        isLeft = outcome === "left-open";
      }
    }
    const seconds = (performance.now() - startedAt) / 1000;
    const { attempt } = opened;
    meter({ kind: "turn", platform: platform.id, event: event.kind, outcome, seconds });
    currentTurn()?.span.set({ "parley.outcome": outcome });
    const durationMs = Math.round(seconds * 1000);
    log.info({ platform: platform.id, kind: event.kind, outcome, attempt, durationMs }, "turn ended");
    return isLeft ? "again" : "ended";
  }

  async function runOpened(kind: Task["kind"], opened: OpenedRun): Promise<TurnOutcome> {
    const { begun, events, platform } = opened;
    const { end, again } = begun.record.turn;
    if (kind === "give-up") return await giveUp(opened);
    // Nothing runs in the conversation now that could still use them.
    if (again?.kind === "edit" || end?.kind === "withdrawn") await eraseLooseFiles(opened);
    if (end !== undefined) return await concludeAgain(concluding, opened, end);
    const isSeen = platform.shownMessageKeys(begun.record.turn.address).length > 0;
    if (kind === "run" && !isSeen && !events.some(isAllowed)) return await refuseUnseen(opened);
    const result = kind === "seal" ? sealed() : await work(opened);
    if (result.kind === "sealed")
      log.info({ platform: platform.id }, "turn sealed: too old, or failed too often");
    else if (result.error !== undefined && result.kind !== "stopped")
      log.warn({ err: result.error, result: result.kind }, "turn failed");
    const outcome = await conclude(concluding, opened, result);
    // A file that was read of a message which was deleted, or whose turn was stopped, may be in no message.
    if (outcome === "cancelled") await eraseLooseFiles(opened);
    if (result.kind === "sealed") meter({ kind: "refused", platform: platform.id, code: "too-old" });
    await afterwards(opened, outcome);
    return outcome;
  }

  const eraseLooseFiles = ({ conversationId }: Run) =>
    archive.removeMessages(conversationId, { ids: [], withLooseFiles: true });

  async function giveUp(opened: OpenedRun): Promise<TurnOutcome> {
    log.error({ platform: opened.platform.id }, "the end of a turn could not be shown");
    await opened.reply.show();
    await opened.reply.fail({
      text: toNotice(new ParleyError("too-old", "not shown")),
      retryKey: opened.key,
    });
    await inbox.write(toAttempt(opened.begun), { kind: "close", isRepeatable: true });
    return "failed";
  }

  /** Refuses a turn of which nobody sees anything, as one that has not begun. */
  async function refuseUnseen({ begun, events, key, platform, reply }: OpenedRun): Promise<TurnOutcome> {
    log.info({ turn: key }, "turn refused by the access rules");
    reply.abandon();
    for (const event of events) await tellRefused(event, platform);
    for (const event of events) await inbox.change({ kind: "delete", of: event.key });
    await inbox.write(toAttempt(begun), { kind: "close" });
    return "failed";
  }

  const sealed = (): Result => ({
    kind: "sealed",
    notices: [],
    error: new ParleyError("too-old", "not run again"),
  });

  /** Answers the events, unless their authors may not ask any more, or ask too often. */
  async function work(opened: OpenedRun): Promise<Result> {
    const { again, attempt, begun, events } = opened;
    const allowed = events.filter(isAllowed);
    const [payer] = allowed;
    if (payer === undefined) return { kind: "refused", notices: [], error: accessDenied() };
    // Each new answer to an edited question counts as a request of its author.
    const isFirst = attempt - begun.record.turn.since === 1;
    if (again?.kind === "edit" && again.isCounted !== true && isFirst && payer.kind === "message") {
      const { refusal } = await options.turnRate.count(payer.author.id);
      if (refusal !== undefined) return { kind: "refused", notices: [], error: refusal };
    }
    const dependencies = dependenciesFor(options, events, payer, opened.turnSettings);
    const [first] = events;
    if (first?.kind === "call")
      return await runCommand(dependencies, options.commands, {
        ...opened,
        call: first,
        receive: options.receive,
        inbox,
        place: options.settings.servicesFor(first),
      });
    const messages = allowed.filter((one): one is IncomingMessage => one.kind === "message");
    const wanted = messages.findLast(({ model }) => model !== undefined)?.model;
    return await runTurn(dependencies, { ...opened, messages, lead: "", model: again?.model ?? wanted });
  }

  /** What nobody waits for. */
  async function afterwards(opened: OpenedRun, outcome: TurnOutcome): Promise<void> {
    const { conversationId, events, platform } = opened;
    const [first] = events;
    if (first === undefined) return;
    const { author, origin, address } = first;
    if (outcome === "complete" && conversationId === first.conversationId)
      giveTitle(dependenciesFor(options, events, first, opened.turnSettings), platform, conversationId);
    const caller = { personId: author.id, platform: platform.id, origin };
    await options.warnings.afterTurn({ caller, platform, address });
  }

  return { begin, run: inTurnScope(options, run) };
}

/**
 * Runs each attempt in the scope of its turn. Its log lines name the turn, it is one step of the trace that
 * began with its first event, and it uses the language of the person who asked first.
 */
function inTurnScope(
  { tracer, takeArrival }: Pick<AttemptOptions, "tracer" | "takeArrival">,
  run: AttemptRunner["run"],
): AttemptRunner["run"] {
  return async (kind, begun, active) => {
    const { event, turn } = begun.record;
    const arrivals = turn.keys.flatMap((key) => takeArrival(key) ?? []);
    const [parent, ...links] = arrivals;
    const span = tracer.start("turn", {
      parent,
      links,
      fields: {
        "parley.turn": event.key,
        "parley.platform": event.platform,
        "parley.attempt": turn.attempt,
        "parley.events": turn.keys.length,
      },
    });
    let outcome: "ended" | "again" = "again";
    try {
      const language = toLanguage(begun.events[0]?.author.locale);
      outcome = await inTurn({ turn: event.key, span }, () =>
        inLanguage(language, () => run(kind, begun, active)),
      );
      return outcome;
    } catch (error) {
      span.fail(error);
      throw error;
    } finally {
      span.end();
      for (const arrival of arrivals) {
        arrival.set({ "parley.outcome": outcome });
        arrival.end();
      }
    }
  };
}
