import type { CancelTimer, Clock } from "../core/clock.ts";
import type { GatewayTrouble, TroubleKind } from "../core/gateway.ts";
import { createSharedRun } from "../support/queues.ts";
import { systemClock, inTime } from "../support/clock.ts";

/** What is known about the gateway. `unknown` means that it was not asked yet. */
export type GatewayState = "ready" | "unknown" | TroubleKind;

/**
 * What was learnt about the gateway. `listed`: it listed its models. `answered`: a model answered. `failed`:
 * a call or a list failed, without `trouble` where the reason concerns only this request. `isList` means that
 * it concerns the list of models.
 */
export type GatewayNote =
  | { readonly kind: "listed"; readonly missing: GatewayTrouble | undefined }
  | { readonly kind: "answered" }
  | { readonly kind: "failed"; readonly isList: boolean; readonly trouble: GatewayTrouble | undefined };

interface GatewayWatchOptions {
  /** Asks the gateway once. The result, even silence, arrives by `note`. */
  readonly ask: (signal: AbortSignal) => Promise<void>;
  /** The default is the time of this process. */
  readonly clock?: Pick<Clock, "monotonic" | "after" | "every" | "timeout"> | undefined;
}

/** How long the state counts, in milliseconds. It counts for a shorter time while there is trouble. */
const freshMs = { ready: 60_000, failing: 5000 };
const askTimeoutMs = 5000;
/** Probes give up after a second. */
const maxWaitMs = 500;
const watchEveryMs = 10_000;

/** Knows whether the gateway answers, from the calls of turns, and by asking it where there were none. */
export function createGatewayWatch({ ask, clock = systemClock }: GatewayWatchOptions) {
  let isKnown = false;
  let trouble: GatewayTrouble | undefined;
  let freshUntil = Number.NEGATIVE_INFINITY;
  /** The last call of a model was answered, so the list alone proves no trouble. */
  let isProven = false;
  const listeners = new Set<(trouble: GatewayTrouble | undefined) => void>();

  const learn = (learnt: GatewayTrouble | undefined): void => {
    const isNews = learnt?.kind !== trouble?.kind || learnt?.text !== trouble?.text;
    isKnown = true;
    trouble = learnt;
    const countsMs = learnt === undefined ? freshMs.ready : Math.max(freshMs.failing, learnt.holdsMs);
    freshUntil = clock.monotonic() + countsMs;
    if (isNews) for (const listener of listeners) listener(learnt);
  };
  /** Notes a response, which says nothing against a trouble that only calls show. */
  const learnResponse = (): void => {
    if (trouble !== undefined && trouble.holdsMs > 0 && clock.monotonic() < freshUntil) return;
    learn(undefined);
  };
  const askOnce = createSharedRun(async () => {
    // The response, or its absence, is learnt where every request is measured.
    await ask(clock.timeout(askTimeoutMs)).catch(() => undefined);
  });

  const known = (): GatewayState => (isKnown ? (trouble?.kind ?? "ready") : "unknown");
  const state = async (): Promise<GatewayState> => {
    if (clock.monotonic() >= freshUntil) await inTime(askOnce(), maxWaitMs, { clock });
    return known();
  };

  return {
    /** Returns the state without asking. */
    known,
    /** Asks the gateway where the state is old, and waits for at most half a second. It never rejects. */
    state,
    /** Notes what a call showed. */
    note(note: GatewayNote): void {
      switch (note.kind) {
        case "answered":
          isProven = true;
          learn(undefined);
          break;
        case "listed":
          if (note.missing === undefined || isProven) learnResponse();
          else learn(note.missing);
          break;
        case "failed": {
          const isDoubtful = note.isList && isProven && note.trouble?.kind === "web-page";
          if (note.trouble === undefined || isDoubtful) learnResponse();
          else {
            if (!note.isList) isProven = false;
            learn(note.trouble);
          }
        }
      }
    },
    /** Returns what keeps it from answering, without asking, or `undefined` where nothing is known. */
    trouble: (): GatewayTrouble | undefined => trouble,
    /** Calls `listener` when a trouble begins, changes or ends, until the returned function is called. */
    onChange(listener: (trouble: GatewayTrouble | undefined) => void): () => void {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
    /** Asks again from time to time while there is trouble, so that its end is seen. */
    watch(): CancelTimer {
      return clock.every(watchEveryMs, () => {
        if (trouble !== undefined) void state();
      });
    },
  };
}
