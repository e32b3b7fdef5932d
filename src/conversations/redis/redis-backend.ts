import { randomUUID } from "node:crypto";
import { right, warning, wrong, type Finding } from "../../core/checks.ts";
import type { Log } from "../../core/telemetry.ts";
import { systemClock } from "../../support/clock.ts";
import {
  absentStore,
  type Backend,
  type BackendOptions,
  type OpenedBackend,
  type ScannedKey,
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
} from "../server-store.ts";
import { connectRedis, type RedisConnection, type RedisClient } from "./redis-connection.ts";
import {
  applyScript,
  countScript,
  deleteIfSource,
  fieldOf,
  nameOfEntry,
  nameOfIndex,
  pageScript,
  productOf,
  type RedisScript,
  toApplyInput,
  toCountInput,
  toPage,
  toPageInput,
  toPassedLimit,
} from "./redis-script.ts";
import type { Clock } from "../../core/clock.ts";
import type { Space } from "../keys.ts";

/** The key that holds the version. */
const schemaKey = "parley:schema";
/** The key of a random id. A server without the id has lost what was written after it. */
const markKey = "parley:generation";

/**
 * Opens the backend for several instances: a server of Redis from version 6, or of Valkey.
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
  const { attempt, address, close, client } = connection;
  const { info, config } = await attempt(() => readServer(client));
  for (const finding of [...toServerFindings(info), ...toDurabilityFindings(config)]) report(finding);
  const name = `${productOf(info)} at ${address}`;
  const isBot = raisesVersion(options);
  reportVersion(name, await attempt(() => claimSchema(client, { name, isLook, isBot })), options);
  const scrubber = createRedisScrubber(connection, log, clock);
  const watch = await watchServer({
    store: `Redis at ${address}`,
    readMark: () =>
      attempt(async () => {
        // A SET that finds the key writes nothing, but a server that refuses writes refuses the command.
        await client.set(markKey, randomUUID(), { condition: "NX" });
        return (await client.get(markKey)) ?? undefined;
      }),
    scrubber,
    onReady: connection.onReady,
    onDataLost: options.onDataLost ?? (() => {}),
    log,
    clock,
  });
  let commits = 0;
  let durableCommits = 0;
  const run = ({ source, sha1 }: RedisScript, input: ReturnType<typeof toApplyInput>) =>
    client.evalSha(sha1, input).catch((error: unknown) => {
      if (error instanceof Error && error.message.startsWith("NOSCRIPT")) return client.eval(source, input);
      throw error;
    });

  const backend: Backend = {
    async close() {
      watch.close();
      await close();
    },
    async read(addresses, what) {
      const names = addresses.map(nameOfEntry);
      if (names.length === 0) return [];
      if (what === undefined)
        return (await attempt(() => client.mGet(names))).map((value) => value ?? undefined);
      // The client sends all commands at once.
      const counts = await attempt(() => Promise.all(names.map((name) => client.exists(name))));
      return counts.map((count) => (count === 1 ? "" : undefined));
    },
    async apply(conditions, changes, resolves) {
      commits++;
      if (resolves !== "soon") durableCommits++;
      const input = toApplyInput(conditions, changes, systemClock.now());
      // A write without keys has nothing to check or change.
      const unmet = input.keys.length === 0 ? -1 : Number(await attempt(() => run(applyScript, input)));
      // The append-only file holds deleted values until it is rewritten.
      if (resolves === "scrubbed") await scrubber.request();
      return unmet;
    },
    async count(limits, changes) {
      commits++;
      const input = toCountInput(limits, changes);
      return toPassedLimit(await attempt(() => run(countScript, input)));
    },
    async range(name, page) {
      const [key, { after, max, order }] = [nameOfIndex(name), page];
      if (after !== undefined)
        return toPage(await attempt(() => run(pageScript, toPageInput(key, page, after))));
      const options = order === "highest-first" ? ({ REV: true } as const) : {};
      const rows = await attempt(() => client.zRangeWithScores(key, 0, max - 1, options));
      return rows.map(({ value, score }) => ({ member: value, score }));
    },
    scan: (what) => scan(connection, what),
    lease: createRedisLeases(connection),
    async look(sweepUntil) {
      if (sweepUntil !== undefined) await scrubber.resume();
      await watch.check();
      // Redis removes expired keys by itself.
      return { problems: [], swept: 0 };
    },
  };
  return {
    backend,
    name,
    blobs: "entries",
    writes: () => ({ commits, durableCommits, syncs: 0 }),
    restored: undefined,
    async sizeBytes() {
      return Number(fieldOf(await attempt(() => client.info("memory")), "used_memory"));
    },
    backup: { unsupported: "Redis has backups of its own: use BGSAVE, or copy its files" },
  };
}

async function* scan(
  { attempt, client }: RedisConnection,
  what: Space | "indexes",
): AsyncGenerator<ScannedKey> {
  const start = what === "indexes" ? nameOfIndex("") : nameOfEntry({ space: what, key: "" });
  // A scan may return a key twice while the server resizes its table.
  const seen = new Set<string>();
  let cursor = "0";
  do {
    const from = cursor;
    const page = await attempt(() => client.scan(from, { MATCH: `${start}*`, COUNT: 1000 }));
    const names = page.keys.filter((name) => !seen.has(name));
    const ttls = await attempt(() => Promise.all(names.map((name) => client.pTTL(name))));
    const now = systemClock.now();
    for (const [at, name] of names.entries()) {
      const ttl = ttls[at] ?? noTtl;
      if (!seen.has(name) && ttl !== goneTtl)
        yield { key: name.slice(start.length), expires: ttl === noTtl ? undefined : now + ttl };
      seen.add(name);
    }
    cursor = page.cursor;
  } while (cursor !== "0");
}

/** What the server says about a key that does not expire, and about one that is gone. */
const [noTtl, goneTtl] = [-1, -2];

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

async function readServer(client: RedisClient): Promise<ServerState> {
  const [info, config] = await Promise.all([
    client.info().catch(() => ""),
    client.configGet(["appendonly", "appendfsync", "save", "maxmemory-policy"]).catch(() => undefined),
  ]);
  return { info, config };
}

const oldestMajor = 6;
/** The share of `maxmemory` from which a warning follows. */
const fullShare = 0.9;
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

const leaseSource = `
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`;

/** Keeps each lease in a key that names the holder and expires by itself. */
function createRedisLeases({ attempt, client }: RedisConnection): Backend["lease"] {
  return async (name, holder, ttlMs) => {
    const keys = [`parley:lease::${name}`];
    const isRelease = ttlMs === "release";
    const input = { keys, arguments: isRelease ? [holder] : [holder, String(ttlMs)] };
    const source = isRelease ? deleteIfSource : leaseSource;
    return Number(await attempt(() => client.eval(source, input))) === 1;
  };
}

/** Holds the id of the latest request until a rewrite that began after it has succeeded. */
const requestKey = "parley:scrub";
/** The longest wait for a rewrite until the next `resume`. */
const deadlineMs = 10 * 60_000;
const pollMs = { min: 50, max: 1000 } as const;

/** Removes deleted values from the append-only file, which the server rewrites in the background. */
function createRedisScrubber(connection: RedisConnection, log: Log, clock: Clock): BackgroundScrub {
  const { attempt, client } = connection;

  const rewrite = async (signal: AbortSignal) => {
    const readState = async () => toState(await attempt(() => client.info()));
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
      const isAccepted = await attempt(() => client.bgRewriteAof()).then(
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
      await rewrite(signal);
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
