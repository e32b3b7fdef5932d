import type { PlatformHealth } from "../../core/platform.ts";
import type { ShardPlan } from "./shard-plan.ts";

/** The states of the shards that a process runs. */
export interface ShardStates {
  set(shardId: number, health: PlatformHealth): void;
  /** Ready when all shards are; failed when one is, for good. `connections` has each where there are several. */
  health(): PlatformHealth;
}

/** @see {@link ShardStates} */
export function createShardStates({ count, ids }: ShardPlan): ShardStates {
  const states = new Map<number, PlatformHealth>(ids.map((id) => [id, { state: "connecting" }]));

  function describe(state: PlatformHealth["state"]): string | undefined {
    const affected = [...states].filter(([, health]) => health.state === state);
    const details = [...new Set(affected.flatMap(([, { detail }]) => detail ?? []))];
    if (count === 1) return details[0];
    const which = `shard${affected.length === 1 ? "" : "s"} ${affected.map(([id]) => id).join(", ")} of ${count}`;
    return details.length === 0 ? which : `${which}: ${details.join("; ")}`;
  }

  return {
    set: (shardId, health) => void states.set(shardId, health),
    health() {
      const all = [...states.values()];
      const state =
        (["failed", "connecting"] as const).find((one) => all.some((health) => health.state === one)) ??
        "ready";
      const detail =
        state === "ready" ? all.find((health) => health.detail !== undefined)?.detail : describe(state);
      return {
        state,
        ...(detail === undefined ? {} : { detail }),
        ...(count === 1
          ? {}
          : {
              connections: [...states].map(([id, health]) => ({ name: `shard ${id}`, state: health.state })),
            }),
      };
    },
  };
}
