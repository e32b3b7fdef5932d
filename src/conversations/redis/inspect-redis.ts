import { randomUUID } from "node:crypto";
import { right, warning, wrong, type Finding } from "../../core/checks.ts";
import { isParleyError } from "../../core/errors.ts";
import { inspectedEntries, type StoreInspection } from "../backend.ts";
import { toVersionFinding } from "../store-keys.ts";
import { schemaKey, schemaVersion } from "./redis-backend.ts";
import { clusterNames, serverNames, productOf } from "./redis-script.ts";
import { connectRedis, type RedisClient, type RedisConnectionOptions } from "./redis-connection.ts";

const probeKey = "parley:doctor-probe";
const probeTtlMs = 10_000;
const oldestMajor = 6;
/** The share of `maxmemory` from which a warning follows. */
const fullShare = 0.9;

/** Inspects a Redis or Valkey server. It writes one key for the moment of a probe. */
export async function inspectRedis(url: string, options: RedisConnectionOptions): Promise<StoreInspection> {
  let connection: Awaited<ReturnType<typeof connectRedis>>;
  try {
    connection = await connectRedis(url, options);
  } catch (error) {
    return { findings: [toFailure(error)], hasEntries: false, entries: [] };
  }
  const { client, address, attempt, close, isCluster } = connection;
  const names = isCluster ? clusterNames : serverNames;
  try {
    return await attempt(async () => {
      const nodes = await connection.nodes();
      const [stored, servers, entries] = await Promise.all([
        client.get(schemaKey),
        Promise.all(nodes.map(readServer)),
        Promise.all(inspectedEntries.map((at) => client.get(names.entry(at)))),
        probe(client),
      ]);
      const version = stored === null ? undefined : Number(stored);
      const [first] = servers;
      return {
        findings: [
          toVersionFinding(`${productOf(first?.info ?? "")} at ${address}`, version, schemaVersion),
          ...worstOf(servers.map(({ info }) => toServerFindings(info))),
          ...worstOf(servers.map(({ config }) => toDurabilityFindings(config))),
        ],
        hasEntries: servers.some(({ page }) => page.keys.length > 0),
        entries: entries.map((entry) => entry ?? undefined),
      };
    });
  } catch (error) {
    return { findings: [toFailure(error)], hasEntries: false, entries: [] };
  } finally {
    await close();
  }
}

/** Reads the state of one server. */
async function readServer(node: RedisClient) {
  const [info, config, page] = await Promise.all([
    node.info(),
    // Managed servers refuse this command, and their settings stay unknown.
    node.configGet(["appendonly", "appendfsync", "save", "maxmemory-policy"]).catch(() => undefined),
    node.scan("0", { MATCH: "parley:*::*", COUNT: 1000 }),
  ]);
  return { info, config, page };
}

/** Returns the findings about the worst server. */
function worstOf(servers: readonly (readonly Finding[])[]): readonly Finding[] {
  const badness = (findings: readonly Finding[]) =>
    findings.reduce((sum, { level }) => sum + (level === "wrong" ? 100 : level === "warning" ? 1 : 0), 0);
  return servers.toSorted((a, b) => badness(b) - badness(a))[0] ?? [];
}

/** Fails on a replica or a full server. */
async function probe(client: RedisClient): Promise<void> {
  const key = `${probeKey}:${randomUUID()}`;
  await client.set(key, "1", { expiration: { type: "PX", value: probeTtlMs } });
  await client.del(key);
}

function toFailure(error: unknown): Finding {
  if (!isParleyError(error)) throw error;
  const reason = String(error.detail["reason"]);
  const remedies: Readonly<Record<string, string>> = {
    ECONNREFUSED: "nothing listens there: start Redis, or correct STORE_URL and its port",
    ENOTFOUND: "no such host name: correct STORE_URL",
    WRONGPASS: "correct user and password in STORE_URL: redis://user:password@host:6379/0",
    NOAUTH: "Redis asks for a password: STORE_URL=redis://:password@host:6379/0",
    NOPERM: "give Parley's user all commands on the keys parley:*",
    OOM: "Redis is full: raise maxmemory",
    MISCONF: "Redis cannot save: look at its log and its disk",
    READONLY: "this is a replica: point STORE_URL to the primary",
  };
  const known = Object.keys(remedies).find((code) => reason.includes(code));
  const remedy = remedies[known ?? ""] ?? "look at Redis and the network (rediss:// where it wants TLS)";
  return wrong("Store", error.message.replace(/^the /, "The ").replace(": check STORE_URL", ""), remedy);
}

function toServerFindings(info: string): Finding[] {
  const field = (name: string): string | undefined =>
    new RegExp(`^${name}:(.*)$`, "m").exec(info)?.[1]?.trim();
  const version = field("redis_version") ?? "";
  const [used, max] = [Number(field("used_memory") ?? 0), Number(field("maxmemory") ?? 0)];
  const old =
    Number(version.split(".")[0]) < oldestMajor
      ? [wrong("Server", `Redis ${version} is too old`, `use Redis ${oldestMajor} or newer, or Valkey`)]
      : [];
  const mebibytes = (bytes: number) => Math.ceil(bytes / 1024 / 1024);
  const memory = `${mebibytes(used)} MiB used${max === 0 ? ", no limit set" : ` of ${mebibytes(max)}`}`;
  return [
    ...old,
    max > 0 && used > max * fullShare
      ? warning("Free space", memory, "raise maxmemory, or set RETENTION_DAYS")
      : right("Free space", memory),
  ];
}

function toDurabilityFindings(config: Readonly<Record<string, string>> | undefined): Finding[] {
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
