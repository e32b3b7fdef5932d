import type { Command } from "../../core/command.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { IncomingEvent } from "../../core/events.ts";
import type { ModelOperation, ChatEvent, Gateway, Usage, BilledAmounts } from "../../core/gateway.ts";
import { createFairSemaphore, type Release } from "../../support/queues.ts";
import type { ModelChoice } from "../turn/model-choice.ts";
import type { AllowedModels } from "./access.ts";
import type { Budgets, Caller, Charge } from "./budgets.ts";
import {
  chatWorstCase,
  heardAmounts,
  imageWorstCase,
  partialAmounts,
  transcriptionWorstCase,
  type WorstCase,
} from "./call-estimates.ts";
import type { SpendingLedger } from "../../core/spending.ts";

/** How much may run and be in memory at once in this process. */
export interface AdmissionLimits {
  /** How many gateway calls may run at once. */
  readonly calls: number;
  /** How many gateway calls of one person may run at once. */
  readonly callsPerPerson: number;
  /** How many bytes of files may be in use at once: downloaded, read, or on their way to the gateway. */
  readonly fileBytes: number;
  /** The same limit for the files of one person. */
  readonly fileBytesPerPerson: number;
}

/** A gateway whose answers say what they are charged: the usage that the ledger counts. */
export interface MeteredGateway extends Gateway {
  /** What the last chat is charged if it is left now. It is `undefined` before a chat has begun. */
  usageIfLeft(): Usage | undefined;
}

/** Admits everything that costs money or memory, fairly between people. */
interface Admission {
  /**
   * The gateway for one caller. It checks each call's model, lets the call wait for its turn, reserves its
   * cost and settles it. It adds the errors `model-not-allowed`, `over-budget` and `store-unavailable`.
   */
  gatewayFor(caller: Caller): MeteredGateway;
  /** Resolves when `bytes` may be loaded. @throws the reason of `signal` if it aborts first */
  admitBytes(personId: string, bytes: number, signal: AbortSignal): Promise<Release>;
  /**
   * Resolves when the person may read much of what is stored, one at a time.
   * @throws the reason of `signal` if it aborts first
   */
  admitReading(personId: string, signal: AbortSignal): Promise<Release>;
  /** The number of gateway calls of this process. */
  load(): { readonly running: number; readonly waiting: number };
}

interface AdmissionOptions {
  readonly gateway: Gateway;
  readonly limits: AdmissionLimits;
  readonly allowed: AllowedModels;
  readonly budgets: Pick<Budgets, "reserve">;
}

/** How many people may read much of what is stored at once. Each may have an export in memory. */
const maxReadings = 8;

