import { isDecodable } from "../../support/text.ts";
import type { StoreBackend } from "../backend.ts";

/** A Redis or Valkey server, or a cluster of them, for several processes. */
export const redisStore: StoreBackend = {
  schemes: ["redis", "rediss", "redis+cluster", "rediss+cluster"],
  urlForms: ["redis://…", "rediss://…", "redis+cluster://…"],
  isShared: true,
  checkUrl: findRedisUrlProblem,
  dataFolder() {
    return undefined;
  },
  async open(url, options) {
    const { openRedisBackend } = await import("./redis-backend.ts");
    return await openRedisBackend(url, options);
  },
};

/** A server in the form of the client. */
export interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

/** The content of a store URL. */
export interface RedisUrl {
  /** The URL of one server for the client. */
  readonly url: string;
  readonly isTls: boolean;
  /** How many replicas must have a write before it is acknowledged. `undefined`: one if there is any. */
  readonly replicas: number | undefined;
  /** Present if the data is on several primaries. */
  readonly cluster: ClusterUrl | undefined;
}

/** `redis+cluster://user:password@host:6379,host:6379`, with at least some of its servers. */
export interface ClusterUrl {
  readonly addresses: readonly RedisAddress[];
  readonly username: string | undefined;
  readonly password: string | undefined;
}

const clusterForm = "redis+cluster://user:password@host:6379,host:6379";
const clusterPattern = /^rediss?\+cluster:\/\/(?:([^@/?#]*)@)?([^@/?#]+)\/?(?:\?([^#]*))?$/;
const addressPattern = /^(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?$/;
const waitParameter = "wait_replicas";
const defaultPort = 6379;
const maxReplicas = 100;

/** Ends "STORE_URL …" if the URL is wrong. It never quotes the URL. */
function findRedisUrlProblem(text: string): string | undefined {
  return /^rediss?\+cluster:/.test(text) ? findClusterProblem(text) : findServerProblem(text);
}

/** Reads a URL that {@link findRedisUrlProblem} accepts. */
export function parseRedisUrl(text: string): RedisUrl {
  const isTls = text.startsWith("rediss");
  const cluster = parseCluster(text);
  if (cluster !== undefined) {
    const asked = new URLSearchParams(clusterPattern.exec(text)?.[3]).get(waitParameter);
    const replicas = asked === null ? undefined : Number(asked);
    return { url: text, isTls, cluster, replicas };
  }
  const url = new URL(text);
  const replicas = Number(url.searchParams.get(waitParameter) ?? 0);
  url.searchParams.delete(waitParameter);
  return { url: url.href, isTls, cluster: undefined, replicas };
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

function findClusterProblem(text: string): string | undefined {
  const [, user = "", , query] = clusterPattern.exec(text) ?? [];
  if (parseCluster(text) === undefined) return `is not a URL of a cluster: write ${clusterForm}`;
  if (!isDecodable(user)) return undecodable;
  return findWaitProblem(new URLSearchParams(query));
}

function parseCluster(text: string): ClusterUrl | undefined {
  const [, user, hosts = ""] = clusterPattern.exec(text) ?? [];
  const addresses = hosts.split(",").flatMap((each): RedisAddress[] => {
    const [, host, port = String(defaultPort)] = addressPattern.exec(each) ?? [];
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
