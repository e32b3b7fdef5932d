import type { createClient } from "@redis/client";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/telemetry.ts";

/** A client of node-redis. */
export type RedisClient = ReturnType<typeof createClient>;

/** A connection that reconnects by itself. */
export interface RedisConnection {
  /** The present one: another server's after a failover. Of a cluster: commands with keys only. */
  readonly client: RedisClient;
  /** The server, or the primaries of a cluster. */
  readonly nodes: () => Promise<readonly RedisClient[]>;
  /** Whether a command's keys must share a hash tag. */
  readonly isCluster: boolean;
  /** Rises whenever the connection may have been replaced. */
  readonly epoch: number;
  /** `host:port`, or the name and addresses of the sentinels; without credentials. */
  readonly address: string;
  /** How many replicas must have a write before it is acknowledged. */
  readonly replicas: number;
  /** How many replicas have what this connection has written before to the server of a key. */
  readonly wait: (key: string, replicas: number, timeoutMs: number) => Promise<number>;
  /**
   * Runs commands within the deadline: a server that hangs is an outage like one that is down.
   * @throws ParleyError `store-unavailable`; the outcome of what was sent is then unknown
   */
  readonly attempt: <T>(work: () => Promise<T>) => Promise<T>;
  /**
   * Runs work on each replica that responds, one after another. Absent where replicas are not known: of a single server and
   * of a cluster.
   */
  readonly onEachReplica?: (work: (replica: RedisClient) => Promise<void>) => Promise<void>;
  /** Called whenever it is connected again. */
  readonly onReady: (listener: () => void) => void;
  readonly close: () => Promise<void>;
}

/** How the connection is made. */
export interface RedisConnectionOptions {
  readonly log: Log;
  /** Longest wait for a response, in milliseconds. Default 5 s. */
  readonly deadlineMs?: number | undefined;
  /** Default: the time of this process. */
  readonly clock?: Clock | undefined;
}
