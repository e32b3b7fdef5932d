import { randomUUID } from "node:crypto";
import type { Log } from "../../core/telemetry.ts";
import { sleep } from "../../support/sleep.ts";
import type { RedisConnection } from "./redis-client.ts";

/** Removes deleted values from the server's append-only file, by having the server rewrite it in the background. */
export interface RedisScrubber {
  /**
   * Asks for a rewrite that begins after this call. Resolves when the request is stored in Redis, so that it
   * survives this process; several requests share a rewrite. Never rejects: what failed is logged and tried again.
   */
  request(): Promise<void>;
  /** Takes up what an earlier process, or a failed attempt, left undone. Never rejects. */
  resume(): Promise<void>;
  /** Waits no longer for the server; what is unfinished stays stored. */
  close(): void;
}

/** What a scrubber works with. */
export interface RedisScrubberOptions extends Pick<RedisConnection, "client" | "attempt"> {
  readonly log: Log;
  /** Longest wait for the server's rewrites until the next `resume`, in milliseconds. Default ten minutes. */
  readonly deadlineMs?: number | undefined;
}

/** Holds the id of the latest request until a rewrite that began after it has succeeded. */
const requestKey = "parley:scrub";
const pollMs = { min: 50, max: 1000 } as const;
/** A rewrite reads all data: after one, the next waits as long as it took, within these bounds. */
const restMs = { min: 100, max: 60_000 } as const;

const settleSource = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;

/** @see {@link RedisScrubber} */
export function createRedisScrubber(options: RedisScrubberOptions): RedisScrubber {
  const { client, attempt, log, deadlineMs = 10 * 60_000 } = options;
  const closing = new AbortController();
  let isRunning = false;
  let isRequested = false;
  let isFailing = false;

  const readState = async () => toState(await attempt(() => client.info()));

  /** The state once no rewrite runs or waits. */
  const whenIdle = async (until: number) => {
    for (let waitMs: number = pollMs.min; ; waitMs = Math.min(pollMs.max, waitMs * 2)) {
      const state = await readState();
      if (!state.isRewriting) return state;
      if (performance.now() > until) throw new Error("its rewrites take too long");
      await sleep(waitMs, closing.signal);
    }
  };

  /** One rewrite that begins now or later and succeeds; false when the server has no append-only file. */
  const rewrite = async (until: number) => {
    for (;;) {
      const before = await whenIdle(until);
      if (!before.isOn) return;
      // While a snapshot is written, the answer is that the rewrite is scheduled.
      const isAccepted = await attempt(() => client.bgRewriteAof()).then(
        () => true,
        async (error: unknown) => {
          // Another instance, or the server itself, began one meanwhile.
          if ((await readState()).isRewriting) return false;
          throw error;
        },
      );
      if (!isAccepted) continue;
      const after = await whenIdle(until);
      if (!after.isOk) throw new Error("the server reports that its last rewrite failed");
      if (after.runId === before.runId) return;
      // The server was restarted, and its rewrite ended with it.
    }
  };

  const run = async () => {
    const until = performance.now() + deadlineMs;
    while (isRequested) {
      isRequested = false;
      const request = await attempt(() => client.get(requestKey));
      const beganAt = performance.now();
      await rewrite(until);
      if (request !== null)
        await attempt(() => client.eval(settleSource, { keys: [requestKey], arguments: [request] }));
      const tookMs = performance.now() - beganAt;
      if (isRequested) await sleep(Math.min(restMs.max, Math.max(restMs.min, tookMs)), closing.signal);
    }
  };

  const start = () => {
    isRequested = true;
    if (isRunning || closing.signal.aborted) return;
    isRunning = true;
    run()
      .then(() => {
        isFailing = false;
      })
      .catch((error: unknown) => {
        if (closing.signal.aborted) return;
        // Said once: some servers never allow it.
        log[isFailing ? "debug" : "warn"](
          { error },
          "Redis did not rewrite its append-only file, so deleted text may still be in it: tried again every ten minutes; let the user of STORE_URL run BGREWRITEAOF and INFO, or run BGREWRITEAOF on the server",
        );
        isFailing = true;
      })
      .finally(() => {
        isRunning = false;
      });
  };

  return {
    async request() {
      try {
        await attempt(() => client.set(requestKey, randomUUID()));
      } catch (error) {
        log.debug({ error }, "the request to rewrite the append-only file could not be stored");
      }
      start();
    },
    async resume() {
      try {
        if ((await attempt(() => client.exists(requestKey))) > 0) start();
      } catch (error) {
        log.debug({ error }, "a request to rewrite the append-only file could not be looked for");
      }
    },
    close: () => closing.abort(),
  };
}

function toState(info: string) {
  const fieldOf = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
  return {
    isOn: fieldOf("aof_enabled") !== "0",
    isRewriting: fieldOf("aof_rewrite_in_progress") === "1" || fieldOf("aof_rewrite_scheduled") === "1",
    isOk: fieldOf("aof_last_bgrewrite_status") !== "err",
    runId: fieldOf("run_id"),
  };
}
