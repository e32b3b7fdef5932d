import type { Asker } from "../../core/access.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import {
  type ChatMessage,
  type ChatRequest,
  type ImageRequest,
  type TranscriptionAnswer,
  type TranscriptionRequest,
  type BilledAmounts,
  type Gateway,
  type ModelOperation,
  type Usage,
  costOf,
  type ModelPrice,
} from "../../core/gateway.ts";
import type { Receiver } from "../../core/platform.ts";
import type {
  SpendingLedger,
  Budget,
  BudgetScope,
  BudgetState,
  CallLabels,
  PlaceBudgets,
  Reservation,
  SettledCall,
  SpentBudget,
} from "../../core/spending.ts";
import type { Log } from "../../core/telemetry.ts";
import { longestAudioSeconds } from "../../media/recordings/longest-audio.ts";
import { toUtcDay, endOfUtcDay } from "../../support/clock.ts";
import { backoffMs, retry, backoffs } from "../../support/retry.ts";
import type { LayeredSettings } from "../settings/layered-settings.ts";
import { createRecent } from "../../support/recent.ts";

/**
 * What a model without a known price is taken to cost where there is a budget: more than most models do, since a
 * budget must not be passed for want of a price. MODEL_PRICES replaces it.
 */
const assumedPrice = {
  inputPerMillionUsd: 15,
  outputPerMillionUsd: 75,
  perImageUsd: 0.25,
  perAudioMinuteUsd: 0.02,
} as const satisfies ModelPrice;
/** Amounts that every price makes dearer than nothing. */
const someOfAll: BilledAmounts = { promptTokens: 1e6, completionTokens: 1e6, audioSeconds: 60, images: 1 };
/** When calls that run now may have ended, in milliseconds. */
const runningMs = 15_000;
/** Settling is repeated for about ten minutes. */
const settleAttempts = 20;

/** Who makes a gateway call. */
export interface Caller extends Asker {
  /** `Author.id` */
  readonly personId: string;
}

/** One call that has been admitted. Contract: `settle` or `release` is called once; neither throws. */
export interface Charge {
  /** The answer has come, with its usage. `model`: the one that answered. */
  settle(usage: Usage, model: string): Promise<void>;
  /** The call broke off: what it may have been billed, estimated. `undefined`: nothing. */
  release(amounts: BilledAmounts | undefined): Promise<void>;
}

export interface Budgets {
  /**
   * Reserves the most that a call can cost.
   * @throws ParleyError `over-budget`, `store-unavailable`
   */
  reserve(caller: Caller, operation: ModelOperation, model: string, worst: WorstCase): Promise<Charge>;
  /** The error `over-budget` where a budget of the caller is spent, reserves apart. @throws ParleyError `store-unavailable` */
  spentError(caller: Caller): Promise<ParleyError | undefined>;
  /** Whether calls of a model are known to cost nothing: no budget refuses them. */
  isFree(operation: ModelOperation, model: string): boolean;
  /** The budgets that apply to a caller, with what is spent of them. @throws ParleyError `store-unavailable` */
  inForce(caller: Caller): Promise<readonly BudgetState[]>;
  /** Repeats nothing more in the background: what is not settled by now stays reserved until it expires. */
  close(): void;
}

