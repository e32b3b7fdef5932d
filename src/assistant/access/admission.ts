import type { Gateway } from "../../core/gateway.ts";
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
  /** The gateway for one person: each call waits until it is admitted. */
  gatewayFor(personId: string): Gateway;
  /** Resolves when `bytes` may be loaded. @throws the reason of `signal` when it aborts first */
  admitBytes(personId: string, bytes: number, signal: AbortSignal): Promise<Release>;
}

/** @see {@link Admission} */
export function createAdmission(gateway: Gateway, limits: AdmissionLimits): Admission {
  const calls = createFairSemaphore({ max: limits.calls, maxPerKey: limits.callsPerPerson });
  const bytes = createFairSemaphore({ max: limits.fileBytes, maxPerKey: limits.fileBytesPerPerson });

  async function admitted<T>(personId: string, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    const release = await calls.acquire(personId, 1, signal);
    try {
      return await call();
    } finally {
      release();
    }
  }

  return {
    async admitBytes(personId, count, signal) {
      // Nothing to load does not queue behind what is large.
      return count === 0 ? () => {} : await bytes.acquire(personId, count, signal);
    },
    gatewayFor: (personId) => ({
      async *chat(request, signal) {
        const release = await calls.acquire(personId, 1, signal);
        try {
          yield* gateway.chat(request, signal);
        } finally {
          release();
        }
      },
      generateImages: (request, signal) =>
        admitted(personId, signal, () => gateway.generateImages(request, signal)),
      transcribe: (request, signal) => admitted(personId, signal, () => gateway.transcribe(request, signal)),
      listModels: (signal) => gateway.listModels(signal),
      knownModels: () => gateway.knownModels(),
      highestPrice: (operation, model) => gateway.highestPrice(operation, model),
    }),
  };
}