/** Creates the {@link Admission} of this process. */
export function createAdmission({ gateway, limits, allowed, budgets }: AdmissionOptions): Admission {
  const calls = createFairSemaphore({ max: limits.calls, maxPerKey: limits.callsPerPerson });
  const bytes = createFairSemaphore({ max: limits.fileBytes, maxPerKey: limits.fileBytesPerPerson });
  const readings = createFairSemaphore({ max: maxReadings, maxPerKey: 1 });

  function gatewayFor(caller: Caller): MeteredGateway {
    let ifLeft: (() => Usage) | undefined;

    async function admit({ model }: { readonly model: string }, signal: AbortSignal): Promise<Release> {
      const listed = gateway.knownModels().map(({ id }) => id);
      allowed.expectAllowed(model, listed);
      return await calls.acquire(caller.personId, 1, signal);
    }

    async function reserve(
      operation: ModelOperation,
      { model }: { readonly model: string },
      worst: WorstCase,
      signal: AbortSignal,
    ): Promise<Charge> {
      signal.throwIfAborted();
      const charge = await budgets.reserve(caller, operation, model, worst);
      if (signal.aborted) {
        await charge.release();
        throw signal.reason;
      }
      return charge;
    }

    /** Makes a call whose answer arrives as a whole, and settles it however it ends. */
    async function answerOf<T extends { readonly usage: Usage; readonly model: string }>(
      operation: ModelOperation,
      request: { readonly model: string },
      worst: WorstCase,
      signal: AbortSignal,
      call: () => Promise<T>,
      estimate: (answer: T) => Usage = ({ usage }) => usage,
    ): Promise<T> {
      const release = await admit(request, signal);
      try {
        const charge = await reserve(operation, request, worst, signal);
        let answer: T;
        try {
          answer = await call();
        } catch (error) {
          await end(charge, isBilled(error) ? worst.whenLeft : undefined);
          throw error;
        }
        const usage = charge.counted(estimate(answer));
        await charge.settle(usage, answer.model);
        return { ...answer, usage };
      } finally {
        release();
      }
    }

    return {
      async *chat(request, signal) {
        const release = await admit(request, signal);
        try {
          const known = gateway.knownModels().find(({ id }) => id === request.model);
          const worst = chatWorstCase(request, known?.capabilities.drawsInChat === true);
          const charge = await reserve("chat", request, worst, signal);
          const arrived: Arrived = { bytes: 0, images: 0 };
          ifLeft = () => charge.counted(estimated(partialAmounts(worst, { ...arrived, isLeft: true })));
          yield* meteredEvents(gateway.chat(request, signal), { charge, worst, arrived, signal });
        } finally {
          release();
        }
      },
      usageIfLeft: () => ifLeft?.(),
      generateImages: async (request, signal) =>
        answerOf("image", request, imageWorstCase(request), signal, () =>
          gateway.generateImages(request, signal),
        ),
      transcribe: async (request, signal) =>
        answerOf(
          "transcription",
          request,
          transcriptionWorstCase(request),
          signal,
          () => gateway.transcribe(request, signal),
          // Many services answer with only the words.
          (answer) =>
            answer.usage.costUsd === undefined && answer.usage.audioSeconds === undefined
              ? estimated(heardAmounts(request, answer))
              : answer.usage,
        ),
      listModels: (signal) => gateway.listModels(signal),
      knownModels: () => gateway.knownModels(),
      highestPrice: (operation, model) => gateway.highestPrice(operation, model),
    };
  }

  return {
    gatewayFor,
    admitReading: (personId, signal) => readings.acquire(personId, 1, signal),
    load: () => ({ running: calls.used(), waiting: calls.waiting() }),
    async admitBytes(personId, count, signal) {
      // A request for nothing does not wait behind large ones.
      return count === 0 ? () => {} : await bytes.acquire(personId, count, signal);
    },
  };
}

/** What has arrived of a chat's answer so far. */
interface Arrived {
  bytes: number;
  images: number;
}

interface Metered {
  readonly charge: Charge;
  readonly worst: WorstCase;
  readonly arrived: Arrived;
  readonly signal: AbortSignal;
}

/** Passes events on. However the stream ends, this generator ends after the charge is settled. */
async function* meteredEvents(
  events: AsyncIterable<ChatEvent>,
  { charge, worst, arrived, signal }: Metered,
): AsyncIterable<ChatEvent> {
  let settling: Promise<void> | undefined;
  /** A call that breaks off may have been billed, unless it failed before it cost anything. */
  let isDue = true;
  let isLeft = true;
  try {
    for await (const event of events) {
      if (event.kind === "finish") {
        const usage = charge.counted(event.usage);
        settling = charge.settle(usage, event.model);
        yield { ...event, usage };
        continue;
      }
      if (event.kind === "text" || event.kind === "reasoning") arrived.bytes += Buffer.byteLength(event.text);
      else if (event.kind === "image") arrived.images += 1;
      yield event;
    }
  } catch (error) {
    isLeft = signal.aborted;
    isDue = arrived.bytes > 0 || arrived.images > 0 || isBilled(error);
    throw error;
  } finally {
    await (settling ?? end(charge, isDue ? partialAmounts(worst, { ...arrived, isLeft }) : undefined));
  }
}

const estimated = (amounts: BilledAmounts): Usage => ({ ...amounts, isEstimated: true });

/** Ends a call without an answer. Without amounts it cost nothing. */
async function end(charge: Charge, amounts: BilledAmounts | undefined): Promise<void> {
  await (amounts === undefined ? charge.release() : charge.settle(charge.counted(estimated(amounts))));
}

