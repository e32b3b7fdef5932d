import { isParleyError } from "../../core/errors.ts";
import type { ChatEvent, Gateway, ModelOperation, Usage } from "../../core/gateway.ts";
import type { BilledAmounts } from "../../core/model-price.ts";
import type { Budgets, Caller, Charge } from "./budgets.ts";
import {
  chatWorstCase,
  heardAmounts,
  imageWorstCase,
  partialAmounts,
  transcriptionWorstCase,
  type WorstCase,
} from "./worst-case.ts";

/** A gateway whose calls are reserved before they are made, and settled on every way out. */
export function createMeteredGateway(
  gateway: Gateway,
  budgets: Pick<Budgets, "reserve">,
  caller: Caller,
): Gateway {
  async function reserve(
    operation: ModelOperation,
    model: string,
    worst: WorstCase,
    signal: AbortSignal,
  ): Promise<Charge> {
    signal.throwIfAborted();
    const charge = await budgets.reserve(caller, operation, model, worst);
    if (signal.aborted) {
      await charge.release(undefined);
      throw signal.reason;
    }
    return charge;
  }

  async function metered<T extends { readonly usage: Usage; readonly model: string }>(
    operation: ModelOperation,
    model: string,
    worst: WorstCase,
    signal: AbortSignal,
    call: () => Promise<T>,
    estimate: (answer: T) => BilledAmounts | undefined = () => undefined,
  ): Promise<T> {
    const charge = await reserve(operation, model, worst, signal);
    let answer: T;
    try {
      answer = await call();
    } catch (error) {
      await charge.release(isBilled(error) ? worst.whenLeft : undefined);
      throw error;
    }
    const estimated = estimate(answer);
    if (estimated === undefined) await charge.settle(answer.usage, answer.model);
    else await charge.release(estimated);
    return answer;
  }

  return {
    async *chat(request, signal) {
      const known = gateway.knownModels().find(({ id }) => id === request.model);
      const worst = chatWorstCase(request, known?.capabilities.drawsInChat === true);
      const charge = await reserve("chat", request.model, worst, signal);
      yield* meteredEvents(gateway.chat(request, signal), charge, worst);
    },
    generateImages: (request, signal) =>
      metered("image", request.model, imageWorstCase(request), signal, () =>
        gateway.generateImages(request, signal),
      ),
    transcribe: (request, signal) =>
      metered(
        "transcription",
        request.model,
        transcriptionWorstCase(request),
        signal,
        () => gateway.transcribe(request, signal),
        // Many services answer with the words alone.
        (answer) =>
          answer.usage.costUsd === undefined && answer.usage.audioSeconds === undefined
            ? heardAmounts(request, answer)
            : undefined,
      ),
    listModels: (signal) => gateway.listModels(signal),
    knownModels: () => gateway.knownModels(),
    highestPrice: (operation, model) => gateway.highestPrice(operation, model),
  };
}

/** Passes events on. However it ends (finish, failure, abort, a reader that leaves), it ends when the charge is settled. */
async function* meteredEvents(
  events: AsyncIterable<ChatEvent>,
  charge: Charge,
  worst: WorstCase,
): AsyncIterable<ChatEvent> {
  let bytes = 0;
  let images = 0;
  let settling: Promise<void> | undefined;
  /** Until it fails for free, a call that breaks off may have been billed. */
  let due: BilledAmounts | undefined = partialAmounts(worst, bytes, images);
  try {
    for await (const event of events) {
      if (event.kind === "text" || event.kind === "reasoning") bytes += Buffer.byteLength(event.text);
      else if (event.kind === "image") images += 1;
      else if (event.kind === "finish") {
        settling = charge.settle(event.usage, event.model);
      }
      yield event;
    }
  } catch (error) {
    if (bytes === 0 && images === 0 && !isBilled(error)) due = undefined;
    throw error;
  } finally {
    await (settling ?? charge.release(due === undefined ? due : partialAmounts(worst, bytes, images)));
  }
}

/** Whether a call that failed may have been billed: not where the gateway was not reached, or refused the request. */
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
