import type { createAdmission } from "../access/admission.ts";
import type { Command } from "../../core/command.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { IncomingEvent } from "../../core/events.ts";
import type { Platform, Receiver, Reply } from "../../core/platform.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { StoredMessage } from "../../core/storage.ts";
import { runCommand } from "../commands/run-command.ts";
import type { Language } from "../../words/languages.ts";
import { inLanguage } from "../../words/translate.ts";
import { showStored } from "../turn/continued-answer.ts";
import { type AnswerSoFar, type TurnDependencies, type TurnOutcome } from "../turn/turn.ts";
import { markPeoplesThread, messageIds } from "../turn/stored-messages.ts";
import { runTurn } from "../turn/run-turn.ts";
import { findShownLead } from "../turn/transcribe-recording.ts";
import type { LayeredSettings, TurnSettings } from "../settings/layered-settings.ts";
import { toStopped, type ActiveTurn, eventsOf, storedIn, type PendingTurn } from "./pending-turn.ts";
import { endUnanswered } from "./end-turn.ts";
import { withheldHistory } from "../access/access.ts";

/** After this many attempts, even a turn with a stored answer is sealed. */
const maxShownAttempts = 20;

export interface BatchAnswerOptions {
  readonly dependencies: Omit<
    TurnDependencies,
    "gateway" | "gatewayBeside" | "personId" | "withheld" | "admitBytes" | "chat" | "models" | "inbox"
  >;
  readonly settings: LayeredSettings;
  readonly admission: ReturnType<typeof createAdmission>;
  readonly inbox: Inbox;
  readonly commands: ReadonlyMap<string, Command>;
  readonly receive: Receiver["receive"];
}

/** One run of a batch of turns. */
export interface BatchRun {
  readonly conversationId: string;
  readonly batch: readonly PendingTurn[];
  readonly active: ActiveTurn;
  readonly platform: Platform;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  readonly reply: Reply;
  /** The settings in force for its first event. */
  readonly settings: TurnSettings;
  /** The language of Parley's own words in it. */
  readonly language: Language;
  readonly shownMessageKeys: () => readonly string[];
  /** The last result of {@link shownMessageKeys}, which is what the store has. */
  readonly storedMessageKeys: () => readonly string[];
}

/** Answers batches: it shows what is stored or was stopped, or runs the turn or the command. */
export function createBatchAnswer(options: BatchAnswerOptions) {
  const { dependencies, inbox } = options;

  return { answer, canShowAnswer, dependenciesFor, isAllowed, payerOf };

  /** The rules may have changed since the event was accepted, before a restart or a Retry. */
  function isAllowed(event: IncomingEvent): boolean {
    return dependencies.access.refusalOf(event) === undefined;
  }

  async function answer(run: BatchRun): Promise<TurnOutcome | "shown"> {
    const { event, isConfirmed = false, redo, stoppedBy, stoppedAnswer, isSealed } = run.batch[0]!;
    if (!isConfirmed && (await showStoredAnswer(run, event))) return "shown";
    if (stoppedBy !== undefined || (isSealed === true && redo !== undefined))
      return await endUnanswered(dependencies, {
        ...run,
        key: event.key,
        redo,
        lead: "",
        stoppedBy,
        stoppedAnswer,
      });
    // This is stored first, because a conversation without the mark is answered whole.
    if (event.inRoom === true && run.conversationId === event.conversationId)
      await markPeoplesThread(dependencies.conversations, run.conversationId);
    const common = {
      attempt: run.attempt,
      platform: run.platform,
      conversationId: run.conversationId,
      reply: run.reply,
      signal: run.active.signal,
      redo,
      shownMessageKeys: run.shownMessageKeys,
      offerSoFar: (soFar: AnswerSoFar) => {
        run.active.soFar = (by) => inLanguage(run.language, () => soFar(toNotice(toStopped(by))));
      },
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
      refusal: run.batch[0]!.refusal,
      key: event.key,
      messages,
      lead: "",
      model: redo?.model ?? messages.findLast(({ model }) => model !== undefined)?.model,
    });
  }

  /** The event of a run whose author pays. */
  function payerOf(run: BatchRun): IncomingEvent {
    const events = run.batch.flatMap(eventsOf);
    return events.find(isAllowed) ?? events[0]!;
  }

  /** The dependencies with the limits and rights of the run's person. */
  function dependenciesFor(run: BatchRun): TurnDependencies {
    const { admission } = options;
    const events = run.batch.flatMap(eventsOf);
    const { author, platform, origin } = payerOf(run);
    const personId = author.id;
    const { chat, models } = run.settings;
    const withheld = withheldHistory(dependencies.conversations, events);
    return {
      ...dependencies,
      ...(withheld === undefined ? {} : { conversations: withheld.conversations }),
      withheld,
      inbox,
      chat,
      models,
      personId,
      gateway: admission.gatewayFor({ personId, platform, origin }),
      gatewayBeside: admission.gatewayFor({ personId, platform, origin, leavesRest: true }),
      admitBytes: (bytes, signal) => admission.admitBytes(personId, bytes, signal),
    };
  }

  /** Shows an answer that was stored before a crash could close its turn, so that no model is asked again. */
  async function showStoredAnswer(run: BatchRun, event: IncomingEvent): Promise<boolean> {
    if (run.attempt === 1) return false;
    const stored = await findCompleteAnswer(event);
    if (stored === undefined || (stored.attempt ?? 0) <= (run.batch[0]?.redo?.since ?? 0)) return false;
    const { conversations } = dependencies;
    const lead = await findShownLead(conversations, run.conversationId, run.batch.flatMap(eventsOf));
    await run.reply.show();
    await showStored(dependencies, { ...run, lead }, stored);
    return true;
  }

  /** Whether a turn that failed too often only has to show its answer. Showing it may be what fails. */
  async function canShowAnswer({ event, progress, redo }: PendingTurn): Promise<boolean> {
    const attempts = progress?.attempts ?? 0;
    const isFew = attempts - (redo?.since ?? 0) < maxShownAttempts;
    return isFew && (await findCompleteAnswer(event)) !== undefined;
  }

  async function findCompleteAnswer(event: IncomingEvent): Promise<StoredMessage | undefined> {
    const { conversations } = dependencies;
    const stored = await conversations.find(storedIn(event), messageIds.complete(event.key));
    // A rerun that failed leaves its failure with the earlier answer.
    return stored?.failure === undefined ? stored : undefined;
  }
}
