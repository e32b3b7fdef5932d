import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestProject } from "vitest/node";
import { type PostgresServer, startPostgres } from "./postgres-server.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The URL at which {@link serveStores} listens. */
    sharedServers: string;
  }
}

/** This is more than a run has tests. */
const databases = 4096;

/** The tests of a run ask this server for empty stores. */
export interface SharedServers {
  /** It responds to `/redis` and `/postgres` with the URL of a store that no other test has. */
  readonly url: string;
  close(): Promise<void>;
}

/** Serves one Redis and one Postgres. Each is started when a test first asks for it. */
export async function serveStores(): Promise<SharedServers> {
  let redis: Promise<RedisServer> | undefined;
  let postgres: Promise<PostgresServer> | undefined;
  let given = 0;
  const give = async (kind: string): Promise<string> => {
    const number = given++;
    if (kind === "/postgres") return `${(await (postgres ??= startPostgres())).url}?schema=store_${number}`;
    const { url } = await (redis ??= startRedis(["--databases", String(databases)]));
    return `${url}/${number % databases}`;
  };
  const server = createServer((request, response) => {
    give(request.url ?? "").then(
      (url) => response.end(url),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      server.close();
      for (const started of [redis, postgres]) await (await started)?.remove();
    },
  };
}

/** Resolves to the URL of an empty store on the shared server. */
export async function askForStore(servers: string, kind: "redis" | "postgres"): Promise<string> {
  const response = await fetch(`${servers}/${kind}`);
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return text;
}

let running: SharedServers | undefined;

/** Starts the servers before a run of Vitest (`globalSetup`). */
export async function setup({ provide }: Pick<TestProject, "provide">): Promise<void> {
  running = await serveStores();
  provide("sharedServers", running.url);
}

/** Stops what the run has started. */
export async function teardown(): Promise<void> {
  await running?.close();
  running = undefined;
}
