import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { Json } from "../../../core/events.ts";
import type { Records } from "../../../core/storage.ts";

/** A shard without a sign of its holder for this long is free, in milliseconds on the store's clock. */
export const leaseMs = 6000;
/** How often its holder renews it. */
export const renewEveryMs = 2000;
/** How often those that stand by look. */
export const lookEveryMs = 1000;

/** Who hears a shard, as the store has it while somebody does. */
interface Held {
  /** The number of all shards. Those of one number do not begin while another number is in use. */
  readonly count: number;
  readonly holder: string;
  /** The holder stops, and another instance may connect. */
  readonly isOffered?: true;
  /** The instance that connects, and holds the shard when it hears it. */
  readonly next?: string;
}

/** The right of one instance of several to hear a shard. Failures of the store are thrown. */
export interface ShardLease {
  /** Returns what others do with the shard: nothing, hear it, or offer it. */
  look(): Promise<"free" | "offered" | { readonly holder: string }>;
  /**
   * Takes a shard that is free, or announces this instance as the next one where it is offered: then it
   * connects, and calls {@link takeOver} when it hears. Resolves to `held` where another one was faster.
   */
  take(): Promise<"taken" | "offered" | "held">;
  /** Takes an offered shard. Resolves to false where it is another instance's. */
  takeOver(): Promise<boolean>;
  /** Resolves to false where another instance holds the shard. */
  renew(): Promise<boolean>;
  /** Lets another instance connect. Resolves to false where one holds the shard already. */
  offer(): Promise<boolean>;
  /** Where an offered shard is: still here, with somebody who connects, or taken. */
  whereOffered(): Promise<"here" | "awaited" | "taken">;
  /** Gives a shard back, unless another instance holds it. */
  release(): Promise<void>;
}

/** Creates a name for this instance, by which people find it. */
export function createInstanceName(): string {
  return `${hostname()}/${process.pid}/${randomUUID().slice(0, 8)}`;
}

/** Creates the lease of a shard of `count`, which instances with the same records share. */
export function createShardLease(options: {
  readonly records: Pick<Records, "get" | "update">;
  readonly shardId: number;
  readonly count: number;
  /** The name of this instance. */
  readonly self: string;
}): ShardLease {
  const { records, shardId, count, self } = options;
  const keyOf = (id: number): string => `discord:shard:${id}`;
  const key = keyOf(shardId);

  /** Writes what `change` makes of the lease, and resolves to the lease as it is then. */
  async function change(to: (before: Held | undefined) => Held | undefined): Promise<Held | undefined> {
    let after: Held | undefined;
    const apply = (value: Json | undefined): Json | undefined => {
      const before = read(value);
      const changed = to(before);
      after = changed ?? before;
      return changed as Json | undefined;
    };
    await records.update(key, apply, leaseMs);
    return after;
  }

  return {
    async look() {
      // Whoever runs shards of another number has the first one for as long.
      const [held, first] = (await Promise.all([records.get(key), records.get(keyOf(0))])).map(read);
      if (first !== undefined && first.count !== count) return { holder: first.holder };
      if (held === undefined || held.holder === self) return "free";
      return held.isOffered === true && held.next === undefined ? "offered" : { holder: held.holder };
    },
    async take() {
      const held = await change((before) => {
        if (before === undefined || before.holder === self) return { count, holder: self };
        if (before.count !== count || before.isOffered !== true || before.next !== undefined)
          return undefined;
        return { ...before, next: self };
      });
      if (held?.holder === self) return "taken";
      return held?.next === self ? "offered" : "held";
    },
    async takeOver() {
      const held = await change((before) =>
        before === undefined || before.holder === self || before.next === self
          ? { count, holder: self }
          : undefined,
      );
      return held?.holder === self;
    },
    async renew() {
      const held = await change((before) => {
        if (before === undefined) return { count, holder: self };
        return before.holder === self ? before : undefined;
      });
      return held?.holder === self;
    },
    async offer() {
      const held = await change((before) =>
        before === undefined || before.holder === self
          ? { ...before, count, holder: self, isOffered: true }
          : undefined,
      );
      return held?.holder === self;
    },
    async whereOffered() {
      const held = read(await records.get(key));
      if (held?.holder !== self) return "taken";
      return held.next === undefined ? "here" : "awaited";
    },
    async release() {
      const apply = (value: Json | undefined) => (read(value)?.holder === self ? null : undefined);
      await records.update(key, apply, leaseMs);
    },
  };
}

/** Returns `undefined` for a shard that nobody holds. */
function read(value: Json | undefined): Held | undefined {
  return value === undefined || value === null ? undefined : (value as unknown as Held);
}
