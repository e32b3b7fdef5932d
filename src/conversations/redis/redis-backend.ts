import { randomUUID } from "node:crypto";
import { right, warning, wrong, type Finding } from "../../core/checks.ts";
import type { Log } from "../../core/telemetry.ts";
import { systemClock, steadyClock } from "../../support/clock.ts";
import {
  absentStore,
  type Backend,
  type BackendChange,
  type BackendOptions,
  type OpenedBackend,
  type Resolves,
  type WriteCondition,
  expectKnownVersion,
  raisesVersion,
  reportVersion,
  storeVersion,
} from "../backend.ts";
import {
  watchServer,
  type BackgroundScrub,
  createBackgroundScrub,
  type ScrubServer,
  withinDeadline,
} from "../server-store.ts";
import { type Leases, withCheck } from "../leased-queue.ts";
import { connectRedis, type RedisConnection, type RedisClient } from "./redis-connection.ts";
import {
  applyScript,
  clusterNames,
  countScript,
  deleteIfSource,
  fieldOf,
  type KeyNames,
  keyOf,
  namespaceOf,
  productOf,
  type RedisScript,
  serverNames,
  tagOfEntry,
  tagOfIndex,
  toApplyInput,
  toCountInput,
  toPassedLimit,
} from "./redis-script.ts";
import type { Clock } from "../../core/clock.ts";

/** The key that holds the version. */
const schemaKey = "parley:schema";

/**
 * Opens the backend for several instances: Redis from version 6, or Valkey, as one server or a cluster.
 * @throws ParleyError `config`, `store-unavailable`, `store-newer`
 */
export async function openRedisBackend(url: string, options: BackendOptions): Promise<OpenedBackend> {
  const connection = await connectRedis(url, options);
  try {
    return await openOn(connection, options);
  } catch (error) {
    await connection.close();
    throw error;
  }
}

