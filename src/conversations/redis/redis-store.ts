import { isDecodable } from "../../support/text.ts";
import { isOnOtherMachine } from "../../support/http/client-address.ts";
import type { StoreBackend } from "../backend.ts";

/** A Redis or Valkey server, for several processes. */
export const redisStore: StoreBackend = {
  schemes: ["redis", "rediss", "redis+cluster", "rediss+cluster"],
  urlForms: ["redis://…", "rediss://…"],
  isShared: true,
  checkUrl: findRedisUrlProblem,
  findExposure(url) {
    const { protocol, hostname, password } = new URL(url);
    const lacking = [
      ...(password === "" ? ["a password"] : []),
      ...(protocol === "redis:" ? ["TLS"] : []),
    ].map((part) => `without ${part}`);
    if (lacking.length === 0 || !isOnOtherMachine(hostname)) return undefined;
    return `names a Redis on another machine ${lacking.join(" and ")}: write rediss://user:password@host:6380`;
  },
  dataFolder() {
    return undefined;
  },
  async open(url, options) {
    const { openRedisBackend } = await import("./redis-backend.ts");
    return await openRedisBackend(url, options);
  },
};

/** Ends "STORE_URL …" if the URL is wrong. It never quotes the URL. */
function findRedisUrlProblem(text: string): string | undefined {
  if (/^rediss?\+cluster:/.test(text))
    return "names a cluster of Redis, which Parley does not use: take one Redis server, or Postgres with synchronous replicas where no acknowledged message may be lost";
  if (!/^rediss?:\/\/./.test(text) || !URL.canParse(text))
    return "is not a URL: write redis://host:6379 or rediss://host:6380";
  const { username, password, pathname, searchParams } = new URL(text);
  // The client would throw an error that quotes them.
  if (!isDecodable(username) || !isDecodable(password))
    return "has a user or password with a % that begins no escape: write %25 for %";
  if (!/^\/?\d{0,9}$/.test(pathname))
    return "names a database that is not a number: write redis://host:6379/0";
  if (searchParams.has("wait_replicas"))
    return "has wait_replicas, which Parley no longer takes: leave it out, or use Postgres with synchronous replicas where no acknowledged message may be lost";
  return undefined;
}
