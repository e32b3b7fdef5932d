import type { Access, Asker } from "../core/access.ts";
import type { Clock } from "../core/clock.ts";
import type { HelpSettings } from "../core/command-services.ts";
import type { Command } from "../core/command.ts";
import type { IncomingEvent } from "../core/events.ts";
import type { Gateway } from "../core/gateway.ts";
import type { Inbox } from "../core/inbox.ts";
import type { SettingsStore } from "../core/layered-settings.ts";
import type { Platform } from "../core/platform.ts";
import type { ConversationHistory, Receiver } from "../core/receiver.ts";
import type { SpendingLedger } from "../core/spending.ts";
import type { Archive, ConversationLists, Conversations, ConversationQueue } from "../core/storage.ts";
import { noTracer, type Log, type Meter, type Span, type Tracer } from "../core/telemetry.ts";
import { systemClock } from "../support/clock.ts";
import type { AllowedModels } from "./access/access.ts";
import {
  createAdmission,
  type AdmissionLimits,
  createSpentCheck,
  createTurnRate,
} from "./access/admission.ts";
import { createBudgets, type ConfiguredBudgets } from "./access/budgets.ts";
import { createBudgetWarnings, createPersonOverview } from "./access/person-budgets.ts";
import { createPress } from "./actions/take-press.ts";
import { createConversationHistory } from "./conversation-history.ts";
import { createMessageChanges } from "./scheduling/message-changes.ts";
import { createEventIntake, type IntakeLimits } from "./scheduling/event-intake.ts";
import { createTurnLoop, type TurnLoop } from "./scheduling/turn-loop.ts";
import { createAttemptRunner } from "./scheduling/run-attempt.ts";
import { createSteering } from "./scheduling/steer-turn.ts";
import { createLayeredSettings } from "./settings/settings-in-force.ts";
import type { DeploymentChat } from "./settings/settings-reader.ts";
import { createTokenFactors } from "./turn/context-window.ts";
import { createPlacing } from "./scheduling/place-message.ts";
import { createModelChoice, suggestModels, type ModelSettings } from "./turn/model-choice.ts";
import { createHeardAside } from "./turn/read-room.ts";
import { createRefusalMemory } from "./turn/refusals.ts";
import { createSumUp } from "./turn/sum-up.ts";
import type { RoomBounds } from "./turn/turn.ts";
import { createRecent } from "../support/recent.ts";

interface AssistantOptions {
  readonly gateway: Gateway;
  readonly conversations: Conversations;
  readonly lists: ConversationLists;
  readonly archive: Archive;
  readonly inbox: Inbox;
  readonly queue: ConversationQueue;
  readonly restored?: ConversationHistory["restored"];
  readonly commands: ReadonlyMap<string, Command>;
  /** Decides who may use the bot. */
  readonly access: Access;
  readonly spending: SpendingOptions;
  readonly models: ModelSettings;
  /** Decides which models may be used. */
  readonly allowedModels: AllowedModels;
  readonly chat: DeploymentChat;
  /** Whether what no longer fits a model is summed up for it. Default true. */
  readonly hasMemory?: boolean;
  /** How much is read of a thread of people. Default: 100 messages of 24,000 characters together. */
  readonly room?: RoomBounds;
  /** Stores what people set with `/settings`. */
  readonly settings: SettingsStore;
  /** Says in one sentence each what is wrong with access terms that people typed. */
  readonly accessProblems: (terms: readonly string[]) => readonly string[];
  /** The settings that `/help` shows. */
  readonly help: Omit<HelpSettings, "turnsPersonMinute">;
  /** Limits that differ from the defaults. */
  readonly limits?: Partial<AssistantLimits>;
  readonly log: Log;
  readonly meter: Meter;
  /** By default there are no traces. */
  readonly tracer?: Tracer;
  /** Default: the time of this process. */
  readonly clock?: Clock;
}

/** How much people may ask and spend. */
export interface SpendingOptions extends ConfiguredBudgets {
  readonly ledger: SpendingLedger;
  /** How many requests one person may make in a minute, where 0 means no limit. */
  readonly turnsPersonMinute: number;
}

/** Limits for this process. */
interface AssistantLimits extends AdmissionLimits, IntakeLimits {}

const defaultLimits: AssistantLimits = {
  events: 1000,
  eventsPerPerson: 50,
  calls: 32,
  callsPerPerson: 4,
  fileBytes: 150_000_000,
  fileBytesPerPerson: 75_000_000,
};

/** How much runs and waits in this process. */
interface AssistantLoad {
  readonly turns: { readonly running: number; readonly waiting: number };
  readonly gatewayCalls: { readonly running: number; readonly waiting: number };
}

const defaultRoom: RoomBounds = { maxMessages: 100, maxChars: 24_000 };

const maxSeenNames = 10_000;
const maxArrivals = 1000;