async function openOn(connection: RedisConnection, options: BackendOptions): Promise<OpenedBackend> {
  const { log, clock = systemClock, report = () => {}, isLook = false } = options;
  const { attempt, address, close, isCluster } = connection;
  const names = isCluster ? clusterNames : serverNames;
  const servers = await attempt(async () => Promise.all((await connection.nodes()).map(readServer)));
  reportServers(servers, report);
  const name = `${productOf(servers[0]?.info ?? "")} at ${address}`;
  const isBot = raisesVersion(options);
  const claim = () => attempt(() => claimSchema(connection.client, { name, isLook, isBot }));
  reportVersion(name, await claim(), options);
  const scrubber = createRedisScrubber(connection, log, clock);
  const watch = await watchServer({
    product: "Redis",
    ...toMark(connection, log),
    prepare: async () => void (await claim()),
    scrubber,
    onReady: connection.onReady,
    log,
    clock,
  });
  let commits = 0;
  let durableCommits = 0;
  const run = ({ source, sha1 }: RedisScript, input: ReturnType<typeof toApplyInput>) =>
    connection.client.evalSha(sha1, input).catch((error: unknown) => {
      if (error instanceof Error && error.message.startsWith("NOSCRIPT"))
        return connection.client.eval(source, input);
      throw error;
    });
  const confirmed = createConfirmedWrite(connection);
  const applyOne = async (
    { conditions, changes }: GroupWrite,
    resolves: Resolves | undefined,
    hasChanged = (result: unknown) => Number(result) === -1,
  ) => {
    const input = toApplyInput(names, conditions, changes, steadyClock.latest());
    const [key] = input.keys;
    // A write without keys has nothing to check or change.
    if (key === undefined) return -1;
    const write = () => run(applyScript, input);
    const found = await attempt(() => (resolves === "soon" ? write() : confirmed(key, write, hasChanged)));
    return Math.max(Number(found), -1);
  };

  const backend: Backend = {
    async close() {
      watch.close();
      await close();
    },
    ...createRedisReader(connection, names),
    async apply(conditions, changes, resolves) {
      commits++;
      if (resolves !== "soon") durableCommits++;
      if (!isCluster) return applyOne({ conditions, changes }, resolves);
      const { before, main, after } = splitByGroup(conditions, changes);
      for (const write of before) await applyOne(write, resolves);
      const found = await applyOne(main, resolves);
      // Members that already exist were added by `before`, which is confirmed.
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
    writes: () => ({ commits, durableCommits, syncs: 0 }),
    ping: watch.check,
    notes: watch.notes,
    onDataLost: watch.onDataLost,
  };
  return {
    backend,
    name,
    blobs: "entries",
    leases: withCheck(createRedisLeases(connection), watch.look),
    restored: undefined,
    async sizeBytes() {
      const infos = await attempt(async () =>
        Promise.all((await connection.nodes()).map((node) => node.info("memory"))),
      );
      return infos.reduce((sum, info) => sum + Number(fieldOf(info, "used_memory")), 0);
    },
    backup: { unsupported: "Redis has backups of its own: use BGSAVE, or copy its files" },
  };
}

/** Writes the version into an empty store, and checks and raises it in another one. Returns what it was. */
async function claimSchema(
  client: RedisClient,
  { name, isLook, isBot }: { readonly name: string; readonly isLook: boolean; readonly isBot: boolean },
): Promise<number> {
  if ((await client.get(schemaKey)) === null)
    // For a look this writes nothing, but a server that refuses writes refuses it.
    await client.set(schemaKey, String(storeVersion), { condition: isLook ? "XX" : "NX" });
  const found = await client.get(schemaKey);
  if (found === null) throw absentStore(`the store in ${name}`);
  const version = Number(found);
  expectKnownVersion(name, version);
  if (isBot && version < storeVersion) await client.set(schemaKey, String(storeVersion));
  return version;
}

/** What a server says about itself, as far as its user may ask. Managed servers do not show settings. */
interface ServerState {
  readonly info: string;
  readonly config: Readonly<Record<string, string>> | undefined;
}

async function readServer(node: RedisClient): Promise<ServerState> {
  const [info, config] = await Promise.all([
    node.info().catch(() => ""),
    node.configGet(["appendonly", "appendfsync", "save", "maxmemory-policy"]).catch(() => undefined),
  ]);
  return { info, config };
}

const oldestMajor = 6;
/** The share of `maxmemory` from which a warning follows. */
const fullShare = 0.9;
const badness = { right: 0, warning: 1, wrong: 2 } as const;

/** Reports on each subject what is found at the worst server. */
function reportServers(servers: readonly ServerState[], report: (finding: Finding) => void): void {
  const findings = servers.flatMap(({ info, config }) => [
    ...toServerFindings(info),
    ...toDurabilityFindings(config),
  ]);
  for (const [first, ...others] of Map.groupBy(findings, ({ subject }) => subject).values())
    if (first !== undefined)
      report(
        others.reduce((worst, each) => (badness[each.level] > badness[worst.level] ? each : worst), first),
      );
}

function toServerFindings(info: string): Finding[] {
  const version = fieldOf(info, "redis_version");
  const [used, max] = [Number(fieldOf(info, "used_memory") ?? 0), Number(fieldOf(info, "maxmemory") ?? 0)];
  const isOld = version !== undefined && Number(version.split(".")[0]) < oldestMajor;
  const mebibytes = (bytes: number) => Math.ceil(bytes / 1024 / 1024);
  const memory = `${mebibytes(used)} MiB used${max === 0 ? ", no limit set" : ` of ${mebibytes(max)}`}`;
  return [
    ...(isOld
      ? [wrong("Server", `Redis ${version} is too old`, `use Redis ${oldestMajor} or newer, or Valkey`)]
      : []),
    max > 0 && used > max * fullShare
      ? warning("Free space", memory, "raise maxmemory, or set RETENTION_DAYS")
      : right("Free space", memory),
  ];
}

function toDurabilityFindings(config: ServerState["config"]): Finding[] {
  if (config?.["appendonly"] === undefined)
    return [
      warning(
        "Durability",
        "Redis does not show its settings, so it may lose what was acknowledged",
        "ask its operator for appendonly yes, appendfsync always, maxmemory-policy noeviction",
      ),
    ];
  const policy = config["maxmemory-policy"] ?? "noeviction";
  return [
    toSyncFinding(config),
    ...(policy === "noeviction"
      ? []
      : [
          wrong(
            "Eviction",
            `Redis may delete conversations when its memory is full (${policy})`,
            "CONFIG SET maxmemory-policy noeviction, also in redis.conf",
          ),
        ]),
  ];
}

function toSyncFinding({ appendonly, appendfsync, save }: Readonly<Record<string, string>>): Finding {
  const remedy = "CONFIG SET appendfsync always, also in redis.conf; it is slower";
  if (appendonly === "no") {
    const lost = save === "" ? "everything" : "everything since its last snapshot";
    return wrong(
      "Durability",
      `Redis may lose what was acknowledged: a restart loses ${lost} (appendonly no)`,
      "CONFIG SET appendonly yes and appendfsync always, also in redis.conf",
    );
  }
  if (appendfsync === "always")
    return right("Durability", "every message is on disk before it is acknowledged");
  const lost = appendfsync === "everysec" ? "the last second" : "the last half minute";
  const text = `Redis may lose what was acknowledged: a crash of its machine loses ${lost} (appendfsync ${appendfsync})`;
  return appendfsync === "everysec" ? warning("Durability", text, remedy) : wrong("Durability", text, remedy);
}

/** Reads entries. In a cluster, the entries of each group are read from its server. */
function createRedisReader(connection: RedisConnection, names: KeyNames): Pick<Backend, "read" | "has"> {
  const { attempt, isCluster } = connection;
  return {
    async read(space, keys) {
      const found = new Map<string, string | null | undefined>();
      const groups = [...Map.groupBy(keys, (key) => (isCluster ? tagOfEntry({ space, key }) : "")).values()];
      const read = async (group: readonly string[]) => {
        const values = await connection.client.mGet(group.map((key) => names.entry({ space, key })));
        for (const [index, key] of group.entries()) found.set(key, values[index]);
      };
      await attempt(() => Promise.all(groups.map(read)));
      return keys.map((key) => found.get(key) ?? undefined);
    },
    // The client sends all commands at once.
    has: (space, keys) =>
      attempt(() =>
        Promise.all(
          keys.map(async (key) => (await connection.client.exists(names.entry({ space, key }))) === 1),
        ),
      ),
  };
}

const renewSource = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0`;

/** Keeps each lease in a key that names the holder and expires by itself. */
function createRedisLeases(connection: RedisConnection): Leases {
  const { attempt } = connection;
  const keyOf = (name: string) => `parley:lease::${name}`;
  return {
    async take(name, holder, ttlMs) {
      const options = { condition: "NX", expiration: { type: "PX", value: ttlMs } } as const;
      return (await attempt(() => connection.client.set(keyOf(name), holder, options))) === "OK";
    },
    async renew(name, holder, ttlMs) {
      const input = { keys: [keyOf(name)], arguments: [holder, String(ttlMs)] };
      return Number(await attempt(() => connection.client.eval(renewSource, input))) === 1;
    },
    async release(name, holder) {
      await attempt(() =>
        connection.client.eval(deleteIfSource, { keys: [keyOf(name)], arguments: [holder] }),
      );
    },
  };
}

/** How long replicas are waited for. Later writes queue behind this wait. */
const timeoutMs = 1000;

/**
 * Runs a write and waits until the number of replicas in the store's URL has it, so that a failover does not
 * lose it. Writes that end in the same moment wait together. It rejects if too few replicas respond in time,
 * or if the connection was replaced, which would confirm nothing. The outcome is then unknown. `key` is one
 * of those written. `hasChanged` says whether the write changed anything. If it did not, what it found is
 * confirmed, because another connection may have just written it.
 */
type ConfirmedWrite = <T>(
  key: string,
  write: () => Promise<T>,
  hasChanged: (result: T) => boolean,
) => Promise<T>;

/** Creates {@link ConfirmedWrite}. */
function createConfirmedWrite(connection: RedisConnection): ConfirmedWrite {
  const { replicas } = connection;
  if (replicas === 0) return (_, write) => write();
  const { isCluster } = connection;
  /** The key is the server, which a cluster's hash tag stands for. */
  const next = new Map<string, Promise<void>>();
  // WAIT confirms everything up to the last change of its connection, in Redis 7.0 up to its last command.
  const confirm = async (server: string, key: string) => {
    // Later writes must not rely on a command that was already sent.
    await Promise.resolve();
    next.delete(server);
    const count = await connection.wait(key, replicas, timeoutMs);
    if (count < replicas) throw new Error(`NOREPLICAS ${count} of ${replicas} replicas have a write`);
  };
  return async (key, write, hasChanged) => {
    const { epoch } = connection;
    const result = await write();
    const server = isCluster ? (/^[^{]*(\{[^}]*\})/.exec(key)?.[1] ?? key) : "";
    if (!hasChanged(result))
      await connection.client.set(`parley:wait${server}`, "", {
        expiration: { type: "PX", value: timeoutMs },
      });
    const waiting = next.get(server) ?? confirm(server, key);
    next.set(server, waiting);
    await waiting;
    if (connection.epoch !== epoch) throw new Error("the connection was replaced before replicas confirmed");
    return result;
  };
}

/** The key of a random id. A server without the id has lost what was written after it. */
const generationKey = "parley:generation";
/** How many ids a cluster has, in different slots, so that each of its servers has some. */
const marksOfCluster = 64;

/**
 * The server's mark for the watch, which is written if there is none. Reading it writes nothing while it
 * exists, but fails if the server refuses writes.
 */
function toMark({ client, attempt, address, isCluster }: RedisConnection, log: Log) {
  const keys = isCluster
    ? Array.from({ length: marksOfCluster }, (_, n) => `${generationKey}:${n}`)
    : [generationKey];
  return {
    // A SET that finds the key writes nothing, but a server that refuses writes refuses the command.
    readMark: () =>
      attempt(async () => {
        const marks = await Promise.all(
          keys.flatMap((key) => [client.set(key, randomUUID(), { condition: "NX" }), client.get(key)]),
        );
        return marks.filter((_, position) => position % 2 === 1).join(" ");
      }),
    report() {
      log.error(
        { store: address },
        "Redis lost its data: conversations and settings in it are gone, and messages that this process had accepted are stored anew. Find out who emptied it or whether it restarted without persistence; set appendonly yes and maxmemory-policy noeviction; to restore a backup of Redis, stop Parley first",
      );
      return true;
    },
  };
}

/** A write of one group, which is one script on one server of a cluster. */
interface GroupWrite {
  readonly conditions: readonly WriteCondition[];
  readonly changes: readonly BackendChange[];
}

/** An atomic write of several groups, as writes that follow each other. */
interface SplitWrite {
  /** Additions to indexes. An index may list too much, but never too little. */
  readonly before: readonly GroupWrite[];
  /** The write that decides, with the conditions or else with the first entries. */
  readonly main: GroupWrite;
  /** Applied only after `main`. It repeats `before`, because a reader may have removed unused members. */
  readonly after: readonly GroupWrite[];
}

/**
 * Splits a write by the groups of its keys. A crash between two of them leaves members of indexes that list
 * nothing. Readers skip them, and the next write or sweep removes them.
 * @throws RangeError if the conditions belong to several groups
 */
export function splitByGroup(
  conditions: readonly WriteCondition[],
  changes: readonly BackendChange[],
): SplitWrite {
  const groups = Map.groupBy(changes, tagOf);
  const tags = new Set(conditions.map(tagOfEntry));
  if (tags.size > 1) throw new RangeError("the conditions of a write are of several groups");
  const [mainTag = ""] = [
    ...tags,
    ...changes.filter((change) => "at" in change).map(tagOf),
    ...groups.keys(),
  ];
  const others = [...groups].filter(([tag]) => tag !== mainTag).map(([, each]) => each);
  return {
    before: toWrites(others.map((each) => each.filter(isAdding))),
    main: { conditions, changes: groups.get(mainTag) ?? [] },
    after: toWrites(others),
  };
}

function tagOf(change: BackendChange): string {
  return "at" in change ? tagOfEntry(change.at) : tagOfIndex(change.index);
}

/** Whether the change can only add a member to an index. */
function isAdding({ kind }: BackendChange): boolean {
  return kind === "add-member" || kind === "append-member";
}

function toWrites(groups: readonly (readonly BackendChange[])[]): GroupWrite[] {
  return groups.filter((changes) => changes.length > 0).map((changes) => ({ conditions: [], changes }));
}

/** Holds the id of the latest request until a rewrite that began after it has succeeded. */
const requestKey = "parley:scrub";
/** The longest wait for a rewrite until the next `resume`. */
const deadlineMs = 10 * 60_000;
const replicaDeadlineMs = 5000;
const pollMs = { min: 50, max: 1000 } as const;

/** Removes deleted values from the append-only file, which the server rewrites in the background. */
function createRedisScrubber(connection: RedisConnection, log: Log, clock: Clock): BackgroundScrub {
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
