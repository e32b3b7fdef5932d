import type { createAdmission } from "../access/admission.ts";
import type { Command } from "../../core/command.ts";
import { toNotice } from "../../core/error-messages.ts";
import { storedIn, type IncomingEvent } from "../../core/events.ts";
import type { Platform, Receiver, Reply } from "../../core/platform.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Conversations, StoredMessage } from "../../core/storage.ts";
import { runCommand } from "../commands/run-command.ts";
import type { Language } from "../../words/languages.ts";
import { inLanguage } from "../../words/translate.ts";
import { showStored } from "../turn/continued-answer.ts";
import type { AnswerSoFar, TurnDependencies, TurnOutcome } from "../turn/turn.ts";
import { markPeoplesThread, messageIds } from "../turn/stored-messages.ts";
import { runTurn } from "../turn/run-turn.ts";
import { findShownLead } from "../turn/transcribe-recording.ts";
import type { LayeredSettings, TurnSettings } from "../settings/layered-settings.ts";
import { toStopped, type ActiveTurn, eventsOf, type PendingTurn } from "./pending-turn.ts";
import { endUnanswered } from "./end-turn.ts";
import { withheldHistory } from "../access/access.ts";

/**
 * After this many attempts, even a turn with a stored answer is sealed: showing it may be what ends the
 * process. A bad hour, with a full disk and restarts, takes dozens.
 */
const maxShownAttempts = 100;

/** What the runs of all batches share. */
export interface BatchOptions {
  /** What a run needs apart from what belongs to its person and place. */
  readonly dependencies: Omit<
    TurnDependencies,
    | "gateway"
    | "gatewayBeside"
    | "personId"
    | "withheld"
    | "admitBytes"
    | "admitReading"
    | "chat"
    | "models"
    | "inbox"
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
  /** Its events that the rules allow. They may have changed since the events were accepted. */
  readonly allowed: readonly IncomingEvent[];
  readonly active: ActiveTurn;
  readonly platform: Platform;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  readonly reply: Reply;
  /** The language of Parley's own words in it. */
  readonly language: Language;
  /** The dependencies with the limits and rights of the person who pays. */
  readonly dependencies: TurnDependencies;
  readonly shownMessageKeys: () => readonly string[];
  /** Stores messages that were posted after the answer, so that deleting one deletes the answer. */
  readonly storeShownMessages: () => Promise<void>;
}

/** The dependencies of a run, whose first allowed event is of the person who pays. */
export function dependenciesFor(
  { dependencies, admission, inbox }: BatchOptions,
  events: readonly IncomingEvent[],
  { author, platform, origin }: IncomingEvent,
  { chat, models }: TurnSettings,
): TurnDependencies {
  const personId = author.id;
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
    admitReading: (signal) => admission.admitReading(personId, signal),
  };
}

/** Answers a batch: it shows what is stored or was stopped, or runs the turn or the command. */
export async function answerBatch(options: BatchOptions, run: BatchRun): Promise<TurnOutcome | "shown"> {
  const [first] = run.batch as readonly [PendingTurn];
  const { event, isConfirmed = false, redo, refusal, stoppedAnswer, isSealed } = first;
  const stoppedBy = first.state === "stopping" ? (first.stoppedBy ?? "") : undefined;
  const { conversationId, dependencies } = run;
  const { conversations } = dependencies;
  if (!isConfirmed && (await showStoredAnswer(run, event))) return "shown";
  const common = {
    attempt: run.attempt,
    platform: run.platform,
    conversationId,
    reply: run.reply,
    signal: run.active.signal,
    redo,
    shownMessageKeys: run.shownMessageKeys,
    offerSoFar: (soFar: AnswerSoFar) => {
      run.active.soFar = (by) => inLanguage(run.language, () => soFar(toNotice(toStopped(by))));
    },
  };
  if (stoppedBy !== undefined || (isSealed === true && redo !== undefined))
    return await endUnanswered(dependencies, {
      ...common,
      key: event.key,
      lead: "",
      stoppedBy,
      stoppedAnswer,
    });
  // This is stored first, because a conversation without the mark is answered whole.
  if (event.inRoom === true && conversationId === event.conversationId)
    await markPeoplesThread(conversations, conversationId);
  if (event.kind === "call") {
    const { commands, inbox, receive } = options;
    const settings = options.settings.servicesFor(event);
    return await runCommand(dependencies, commands, {
      ...common,
      call: event,
      isConfirmed,
      receive,
      inbox,
      settings,
    });
  }
  const messages = run.allowed.filter((one) => one.kind === "message");
  const asked = messages.findLast(({ model }) => model !== undefined)?.model;
  const model = redo?.model ?? asked;
  return await runTurn(dependencies, { ...common, refusal, key: event.key, messages, lead: "", model });
}

/** Shows an answer that was stored before a crash could close its turn, so that no model is asked again. */
async function showStoredAnswer(run: BatchRun, event: IncomingEvent): Promise<boolean> {
  if (run.attempt === 1) return false;
  const { batch, conversationId, dependencies } = run;
  const { conversations } = dependencies;
  const stored = await findCompleteAnswer(conversations, event);
  if (stored === undefined || (stored.attempt ?? 0) <= (batch[0]?.redo?.since ?? 0)) return false;
  const lead = await findShownLead(conversations, conversationId, batch.flatMap(eventsOf));
  await run.reply.show();
  await showStored(dependencies, { ...run, lead }, stored);
  return true;
}

/** Whether a turn that failed too often only has to show its answer. Showing it may be what fails. */
export async function canShowAnswer(
  conversations: Pick<Conversations, "find">,
  { event, progress, redo }: PendingTurn,
): Promise<boolean> {
  const attempts = progress?.attempts ?? 0;
  const isFew = attempts - (redo?.since ?? 0) < maxShownAttempts;
  return isFew && (await findCompleteAnswer(conversations, event)) !== undefined;
}

async function findCompleteAnswer(
  conversations: Pick<Conversations, "find">,
  event: IncomingEvent,
): Promise<StoredMessage | undefined> {
  const stored = await conversations.find(storedIn(event), messageIds.complete(event.key));
  // A rerun that failed leaves its failure with the earlier answer.
  return stored?.failure === undefined ? stored : undefined;
}