/** The core of the bot: it accepts events durably and answers each once. @see docs/architecture.md */
export interface Assistant extends Receiver {
  readonly history: ConversationHistory;
  /** Adds a platform, whose replies can then be opened. Call it before the platform starts. */
  addPlatform(platform: Platform): void;
  /** Resumes a platform's open turns once it is connected. Resolves to their number. */
  recover(platformId: string): Promise<number>;
  /** The number of accepted events that are not closed. */
  pending(): number;
  /** How much runs and waits. */
  load(): AssistantLoad;
  /**
   * Accepts nothing more, waits for active turns until the deadline, and abandons the rest for the next
   * start. Resolves to the number of abandoned turns.
   */
  stop(options: { readonly deadlineMs: number }): Promise<number>;
}

export function createAssistant(options: AssistantOptions): Assistant {
  const { access, allowedModels, commands, conversations, gateway, log, spending } = options;
  const { tracer = noTracer, clock = systemClock } = options;
  const { ledger } = spending;
  const now = (): number => clock.now();
  const limits = { ...defaultLimits, ...options.limits };
  const platforms = new Map<string, Platform>();
  /** Names of people by id, as their events gave them. */
  const seenNames = createRecent<string>(maxSeenNames);
  const budgets = createBudgets({
    ...spending,
    places: { budgetsFor: (caller) => settings.rules.budgetsFor(caller) },
    gateway,
    meter: options.meter,
    log,
    now,
  });
  const models = createModelChoice(gateway, options.models, allowedModels);
  const settings = createLayeredSettings({
    ...options,
    store: options.settings,
    models,
    platforms,
    now,
  });

  async function nameOf(id: string): Promise<string | undefined> {
    const known = await platforms.get(id.slice(0, id.indexOf(":")))?.nameOf(id);
    return known ?? seenNames.get(id);
  }

  /** Checks the operator's rules and then those of the place. */
  async function expectAllowed(asker: Asker): Promise<void> {
    access.expectAllowed(asker);
    await settings.rules.expectMayUse(asker);
  }

  const modelsFor = async (event: IncomingEvent) => (await settings.forTurn(event)).models;
  const shared = {
    ...options,
    admission: createAdmission({ gateway, limits, budgets, allowed: allowedModels }),
    budgets,
    clock,
    expectAllowed,
    ledger,
    limits,
    models,
    nameOf,
    now,
    overBudget: createSpentCheck({ budgets, commands, modelsFor }),
    platforms,
    settings,
    tracer,
    turnRate: createTurnRate({ ledger, max: spending.turnsPersonMinute, now }),
  };
  const warnings = createBudgetWarnings(shared);
  /** Traces that began when events arrived, until their turns begin. */
  const arrivals = createRecent<Span>(maxArrivals);
  const attempts = createAttemptRunner({
    ...shared,
    warnings,
    takeArrival(key) {
      const arrival = arrivals.get(key);
      arrivals.delete(key);
      return arrival;
    },
    dependencies: {
      ...shared,
      help: { ...options.help, turnsPersonMinute: spending.turnsPersonMinute },
      factors: createTokenFactors(),
      refusals: createRefusalMemory(now),
      sumUp: options.hasMemory === false ? undefined : createSumUp(),
      room: options.room ?? defaultRoom,
    },
    // A message that a command starts in its caller's name is part of the command, so it is not counted.
    // Where it is refused, a Retry of the command sends it again.
    receive: (event) => keep(event, { isCounted: false, canResend: true }),
  });
  const loop: TurnLoop = createTurnLoop({ ...shared, attempts });
  const scheduling = { ...shared, loop };
  const keep = createEventIntake({
    ...scheduling,
    keepArrival: (key, arrival) => void arrivals.set(key, arrival),
    onSeen: ({ author }) => void seenNames.set(author.id, author.name),
  });

  const hear = createHeardAside(conversations);

  return {
    press: createPress({
      ...shared,
      steering: createSteering(scheduling),
      forms: settings.forms,
    }),
    changed: createMessageChanges({ ...scheduling, settings: options.settings }),
    history: createConversationHistory(shared),
    async receive(event, how) {
      if (event.kind !== "aside") return await keep(event, { ...how, isCounted: true });
      await hear(event);
      return "accepted";
    },
    recover: (platformId) => loop.round(platformId),
    async stop(stopOptions) {
      const abandoned = await loop.stop(stopOptions);
      budgets.close();
      return abandoned;
    },
    addPlatform(platform) {
      platforms.set(platform.id, platform);
    },
    pending: () => loop.inFlight.size,
    load: () => ({ turns: loop.load(), gatewayCalls: shared.admission.load() }),
    placeMessage: createPlacing({ rules: settings.threads, askedAt: loop.inFlight.askedAt }),
    placeSettings: (place) => settings.rules.settingsOf(place),
    formOffers: (by, conversationId) => settings.forms.offers(by, conversationId),
    overview: createPersonOverview(shared),
    suggestModels: (query, wanted) => suggestModels(models.allowed(gateway.knownModels()), query, wanted),
  };
}