/** Whether a failed call may have been billed. It is not if the gateway was unreachable or refused it. */
function isBilled(error: unknown): boolean {
  if (!isParleyError(error)) return true;
  switch (error.code) {
    case "gateway-unreachable":
    case "gateway-unauthorized":
    case "gateway-payment":
    case "gateway-rate-limited":
    case "gateway-bad-request":
    case "gateway-unknown-model":
    case "gateway-context-length":
    case "gateway-unsupported":
    case "gateway-error":
      return false;
    default:
      return true;
  }
}

interface SpentCheckOptions {
  readonly budgets: Pick<Budgets, "spentError" | "isFree">;
  readonly commands: ReadonlyMap<string, Command>;
  /** Chooses models by the settings in force for an event. */
  readonly modelsFor: (event: IncomingEvent) => Promise<Pick<ModelChoice, "choose">>;
}

/** The time for finding the usual model, in milliseconds. The platform waits for its acknowledgement. */
const choiceMs = 1000;

/**
 * Returns a function that resolves to the error `over-budget` if an event asks a model that costs something
 * and a budget of its author is spent. It reads the store only if there are budgets. Reserves and uncertain
 * cases are decided when the turn calls the gateway.
 */
export function createSpentCheck({ budgets, commands, modelsFor }: SpentCheckOptions) {
  function askedOf(event: IncomingEvent): { operation: ModelOperation; model: unknown } | undefined {
    if (event.kind === "message") return { operation: "chat", model: event.model };
    const operation = event.problem === undefined ? commands.get(event.name)?.spends : undefined;
    return operation === undefined ? undefined : { operation, model: event.options["model"] };
  }

  /** @param model replaces the model that the event asks for */
  return async function overBudget(event: IncomingEvent, model?: string): Promise<ParleyError | undefined> {
    const own = askedOf(event);
    if (own === undefined) return undefined;
    const asked = model === undefined ? own : { ...own, model };
    try {
      const { author, platform, origin } = event;
      const error = await budgets.spentError({ personId: author.id, platform, origin });
      if (error === undefined) return undefined;
      const chosen =
        typeof asked.model === "string"
          ? asked.model
          : await (await modelsFor(event)).choose(asked.operation, undefined, AbortSignal.timeout(choiceMs));
      return budgets.isFree(asked.operation, chosen) ? undefined : error;
    } catch (error) {
      if (!isParleyError(error)) throw error;
      // Without a store or a model, the turn itself says what is wrong.
      return undefined;
    }
  };
}

/** The result of counting a request. */
interface CountedTurn {
  /** The error `rate-limited` for one request too many, which is not counted. */
  readonly refusal: ParleyError | undefined;
  /** Takes the count back because the request was not accepted. While the store is away it stays counted. */
  undo(): Promise<void>;
}

/** Limits how often a person may ask. */
export interface TurnRate {
  count(personId: string): Promise<CountedTurn>;
}

interface TurnRateOptions {
  readonly ledger: Pick<SpendingLedger, "countTurn" | "uncountTurn">;
  /** The limit for one minute, where 0 means no limit. */
  readonly max: number;
  /** Returns Unix milliseconds. */
  readonly now: () => number;
}

const notCounted: CountedTurn = { refusal: undefined, undo: () => Promise.resolve() };

/** Creates the {@link TurnRate}. */
export function createTurnRate({ ledger, max, now }: TurnRateOptions): TurnRate {
  async function undo(personId: string, countedAt: number): Promise<void> {
    try {
      await ledger.uncountTurn(personId, countedAt);
    } catch (error) {
      if (!isParleyError(error, "store-unavailable")) throw error;
    }
  }

  return {
    async count(personId) {
      if (max === 0) return notCounted;
      const countedAt = now();
      let retryAfterMs: number | undefined;
      try {
        retryAfterMs = await ledger.countTurn(personId, { max, now: countedAt });
      } catch (error) {
        // Accepting the request then fails too, unless the outage ends while that is retried.
        if (!isParleyError(error, "store-unavailable")) throw error;
        return notCounted;
      }
      if (retryAfterMs === undefined) return { refusal: undefined, undo: () => undo(personId, countedAt) };
      const refusal = new ParleyError("rate-limited", "too many requests of one person in a minute", {
        retryAfterMs,
        detail: { max },
      });
      return { ...notCounted, refusal };
    },
  };
}
