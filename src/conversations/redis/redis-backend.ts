import { ParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Backend, Resolves } from "../backend.ts";
import { describeLosses } from "../data-loss-watch.ts";
import { type Leases, withCheck } from "../leased-queue.ts";
import { connectRedis } from "./connect-redis.ts";
import type { RedisClient, RedisConnection, RedisConnectionOptions } from "./redis-connection.ts";
import { type GroupWrite, isAdding, splitByGroup } from "./redis-groups.ts";
import { clusterNames, keyOf, namespaceOf, serverNames } from "./redis-layout.ts";
import { watchGeneration } from "./redis-generation.ts";
import { createRedisLeases } from "./redis-leases.ts";
import { type ConfirmedWrite, createConfirmedWrite } from "./redis-replication.ts";
import { productOf } from "./redis-product.ts";
import { createRedisReader } from "./redis-reader.ts";
import { createRedisScrubber } from "./redis-scrubber.ts";
import {
  applyScript,
  countScript,
  type RedisScript,
  type ScriptInput,
  toApplyInput,
  toCountInput,
  toPassedLimit,
} from "./redis-script.ts";
import { systemClock } from "../../support/clock.ts";
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

const replaceSource = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
return 1`;

/** {@link Backend} with leases. */
export interface RedisBackend extends Backend {
  readonly leases: Leases;
  /** Without credentials. */
  readonly address: string;
  /** `Redis` or `Valkey`. */
  readonly product: string;
  /** Memory of the whole server, or of all primaries. */
  usedMemoryBytes(): Promise<number>;
}

/**
 * The backend for several instances: Redis from 6, or Valkey; one server, a primary that sentinels watch, or a
 * cluster.
 * @throws ParleyError `config`, `store-unavailable`, `store-newer`
 */
export async function openRedisBackend(url: string, options: RedisConnectionOptions): Promise<RedisBackend> {
  const { log, clock = systemClock } = options;
  const connection = await connectRedis(url, options);
  const { attempt, address, close, isCluster } = connection;
  const names = isCluster ? clusterNames : serverNames;
  const openOrClose = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      await close();
      throw error;
    }
  };
  await openOrClose(async () => {
    await attempt(() => claimSchema(connection.client));
    await attempt(async () => warnOfUnsafeSettings(await connection.nodes(), log));
  });
  const product = await openOrClose(() => attempt(() => readProduct(connection)));
  const scrubber = createRedisScrubber({ connection, log, clock });
  let onDataLost = async () => {};
  const generation = await openOrClose(() =>
    watchGeneration({
      connection,
      log,
      clock,
      restore: async () => {
        await attempt(() => claimSchema(connection.client));
        await onDataLost();
      },
    }),
  );
  const checkGeneration = async () => {
    await generation.check().catch((error: unknown) => {
      log.debug({ error }, "whether Redis has its data could not be checked; checked again soon");
    });
  };
  // Neither is waited for: a start must not depend on what an earlier process left undone.
  void scrubber.resume();
  connection.onReady(() => void checkGeneration().then(() => scrubber.resume()));
  const stopChecks = clock.every(checkIntervalMs, () => void checkGeneration());
  let commits = 0;
  let durableCommits = 0;
  const run = ({ source, sha1 }: RedisScript, input: ScriptInput) =>
    connection.client.evalSha(sha1, input).catch((error: unknown) => {
      if (error instanceof Error && error.message.startsWith("NOSCRIPT"))
        return connection.client.eval(source, input);
      throw error;
    });
  const confirmed = createConfirmedWrite(connection);
  const asAsked = (resolves: Resolves | undefined): ConfirmedWrite =>
    resolves === "soon" ? (_, write) => write() : confirmed;
  const applyOne = async (
    { conditions, changes }: GroupWrite,
    resolves: Resolves | undefined,
    hasChanged = (result: unknown) => Number(result) === -1,
  ) => {
    const input = toApplyInput(names, conditions, changes, steadyClock.latest());
    const [key] = input.keys;
    // A check that is no write of anything.
    if (key === undefined) return -1;
    const found = await attempt(() => asAsked(resolves)(key, () => run(applyScript, input), hasChanged));
    return Math.max(Number(found), -1);
  };

  return {
    address,
    product,
    attempt,
    async close() {
      stopChecks();
      scrubber.close();
      await close();
    },
    leases: withCheck(createRedisLeases(connection), checkGeneration),
    reader: (space) => createRedisReader(connection, names, space),
    async apply(conditions, changes, resolves) {
      commits++;
      if (resolves !== "soon") durableCommits++;
      if (!isCluster) return applyOne({ conditions, changes }, resolves);
      const { before, main, after } = splitByGroup(conditions, changes);
      for (const write of before) await applyOne(write, resolves);
      const found = await applyOne(main, resolves);
      // Members that are there are those of `before`, which is confirmed.
      const areAdded = ({ changes: members }: GroupWrite) => members.every(isAdding);
      if (found === -1)
        for (const write of after) await applyOne(write, resolves, areAdded(write) ? () => true : undefined);
      return found;
    },
    async count(limits, changes) {
      commits++;
      const input = toCountInput(names, limits, changes);
      return toPassedLimit(await attempt(() => run(countScript, input)));
    },
    async replace(at, old, value, resolves) {
      const key = names.entry(at);
      const input = { keys: [key], arguments: [old, value] };
      const replaced = await attempt(() =>
        asAsked(resolves)(
          key,
          () => connection.client.eval(replaceSource, input),
          (result) => Number(result) === 1,
        ),
      );
      return Number(replaced) === 1;
    },
    async readIndex(name, { order, minScore = "-inf", offset, max }) {
      const page = { BY: "SCORE", LIMIT: { offset, count: max } } as const;
      const rows = await attempt(() =>
        order === "highest-first"
          ? connection.client.zRangeWithScores(names.index(name), "+inf", minScore, { ...page, REV: true })
          : connection.client.zRangeWithScores(names.index(name), minScore, "+inf", page),
      );
      return rows.map(({ value, score }) => ({ member: value, score }));
    },
    async *keys(space) {
      const start = `${namespaceOf(space)}::`;
      // A scan may return a key twice while the server resizes its table.
      const seen = new Set<string>();
      for (const node of await attempt(connection.nodes)) {
        let cursor = "0";
        do {
          const from = cursor;
          const page = await attempt(() => node.scan(from, { MATCH: `${start}*`, COUNT: 1000 }));
          for (const name of page.keys.map((each) => each.slice(start.length))) {
            const key = isCluster ? keyOf(name) : name;
            if (!seen.has(key)) yield key;
            seen.add(key);
          }
          cursor = page.cursor;
        } while (cursor !== "0");
      }
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
    async usedMemoryBytes() {
      const infos = await attempt(async () =>
        Promise.all((await connection.nodes()).map((node) => node.info("memory"))),
      );
      return infos.reduce((sum, info) => sum + Number(/^used_memory:(\d+)/m.exec(info)?.[1]), 0);
    },
    writes: () => ({ commits, durableCommits, syncs: 0 }),
    ping: () => generation.check(),
    notes: () => ({
      problems: [],
      warnings: describeLosses(generation.losses, "Redis"),
      dataLosses: generation.losses.count,
    }),
    onDataLost(listener) {
      onDataLost = listener;
    },
  };
}

async function readProduct({ nodes }: RedisConnection): Promise<string> {
  const [node] = await nodes();
  const info = await node?.info("server").catch(() => "");
  return productOf(info ?? "");
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
async function warnOfUnsafeSettings(nodes: readonly RedisClient[], log: Log): Promise<void> {
  // The same settings are expected on all servers of a cluster; the doctor looks at each.
  const [node] = nodes;
  if (node === undefined) return;
  let config: Record<string, string>;
  try {
    config = await node.configGet(["appendonly", "appendfsync", "save", "maxmemory-policy"]);
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
