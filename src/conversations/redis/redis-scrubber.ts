import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/telemetry.ts";
import {
  type BackgroundScrub,
  createBackgroundScrub,
  type ScrubServer,
  withinDeadline,
} from "../server-store.ts";
import type { RedisClient, RedisConnection } from "./redis-connection.ts";
import { deleteIfSource, fieldOf } from "./redis-script.ts";

/** Holds the id of the latest request until a rewrite that began after it has succeeded. */
const requestKey = "parley:scrub";
/** The longest wait for a rewrite until the next `resume`. */
const deadlineMs = 10 * 60_000;
const replicaDeadlineMs = 5000;
const pollMs = { min: 50, max: 1000 } as const;

/** Removes deleted values from the append-only file, which the server rewrites in the background. */
export function createRedisScrubber(connection: RedisConnection, log: Log, clock: Clock): BackgroundScrub {
  const { attempt } = connection;

  const rewriteOn = async (node: RedisClient, signal: AbortSignal, attempt = connection.attempt) => {
    const readState = async () => toState(await attempt(() => node.info()));
    /** Returns the state when no rewrite runs or waits. */
    const whenIdle = async () => {
      for (let waitMs: number = pollMs.min; ; waitMs = Math.min(pollMs.max, waitMs * 2)) {
        const state = await readState();
        if (!state.isRewriting) return state;
        if (clock.monotonic() > until) throw new Error("its rewrites take too long");
        await clock.sleep(waitMs, signal);
      }
    };
    const until = clock.monotonic() + deadlineMs;
    for (;;) {
      const before = await whenIdle();
      // The server has no append-only file.
      if (!before.isOn) return;
      // While a snapshot is written, the server answers that the rewrite is scheduled.
      const isAccepted = await attempt(() => node.bgRewriteAof()).then(
        () => true,
        async (error: unknown) => {
          // Another instance or the server itself began one in the meantime.
          if ((await readState()).isRewriting) return false;
          throw error;
        },
      );
      if (!isAccepted) continue;
      const after = await whenIdle();
      if (!after.isOk) throw new Error("the server reports that its last rewrite failed");
      if (after.runId === before.runId) return;
      // The server was restarted, which ended its rewrite.
    }
  };

  const server: ScrubServer = {
    async store(id) {
      await attempt(() => connection.client.set(requestKey, id));
    },
    stored: async () => (await attempt(() => connection.client.get(requestKey))) ?? undefined,
    async settle(id) {
      await attempt(() => connection.client.eval(deleteIfSource, { keys: [requestKey], arguments: [id] }));
    },
    async rewrite(signal) {
      for (const node of await attempt(connection.nodes)) await rewriteOn(node, signal);
      // The replicas' files hold deleted values too. A hanging replica must not cost the primary's
      // connection.
      await connection.onEachReplica?.((replica) =>
        rewriteOn(replica, signal, async (work) =>
          withinDeadline(work, { deadlineMs: replicaDeadlineMs, clock }),
        ),
      );
    },
    onFailure(error, isFirst) {
      // It is logged once as a warning, because some servers never allow a rewrite.
      log[isFirst ? "warn" : "debug"](
        { error },
        "Redis did not rewrite its append-only file, so deleted text may still be in it: tried again every ten minutes; let the user of STORE_URL run BGREWRITEAOF and INFO, or run BGREWRITEAOF on the server",
      );
    },
  };
  return createBackgroundScrub(server);
}

function toState(info: string) {
  return {
    isOn: fieldOf(info, "aof_enabled") !== "0",
    isRewriting:
      fieldOf(info, "aof_rewrite_in_progress") === "1" || fieldOf(info, "aof_rewrite_scheduled") === "1",
    isOk: fieldOf(info, "aof_last_bgrewrite_status") !== "err",
    runId: fieldOf(info, "run_id"),
  };
}
