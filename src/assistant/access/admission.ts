import type { Gateway } from "../../core/gateway.ts";
import type { AllowedModels } from "./allowed-models.ts";
import type { Budgets, Caller } from "./budgets.ts";
import { createMeteredGateway } from "./metered-gateway.ts";
import { createFairSemaphore, type Release } from "../../support/fair-semaphore.ts";

/** How much runs and lies in memory at once, in this process. */
export interface AdmissionLimits {
  /** Gateway calls at once. */
  readonly calls: number;
  /** Gateway calls at once for one person. */
  readonly callsPerPerson: number;
  /** Bytes of files at once: downloaded, being read, or on their way to the gateway. */
  readonly fileBytes: number;
  /** The same for one person. */
  readonly fileBytesPerPerson: number;
}

/** Admits what costs money or memory, fairly between people. */
export interface Admission {
  /**
   * The gateway for one caller. Each call is checked for its model, waits for its turn, and is reserved and settled.
   * Beside the gateway's errors it throws `model-not-allowed`, `over-budget` and `store-unavailable`.
   */
  gatewayFor(caller: Caller): Gateway;
  /** Resolves when `bytes` may be loaded. @throws the reason of `signal` when it aborts first */
  admitBytes(personId: string, bytes: number, signal: AbortSignal): Promise<Release>;
  /** Gateway calls of this process. */
  load(): { readonly running: number; readonly waiting: number };
}

export interface AdmissionOptions {
  readonly gateway: Gateway;
  readonly limits: AdmissionLimits;
  readonly allowed: AllowedModels;
  readonly budgets: Pick<Budgets, "reserve">;
}

/** @see {@link Admission} */
export function createAdmission({ gateway, limits, allowed, budgets }: AdmissionOptions): Admission {
  const calls = createFairSemaphore({ max: limits.calls, maxPerKey: limits.callsPerPerson });
  const bytes = createFairSemaphore({ max: limits.fileBytes, maxPerKey: limits.fileBytesPerPerson });

  function expectAllowed({ model }: { readonly model: string }): void {
    const listed = gateway.knownModels().map(({ id }) => id);
    allowed.expectAllowed(model, listed);
  }

  async function admitted<T>(personId: string, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    const release = await calls.acquire(personId, 1, signal);
    try {
      return await call();
    } finally {
      release();
    }
  }

  return {
    load: () => ({ running: calls.used(), waiting: calls.waiting() }),
    async admitBytes(personId, count, signal) {
      // Nothing to load does not queue behind what is large.
      return count === 0 ? () => {} : await bytes.acquire(personId, count, signal);
    },
    gatewayFor(caller) {
      const { personId } = caller;
      const metered = createMeteredGateway(gateway, budgets, caller);
      return {
        ...metered,
        async *chat(request, signal) {
          expectAllowed(request);
          const release = await calls.acquire(personId, 1, signal);
          try {
            yield* metered.chat(request, signal);
          } finally {
            release();
          }
        },
        async generateImages(request, signal) {
          expectAllowed(request);
          return await admitted(personId, signal, () => metered.generateImages(request, signal));
        },
        async transcribe(request, signal) {
          expectAllowed(request);
          return await admitted(personId, signal, () => metered.transcribe(request, signal));
        },
      };
    },
  };
}
