import type { Command } from "../../core/command.ts";
import { ParleyError } from "../../core/errors.ts";
import { storedIn, type IncomingEvent } from "../../core/events.ts";
import type { Attempt, Begun, Inbox } from "../../core/inbox.ts";
import type { Platform } from "../../core/platform.ts";
import type { ConversationSettings, StoredMessage } from "../../core/storage.ts";
import type { Log, Meter, Span, Tracer } from "../../core/telemetry.ts";
import type { Language } from "../../words/languages.ts";
import { withheldHistory } from "../access/access.ts";
import type { createAdmission, TurnRate } from "../access/admission.ts";
import type { BudgetWarnings } from "../access/person-budgets.ts";
import type { LayeredSettings, TurnSettings } from "../settings/settings-in-force.ts";
import type { Run, TurnDependencies } from "../turn/turn.ts";
import type { ActiveTurn } from "./active-turn.ts";

/** What a run needs that belongs to its person and place. */
type OfPerson =
  | "gateway"
  | "gatewayBeside"
  | "personId"
  | "withheld"
  | "admitBytes"
  | "admitReading"
  | "chat"
  | "models";

/** What attempts need from the rest of the assistant. */
export interface AttemptOptions {
  readonly dependencies: Omit<TurnDependencies, OfPerson>;
  readonly settings: LayeredSettings;
  readonly admission: ReturnType<typeof createAdmission>;
  readonly inbox: Inbox;
  readonly commands: ReadonlyMap<string, Command>;
  readonly platforms: ReadonlyMap<string, Platform>;
  readonly turnRate: TurnRate;
  readonly warnings: Pick<BudgetWarnings, "afterTurn">;
  readonly receive: (event: IncomingEvent) => Promise<"accepted" | "duplicate">;
  readonly tracer: Tracer;
  /** Takes the trace that began when an event arrived in this process. */
  readonly takeArrival: (key: string) => Span | undefined;
  readonly meter: Meter;
  readonly log: Log;
}

/** An attempt with its reply. */
export interface OpenedRun extends Run {
  readonly events: readonly IncomingEvent[];
  readonly begun: Begun;
  readonly active: ActiveTurn;
  readonly language: Language;
  readonly turnSettings: TurnSettings;
}

/** What was read and stored when an attempt began. */
export interface Asked {
  readonly settings: ConversationSettings;
  readonly questions: readonly StoredMessage[];
}

export const accessDenied = (): ParleyError =>
  new ParleyError("access-denied", "refused by the access rules");

export const toAttempt = ({ record }: Begun): Attempt => ({
  key: record.event.key,
  attempt: record.turn.attempt,
  conversationId: storedIn(record.event),
});

/** The dependencies of a run, whose first allowed event is of the person who pays. */
export function dependenciesFor(
  { dependencies, admission }: Pick<AttemptOptions, "dependencies" | "admission">,
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
    chat,
    models,
    personId,
    gateway: admission.gatewayFor({ personId, platform, origin }),
    gatewayBeside: admission.gatewayFor({ personId, platform, origin, leavesRest: true }),
    admitBytes: (bytes, signal) => admission.admitBytes(personId, bytes, signal),
    admitReading: (signal) => admission.admitReading(personId, signal),
  };
}