export interface BudgetsOptions {
  readonly ledger: SpendingLedger;
  readonly gateway: Pick<Gateway, "highestPrice" | "knownModels">;
  /** `BUDGET_PERSON_DAY_USD` */
  readonly personDayUsd: number | undefined;
  /** `BUDGET_DAY_USD` */
  readonly dayUsd: number | undefined;
  readonly places: PlaceBudgets;
  readonly log: Log;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** Budgets of the deployment, of each person and of places, kept in the ledger. */
export function createBudgets(options: BudgetsOptions): Budgets {
  const { ledger, gateway, personDayUsd, dayUsd, places, log, now } = options;
  const closing = new AbortController();
  const warned = createRecent(1000);

  /** For a budget. Unknown prices are assumed, with one warning for each model. */
  function toChargedUsd(operation: ModelOperation, model: string, amounts: BilledAmounts): number {
    const price = gateway.highestPrice(operation, model);
    return costOf(price !== undefined && isPriced(operation, price) ? price : assumedPrice, amounts) ?? 0;
  }

  function warnOfUnknownPrice(operation: ModelOperation, model: string): void {
    if (isPriced(operation, gateway.highestPrice(operation, model)) || warned.has(model)) return;
    warned.set(model, true);
    log.warn(
      { model, operation },
      "the price of this model or of a fallback is not known, so budgets count a high one: set MODEL_PRICES",
    );
  }

  /** The ledger counts by model, so the names must be few: those of requests and of the gateway's list. */
  function labelOf(asked: string, answered: string): string {
    return answered === asked || gateway.knownModels().some(({ id }) => id === answered) ? answered : asked;
  }

  async function budgetsOf(caller: Caller): Promise<readonly Budget[]> {
    const person = { kind: "person", id: caller.personId } as const;
    return [
      ...(personDayUsd === undefined ? [] : [{ scope: person, budgetUsd: personDayUsd }]),
      ...(await places.budgetsFor(caller)),
      ...(dayUsd === undefined ? [] : [{ scope: { kind: "deployment" } as const, budgetUsd: dayUsd }]),
    ];
  }

  async function settle(reservation: Reservation, used: SettledCall | undefined): Promise<void> {
    const attempt = (): Promise<void> => ledger.settle(reservation, used, now());
    try {
      await attempt();
    } catch (error) {
      log.warn({ err: error }, "a gateway call was not counted; repeated in the background");
      // The answer does not wait for it. Repeating is safe: the ledger settles a reserve once.
      void retry(attempt, {
        signal: closing.signal,
        delayMs: (failure, count) =>
          isParleyError(failure, "store-unavailable") && count < settleAttempts
            ? backoffMs(count, backoffs.outage)
            : undefined,
      }).catch((last: unknown) => {
        log.error(
          { err: last, model: used?.labels.model, usd: used?.chargedUsd },
          "a gateway call is not counted",
        );
      });
    }
  }

  async function inForce(caller: Caller): Promise<readonly BudgetState[]> {
    const renewsAt = endOfUtcDay(toUtcDay(now()));
    const found = await budgetsOf(caller);
    return Promise.all(
      found.map(async (budget) => ({
        ...budget,
        spentUsd: await ledger.spentUsd(budget.scope, now()),
        renewsAt,
      })),
    );
  }

  return {
    inForce,
    async spentError(caller) {
      const spent = (await inForce(caller)).find(({ spentUsd, budgetUsd }) => spentUsd >= budgetUsd);
      return spent === undefined ? undefined : overBudget({ budget: spent, spentUsd: spent.spentUsd }, now());
    },
    isFree: (operation, model) => toChargedUsd(operation, model, someOfAll) === 0,
    close() {
      closing.abort(new ParleyError("stopping", "the process is stopping"));
    },
    async reserve(caller, operation, model, worst) {
      const budgets = await budgetsOf(caller);
      if (budgets.length > 0) warnOfUnknownPrice(operation, model);
      const reserveUsd = budgets.length === 0 ? 0 : toChargedUsd(operation, model, worst.most);
      const result = await ledger.reserve(reserveUsd, { budgets, now: now() });
      if (!("id" in result)) throw overBudget(result, now());
      const labels: CallLabels = {
        personId: caller.personId,
        channel: caller.origin?.channel,
        model,
        operation,
      };
      const scopes = scopesOf(caller);
      return {
        settle: (usage, answered) =>
          settle(result, {
            labels: { ...labels, model: labelOf(model, answered) },
            amounts: usage,
            costUsd: usage.costUsd,
            chargedUsd: usage.costUsd ?? toChargedUsd(operation, model, usage),
            isEstimated: usage.isEstimated,
            scopes,
          }),
        async release(amounts) {
          if (amounts === undefined) {
            await settle(result, undefined);
            return;
          }
          const price = gateway.highestPrice(operation, model);
          await settle(result, {
            labels,
            amounts,
            costUsd: isPriced(operation, price) && price !== undefined ? costOf(price, amounts) : undefined,
            chargedUsd: toChargedUsd(operation, model, amounts),
            isEstimated: true,
            scopes,
          });
        },
      };
    },
  };
}

/** Charged whether or not there is a budget, so that one that is set during the day counts all of it. */
function scopesOf({ personId, origin }: Caller): BudgetScope[] {
  const places = [origin?.server, origin?.channelPlace ?? origin?.channel].filter((id) => id !== undefined);
  return [
    { kind: "person", id: personId },
    ...places.map((id) => ({ kind: "place", id }) as const),
    { kind: "deployment" },
  ];
}

/** Whether everything that the operation is billed by has a price. */
function isPriced(operation: ModelOperation, price: ModelPrice | undefined): boolean {
  if (price === undefined) return false;
  const hasTokens = price.inputPerMillionUsd !== undefined && price.outputPerMillionUsd !== undefined;
  if (operation === "image") return price.perImageUsd !== undefined || hasTokens;
  if (operation === "transcription") return price.perAudioMinuteUsd !== undefined || hasTokens;
  return hasTokens;
}

function overBudget(
  { budget, spentUsd }: Pick<SpentBudget, "budget" | "spentUsd">,
  now: number,
): ParleyError {
  const isReserved = spentUsd < budget.budgetUsd;
  return new ParleyError("over-budget", `the budget of the ${budget.scope.kind} is used up or reserved`, {
    retryAfterMs: isReserved ? runningMs : endOfUtcDay(toUtcDay(now)) - now,
    detail: { scope: budget.scope.kind, budgetUsd: budget.budgetUsd, isReserved: isReserved ? 1 : 0 },
  });
}

/** Tokens that a message takes beside its text. */
const tokensPerMessage = 16;
/** Tokens of a picture in a prompt: at most, and as an estimate. */
const tokensPerImage = { most: 4096, estimate: 1000 };
/** Pictures in one chat answer, where a model draws in chat. */
const maxImagesPerAnswer = 10;
/** Tokens of a drawn picture, for models that are billed by tokens. */
const tokensPerDrawnImage = 8192;
/** Of speech in the lowest common quality (Opus at 6 kbit/s). */
const minAudioBytesPerSecond = 750;
/** Of voice notes and compressed recordings: 32 kbit/s. */
const usualAudioBytesPerSecond = 4000;
/** Of slow speech, so that words of a highly compressed recording count. */
const maxCharsPerSecond = 10;
/** Tokens of a second of audio, for models that are billed by tokens. */
const tokensPerAudioSecond = 25;
const defaultMaxTokens = 1024;

/** What a call can cost, known before it is made. */
export interface WorstCase {
  /** The most that it can use. It is reserved. */
  readonly most: BilledAmounts;
  /** What is charged of a call that was sent and of which nothing came back. */
  readonly whenLeft: BilledAmounts;
}

/** A token for each byte of the prompt, all of `maxTokens`, and pictures where the model draws in chat. */
export function chatWorstCase(request: ChatRequest, drawsInChat: boolean): WorstCase {
  const { messages, maxTokens = defaultMaxTokens, stream = true } = request;
  const { textBytes, images } = sizeOf(messages);
  const promptTokens = Math.ceil(textBytes / 4) + images * tokensPerImage.estimate;
  return {
    most: {
      promptTokens: textBytes + messages.length * tokensPerMessage + images * tokensPerImage.most,
      completionTokens: maxTokens + (drawsInChat ? tokensPerDrawnImage : 0),
      ...(drawsInChat ? { images: maxImagesPerAnswer } : {}),
    },
    // An answer that is not streamed is completed and billed, whoever waits for it.
    whenLeft: { promptTokens, completionTokens: stream ? 0 : maxTokens },
  };
}

/** All pictures: they are billed also when nobody waits for them. */
export function imageWorstCase({ prompt, count = 1 }: ImageRequest): WorstCase {
  const most = {
    images: count,
    promptTokens: Buffer.byteLength(prompt),
    completionTokens: count * tokensPerDrawnImage,
  };
  return { most, whenLeft: most };
}

/** By the size of the recording: the length that a sender claims is not believed. */
export function transcriptionWorstCase(request: TranscriptionRequest): WorstCase {
  const { bytes, durationMs, hint = "" } = request;
  const toAmounts = (audioSeconds: number): BilledAmounts => ({
    audioSeconds,
    promptTokens: Math.ceil(audioSeconds * tokensPerAudioSecond) + Buffer.byteLength(hint),
    completionTokens: Math.ceil(audioSeconds * tokensPerAudioSecond),
  });
  const longest = longestAudioSeconds(bytes.byteLength, bytes, minAudioBytesPerSecond);
  const claimed = durationMs === undefined ? longest : Math.min(longest, durationMs / 1000);
  return { most: toAmounts(longest), whenLeft: toAmounts(claimed) };
}

/** A recording that was transcribed and whose length nobody said: by its size as usual speech, and by the words heard. */
export function heardAmounts(
  { bytes }: TranscriptionRequest,
  { text, usage }: Pick<TranscriptionAnswer, "text" | "usage">,
): BilledAmounts {
  const longest = longestAudioSeconds(bytes.byteLength, bytes, minAudioBytesPerSecond);
  const likely = Math.max(bytes.byteLength / usualAudioBytesPerSecond, text.length / maxCharsPerSecond);
  const audioSeconds = Math.min(longest, likely);
  return {
    audioSeconds,
    promptTokens: usage.promptTokens ?? Math.ceil(audioSeconds * tokensPerAudioSecond),
    completionTokens: usage.completionTokens ?? Math.ceil(Buffer.byteLength(text) / 4),
  };
}

/** A streamed answer that ended early: the prompt, and what has arrived. */
export function partialAmounts(worst: WorstCase, arrivedBytes: number, images: number): BilledAmounts {
  const { promptTokens = 0, completionTokens = 0 } = worst.whenLeft;
  return {
    promptTokens,
    completionTokens: Math.max(completionTokens, Math.ceil(arrivedBytes / 4)),
    ...(images === 0 ? {} : { images }),
  };
}

function sizeOf(messages: readonly ChatMessage[]): { textBytes: number; images: number } {
  let textBytes = 0;
  let images = 0;
  for (const { content } of messages) {
    if (typeof content === "string") textBytes += Buffer.byteLength(content);
    else
      for (const part of content) {
        if (part.kind === "text") textBytes += Buffer.byteLength(part.text);
        else images += 1;
      }
  }
  return { textBytes, images };
}

/** What {@link createPersonOverview} needs. */
interface PersonOverviewOptions {
  /** @throws ParleyError `access-denied` by the operator's rules or those of the place */
  readonly expectAllowed: (asker: Asker) => Promise<void>;
  readonly settings: Pick<LayeredSettings, "explainTo">;
  readonly ledger: Pick<SpendingLedger, "usage">;
  readonly budgets: Pick<Budgets, "inForce">;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** @see {@link Receiver.overview} */
export function createPersonOverview(options: PersonOverviewOptions): Receiver["overview"] {
  const { expectAllowed, settings, ledger, budgets, now } = options;
  return async (by) => {
    await expectAllowed(by);
    const personId = by.author.id;
    const today = toUtcDay(now());
    const [explained, usage, inForce] = await Promise.all([
      settings.explainTo(by),
      ledger.usage({ fromDay: `${today.slice(0, 7)}-01`, toDay: today, personId }),
      budgets.inForce({ ...by, personId }),
    ]);
    return { ...explained, today, usage, budgets: inForce };
  };
}
