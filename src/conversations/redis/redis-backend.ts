import type { KeyvStorageAdapter } from "keyv";
import { ParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import { type Backend, type Place, spaces, type Space } from "../backend.ts";
import type { Leases } from "../leased-queue.ts";
import { connectRedis, type RedisClient, type RedisConnectionOptions } from "./redis-client.ts";
import { applyScript, type KeyNames, toScriptInput } from "./redis-script.ts";

/** Raised together with a migration when the layout of entries changes. */
const schemaVersion = 1;

const namespaceOf = (space: Space) => `parley:${space}`;

/** How @keyv/redis joins namespace and key, and so how this file does. */
const names: KeyNames = {
  entry: ({ space, key }: Place) => `${namespaceOf(space)}::${key}`,
  ranking: (name) => `parley:ranking::${name}`,
};

export interface RedisBackend extends Backend {
  readonly leases: Leases;
  readonly address: string;
}

/**
 * The backend for several instances: Redis from 6, or Valkey, one server (a cluster spreads the keys of one
 * atomic write, which this does not do).
 * @throws ParleyError `config`, `store-unavailable`, `store-newer`
 */
export async function openRedisBackend(url: string, options: RedisConnectionOptions): Promise<RedisBackend> {
  const { client, attempt, address, close } = await connectRedis(url, options);
  try {
    await attempt(() => claimSchema(client));
    await attempt(() => warnOfWeakness(client, options.log));
  } catch (error) {
    await close();
    throw error;
  }
  const { default: KeyvRedis } = await import("@keyv/redis");
  const adapters = new Map<Space, KeyvStorageAdapter>(
    spaces.map((space) => [
      space,
      new KeyvRedis(client, {
        namespace: namespaceOf(space),
        throwOnErrors: true,
      }) as unknown as KeyvStorageAdapter,
    ]),
  );
  const run = (source: string, sha1: string, input: { keys: string[]; arguments: string[] }) =>
    client.evalSha(sha1, input).catch((error: unknown) => {
      if (error instanceof Error && error.message.startsWith("NOSCRIPT")) return client.eval(source, input);
      throw error;
    });

  return {
    address,
    attempt,
    close,
    leases: createLeases(client, attempt),
    adapter(space) {
      return adapters.get(space) as KeyvStorageAdapter;
    },
    async apply(ifAbsent, changes) {
      const input = toScriptInput(names, ifAbsent, changes, Date.now());
      return Number(await attempt(() => run(applyScript.source, applyScript.sha1, input)));
    },
    async replace(at, old, value) {
      const input = { keys: [names.entry(at)], arguments: [old, value] };
      return Number(await attempt(() => client.eval(replaceSource, input))) === 1;
    },
    async ranking(name, { order, offset, max }) {
      const last = offset + max - 1;
      const rows = await attempt(() =>
        order === "highest-first"
          ? client.zRangeWithScores(names.ranking(name), offset, last, { REV: true })
          : client.zRangeWithScores(names.ranking(name), offset, last),
      );
      return rows.map(({ value, score }) => ({ member: value, score }));
    },
    async *keys(space, prefix) {
      const start = names.entry({ space, key: "" });
      const match = `${(start + prefix).replaceAll(/[*?[\]\\^]/g, String.raw`\$&`)}*`;
      // A scan may show a key twice while the server resizes its table.
      const seen = new Set<string>();
      let cursor = "0";
      do {
        const from = cursor;
        const page = await attempt(() => client.scan(from, { MATCH: match, COUNT: 1000 }));
        for (const key of page.keys.map((each) => each.slice(start.length))) {
          if (!seen.has(key)) yield key;
          seen.add(key);
        }
        cursor = page.cursor;
      } while (cursor !== "0");
    },
    async sweep() {
      // Redis removes what has expired by itself.
      return 0;
    },
    async scrub() {
      // The append-only file holds what was deleted until it is rewritten.
      await attempt(() => client.bgRewriteAof()).catch((error: unknown) => {
        options.log.warn(
          { error },
          "Redis would not rewrite its append-only file: deleted text may still be in it",
        );
      });
    },
    async ping() {
      await attempt(() => client.ping());
    },
  };
}

async function claimSchema(client: RedisClient): Promise<void> {
  const key = "parley:schema";
  await client.set(key, String(schemaVersion), { condition: "NX" });
  const version = Number(await client.get(key));
  if (version > schemaVersion) {
    throw new ParleyError(
      "store-newer",
      `this Redis holds conversations of a newer Parley (version ${version}, this one knows ${schemaVersion}): update Parley`,
      { detail: { version, known: schemaVersion } },
    );
  }
}

/** Says what an operator should know: a cache's settings lose what was acknowledged. */
async function warnOfWeakness(client: RedisClient, log: Log): Promise<void> {
  let config: Record<string, string>;
  try {
    config = await client.configGet(["appendonly", "maxmemory-policy"]);
  } catch (error) {
    log.debug({ error }, "Redis does not show its settings");
    return;
  }
  if (config["appendonly"] === "no")
    log.warn({}, "Redis keeps no append-only file: set appendonly yes, or a restart of Redis loses messages");
  const policy = config["maxmemory-policy"] ?? "noeviction";
  if (policy !== "noeviction")
    log.warn({ policy }, "Redis may throw conversations away when its memory is full: set noeviction");
}

const replaceSource = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
return 1`;
const renewSource = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0`;
const releaseSource = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;

function createLeases(client: RedisClient, attempt: <T>(work: () => Promise<T>) => Promise<T>): Leases {
  const keyOf = (name: string) => `parley:lease::${name}`;
  return {
    async take(name, holder, ttlMs) {
      const options = { condition: "NX", expiration: { type: "PX", value: ttlMs } } as const;
      return (await attempt(() => client.set(keyOf(name), holder, options))) === "OK";
    },
    async renew(name, holder, ttlMs) {
      const input = { keys: [keyOf(name)], arguments: [holder, String(ttlMs)] };
      return Number(await attempt(() => client.eval(renewSource, input))) === 1;
    },
    async release(name, holder) {
      await attempt(() => client.eval(releaseSource, { keys: [keyOf(name)], arguments: [holder] }));
    },
  };
}
