import { isParleyError } from "../core/errors.ts";
import { createSharedRun } from "../support/shared-run.ts";

/** What is known of the gateway. `unknown`: it was not asked yet. */
export type GatewayState = "ready" | "unreachable" | "key-refused" | "unknown";

/** Knows whether the gateway responds: from the calls of turns, and by asking it where there were none. */
export interface GatewayWatch {
  /** A request showed this. */
  note(outcome: "responded" | "refused-key" | "no-connection"): void;
  /** Asks the gateway where what is known is old, and waits for at most half a second. Never rejects. */
  state(): Promise<GatewayState>;
  /** Without asking. */
  known(): GatewayState;
}

export interface GatewayWatchOptions {
  /** Asks the gateway once. What it shows arrives by {@link GatewayWatch.note}. */
  readonly ask: (signal: AbortSignal) => Promise<void>;
  /** Milliseconds. Default: `performance.now`. */
  readonly now?: () => number;
}

/** How long what is known counts, in milliseconds: shorter while it is not ready. */
const freshMs = { ready: 60_000, failing: 5000 };
const askTimeoutMs = 5000;
/** Probes give up after a second. */
const maxWaitMs = 500;
const stateOf = { responded: "ready", "refused-key": "key-refused", "no-connection": "unreachable" } as const;

/** @see {@link GatewayWatch} */
export function createGatewayWatch({
  ask,
  now = () => performance.now(),
}: GatewayWatchOptions): GatewayWatch {
  let state: GatewayState = "unknown";
  let knownAt = Number.NEGATIVE_INFINITY;

  const learn = (learnt: GatewayState): void => {
    state = learnt;
    knownAt = now();
  };
  const isFresh = (): boolean =>
    now() - knownAt < (state === "ready" ? freshMs.ready : freshMs.failing) && state !== "unknown";
  const askOnce = createSharedRun(async () => {
    try {
      await ask(AbortSignal.timeout(askTimeoutMs));
    } catch (error) {
      // A refusal was noted as one; silence is noted by nobody.
      if (!isParleyError(error) || error.code === "gateway-timeout") learn("unreachable");
    }
  });

  return {
    note(outcome) {
      learn(stateOf[outcome]);
    },
    known: () => state,
    async state() {
      if (isFresh()) return state;
      let timer: NodeJS.Timeout | undefined;
      const patience = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, maxWaitMs);
      });
      await Promise.race([askOnce(), patience]);
      clearTimeout(timer);
      return state;
    },
  };
}
