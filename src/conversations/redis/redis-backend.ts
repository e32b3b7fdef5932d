import { ParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import { type Backend, type EntryReader, spaces, type Space } from "../backend.ts";
import type { Leases } from "../leased-queue.ts";
import { connectRedis, type RedisClient, type RedisConnectionOptions } from "./redis-client.ts";
import { watchGeneration } from "./redis-generation.ts";
import { createRedisLeases } from "./redis-leases.ts";
import { createRedisScrubber } from "./redis-scrubber.ts";
import {
  applyScript,
  countScript,
  type KeyNames,
  type RedisScript,
  type ScriptInput,
  toApplyInput,
  toCountInput,
  toPassedLimit,
} from "./redis-script.ts";
import { steadyClock } from "../../support/steady-clock.ts";

/**
 * Raised together with a migration when the layout changes. 2: indexes by conversation, author and place, which
 * earlier versions do not maintain; `fillIndexes` fills them. 3: encrypted values are bound to their address.
 */
export const schemaVersion = 3;

/** Holds the version. */
export const schemaKey = "parley:schema";

/** How often an idle process looks whether the server still has its data. */
const checkIntervalMs = 15_000;

const namespaceOf = (space: Space) => `parley:${space}`;

/** @keyv/redis joins namespace and key with `::`. */
export const names: KeyNames = {
  entry: ({ space, key }) => `${namespaceOf(space)}::${key}`,
  // Indexes were called rankings in the first version; stores in use have the keys.
  index: (name) => `parley:ranking::${name}`,
};

const replaceSource = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
return 1`;

/** {@link Backend} with leases. */
export interface RedisBackend extends Backend {
  readonly leases: Leases;
  /** `host:port`, without credentials. */
  readonly address: string;
}

/**
 * The backend for several instances: Redis from 6, or Valkey, one server (a cluster would spread the keys of one
 * atomic write over several).
 * @throws ParleyError `config`, `store-unavailable`, `store-newer`
 */
export async function openRedisBackend(url: string, options: RedisConnectionOptions): Promise<RedisBackend> {
  const { client, attempt, address, close } = await connectRedis(url, options);
  const openOrClose = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      await close();
      throw error;
    }
  };
  await openOrClose(async () => {
    await attempt(() => claimSchema(client));
    await attempt(() => warnOfUnsafeSettings(client, options.log));
  });
  const readers = await createReaders(client);
  const scrubber = createRedisScrubber({ client, attempt, log: options.log });
  let onDataLost = async () => {};
  const generation = await openOrClose(() =>
    watchGeneration({
      client,
      attempt,
      address,
      log: options.log,
      restore: async () => {
        await attempt(() => claimSchema(client));
        await onDataLost();
      },
    }),
  );
  const checkGeneration = async () => {
    await generation.check().catch((error: unknown) => {
      options.log.debug({ error }, "whether Redis has its data could not be checked; checked again soon");
    });
  };
  // Neither is waited for: a start must not depend on what an earlier process left undone.
  void scrubber.resume();
  client.on("ready", () => void checkGeneration().then(() => scrubber.resume()));
  const timer = setInterval(() => void checkGeneration(), checkIntervalMs);
  timer.unref();
  let commits = 0;
  let durableCommits = 0;
  const run = ({ source, sha1 }: RedisScript, input: ScriptInput) =>
    client.evalSha(sha1, input).catch((error: unknown) => {
      if (error instanceof Error && error.message.startsWith("NOSCRIPT")) return client.eval(source, input);
      throw error;
    });

  return {
    address,
    attempt,
    async close() {
      clearInterval(timer);
      scrubber.close();
      await close();
    },
    leases: withCheck(createRedisLeases({ client, attempt }), checkGeneration),
    reader(space) {
      return readers.get(space) as EntryReader;
    },
    async apply(ifAbsent, changes, resolves) {
      commits++;
      if (resolves !== "soon") durableCommits++;
      const input = toApplyInput(names, ifAbsent, changes, steadyClock.latest());
      return Number(await attempt(() => run(applyScript, input)));
    },
    async count(limits, changes) {
      commits++;
      const input = toCountInput(names, limits, changes);
      return toPassedLimit(await attempt(() => run(countScript, input)));
    },
    async replace(at, old, value) {
      const input = { keys: [names.entry(at)], arguments: [old, value] };
      return Number(await attempt(() => client.eval(replaceSource, input))) === 1;
    },
    async readIndex(name, { order, offset, max }) {
      const last = offset + max - 1;
      const rows = await attempt(() =>
        order === "highest-first"
          ? client.zRangeWithScores(names.index(name), offset, last, { REV: true })
          : client.zRangeWithScores(names.index(name), offset, last),
      );
      return rows.map(({ value, score }) => ({ member: value, score }));
    },
    async *keys(space) {
      const start = names.entry({ space, key: "" });
      // A scan may return a key twice while the server resizes its table.
      const seen = new Set<string>();
      let cursor = "0";
      do {
        const from = cursor;
        const page = await attempt(() => client.scan(from, { MATCH: `${start}*`, COUNT: 1000 }));
        for (const key of page.keys.map((each) => each.slice(start.length))) {
          if (!seen.has(key)) yield key;
          seen.add(key);
        }
        cursor = page.cursor;
      } while (cursor !== "0");
    },
    async sweep() {
      // Redis removes expired keys by itself.
      await scrubber.resume();
      return 0;
    },
    async scrub() {
      // The append-only file holds deleted values until it is rewritten.
      await scrubber.request();
    },
    writes: () => ({ commits, durableCommits, syncs: 0 }),
    ping: () => generation.check(),
    notes() {
      const { count, lastAt } = generation.losses;
      return {
        problems: [],
        warnings:
          lastAt === undefined
            ? []
            : [`Redis lost its data, noticed at ${new Date(lastAt).toISOString()}: see the log`],
        dataLosses: count,
      };
    },
    onDataLost(listener) {
      onDataLost = listener;
    },
  };
}

/** A lease that is gone may have gone with everything else: what is lost is restored before the turn is given up. */
function withCheck(leases: Leases, check: () => Promise<void>): Leases {
  return {
    ...leases,
    async renew(name, holder, ttlMs) {
      const isRenewed = await leases.renew(name, holder, ttlMs);
      if (!isRenewed) await check();
      return isRenewed;
    },
  };
}

async function createReaders(client: RedisClient): Promise<ReadonlyMap<Space, EntryReader>> {
  const { default: KeyvRedis } = await import("@keyv/redis");
  return new Map(
    spaces.map((space) => {
      const adapter = new KeyvRedis<string>(client, { namespace: namespaceOf(space), throwOnErrors: true });
      // Connection errors are logged by the client; without a listener they would be thrown.
      adapter.removeAllListeners("error");
      adapter.on("error", () => {});
      return [space, adapter];
    }),
  );
}

async function claimSchema(client: RedisClient): Promise<void> {
  await client.set(schemaKey, String(schemaVersion), { condition: "NX" });
  const version = Number(await client.get(schemaKey));
  if (version < schemaVersion) await client.set(schemaKey, String(schemaVersion));
  if (version > schemaVersion) {
    throw new ParleyError(
      "store-newer",
      `this Redis was written by a newer Parley (version ${version}, this one knows ${schemaVersion}): update Parley`,
      { detail: { version, known: schemaVersion } },
    );
  }
}

/** The settings of a cache lose acknowledged messages. */
async function warnOfUnsafeSettings(client: RedisClient, log: Log): Promise<void> {
  let config: Record<string, string>;
  try {
    config = await client.configGet(["appendonly", "appendfsync", "save", "maxmemory-policy"]);
  } catch (error) {
    log.debug({ error }, "Redis settings are not readable");
    return;
  }
  if (config["appendonly"] === "no") {
    const lost = config["save"] === "" ? "everything" : "everything since its last snapshot";
    log.warn({}, `Redis has no append-only file: set appendonly yes, or a restart of Redis loses ${lost}`);
  } else if (config["appendfsync"] === "no") {
    log.warn(
      {},
      "Redis leaves it to its system when the append-only file is written (appendfsync no): a crash of its machine can lose the last half minute of messages; set appendfsync always, or everysec",
    );
  } else if (config["appendfsync"] === "everysec") {
    log.info(
      {},
      "Redis writes its append-only file once a second (appendfsync everysec): a crash of its machine can lose the last second of messages; appendfsync always does not, and is slower",
    );
  }
  const policy = config["maxmemory-policy"] ?? "noeviction";
  if (policy !== "noeviction")
    log.warn({ policy }, "Redis may evict conversations when its memory is full: set noeviction");
}
