/** One server, as the client takes it. */
export interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

/** What a store URL says. */
export interface RedisUrl {
  /** For one server: as the client takes it. */
  readonly url: string;
  readonly isTls: boolean;
  /** How many replicas must have a write before it is acknowledged. `undefined`: one where there is any. */
  readonly replicas: number | undefined;
  /** Present where sentinels know the primary. */
  readonly sentinels: SentinelUrl | undefined;
  /** Present where the data is on several primaries. */
  readonly cluster: ClusterUrl | undefined;
}

/** `redis+cluster://user:password@host:6379,host:6379`. Some of its servers are enough. */
export interface ClusterUrl {
  readonly addresses: readonly RedisAddress[];
  readonly username: string | undefined;
  readonly password: string | undefined;
}

/** `redis+sentinel://user:password@host:26379,host:26379/name/0`. */
export interface SentinelUrl extends ClusterUrl {
  /** Name of the primary, as the sentinels have it. */
  readonly name: string;
  readonly database: number;
}

const sentinelForm = "redis+sentinel://user:password@host:26379,host:26379/mymaster";
const sentinelPattern =
  /^rediss?\+sentinel:\/\/(?:([^@/?#]*)@)?([^@/?#]+)\/([^/?#]+)(?:\/(\d{1,9}))?\/?(?:\?([^#]*))?$/;
const clusterForm = "redis+cluster://user:password@host:6379,host:6379";
const clusterPattern = /^rediss?\+cluster:\/\/(?:([^@/?#]*)@)?([^@/?#]+)\/?(?:\?([^#]*))?$/;
const addressPattern = /^(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?$/;
const waitParameter = "wait_replicas";
const defaultPort = 6379;
const defaultSentinelPort = 26_379;
const maxReplicas = 100;

/** What is wrong with a URL, as the end of "STORE_URL …"; `undefined`: nothing. Never quotes it. */
export function findRedisUrlProblem(text: string): string | undefined {
  if (/^rediss?\+sentinel:/.test(text)) return findSentinelProblem(text);
  return /^rediss?\+cluster:/.test(text) ? findClusterProblem(text) : findServerProblem(text);
}

/** Reads a URL that {@link findRedisUrlProblem} finds right. */
export function parseRedisUrl(text: string): RedisUrl {
  const isTls = text.startsWith("rediss");
  const sentinels = parseSentinels(text);
  if (sentinels !== undefined) {
    const query = new URLSearchParams(sentinelPattern.exec(text)?.[5]);
    // A failover promotes a replica: a write that none has would be lost.
    const replicas = Number(query.get(waitParameter) ?? 1);
    return { url: text, isTls, sentinels, cluster: undefined, replicas };
  }
  const cluster = parseCluster(text);
  if (cluster !== undefined) {
    const asked = new URLSearchParams(clusterPattern.exec(text)?.[3]).get(waitParameter);
    const replicas = asked === null ? undefined : Number(asked);
    return { url: text, isTls, sentinels: undefined, cluster, replicas };
  }
  const url = new URL(text);
  const replicas = Number(url.searchParams.get(waitParameter) ?? 0);
  url.searchParams.delete(waitParameter);
  return { url: url.href, isTls, sentinels: undefined, cluster: undefined, replicas };
}

function findServerProblem(text: string): string | undefined {
  if (!/^rediss?:\/\/./.test(text) || !URL.canParse(text))
    return "is not a URL: write redis://host:6379 or rediss://host:6380";
  const { username, password, pathname, searchParams } = new URL(text);
  // The client would throw an error that quotes them.
  if (!isDecodable(username) || !isDecodable(password)) return undecodable;
  if (!/^\/?\d{0,9}$/.test(pathname))
    return "names a database that is not a number: write redis://host:6379/0";
  return findWaitProblem(searchParams);
}

function findSentinelProblem(text: string): string | undefined {
  const [, user = "", , name = "", , query] = sentinelPattern.exec(text) ?? [];
  const found = parseSentinels(text);
  if (found === undefined) return `is not a URL of sentinels: write ${sentinelForm}`;
  if (!isDecodable(user) || !isDecodable(name)) return undecodable;
  return findWaitProblem(new URLSearchParams(query));
}

function findClusterProblem(text: string): string | undefined {
  const [, user = "", , query] = clusterPattern.exec(text) ?? [];
  if (parseCluster(text) === undefined) return `is not a URL of a cluster: write ${clusterForm}`;
  if (!isDecodable(user)) return undecodable;
  return findWaitProblem(new URLSearchParams(query));
}

function parseCluster(text: string): ClusterUrl | undefined {
  const [, user, hosts = ""] = clusterPattern.exec(text) ?? [];
  return parseHosts(user, hosts, defaultPort);
}

function parseSentinels(text: string): SentinelUrl | undefined {
  const [, user, hosts = "", name = "", database = "0"] = sentinelPattern.exec(text) ?? [];
  const found = parseHosts(user, hosts, defaultSentinelPort);
  return found === undefined ? undefined : { ...found, name: decode(name), database: Number(database) };
}

function parseHosts(user: string | undefined, hosts: string, usualPort: number): ClusterUrl | undefined {
  const addresses = hosts.split(",").flatMap((each): RedisAddress[] => {
    const [, host, port = String(usualPort)] = addressPattern.exec(each) ?? [];
    return host === undefined || Number(port) > 65_535
      ? []
      : [{ host: host.replace(/^\[|\]$/g, ""), port: Number(port) }];
  });
  if (addresses.length < hosts.split(",").length) return undefined;
  const [username = "", ...password] = (user ?? "").split(":");
  return {
    addresses,
    username: username === "" ? undefined : decode(username),
    password: password.length === 0 ? undefined : decode(password.join(":")),
  };
}

function findWaitProblem(query: URLSearchParams): string | undefined {
  const value = query.get(waitParameter);
  return value === null || (/^\d{1,3}$/.test(value) && Number(value) <= maxReplicas)
    ? undefined
    : `has a ${waitParameter} that is not a number from 0 to ${maxReplicas}`;
}

const undecodable = "has a user or password with a % that begins no escape: write %25 for %";

function decode(text: string): string {
  return isDecodable(text) ? decodeURIComponent(text) : text;
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
