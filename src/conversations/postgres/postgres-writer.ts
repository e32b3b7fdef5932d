import type { Clock } from "../../core/clock.ts";
import { backoffMs, retry } from "../../support/retry.ts";
import { isCollision, isOfOneWrite } from "./postgres-errors.ts";
import type { PostgresConnection } from "./postgres-client.ts";
import { quoteSchema } from "./postgres-schema.ts";
import type { EncodedWrite } from "./write-steps.ts";

/** What the function in the database returns for a write. */
export interface WriteOutcome {
  /** Position of the entry that exists, or of the limit that was passed; -1: applied. `replace`: 1 or 0. */
  readonly outcome: number;
  /** Of the terms of a passed limit. */
  readonly scores: readonly number[];
}

/** Applies writes in the order of the calls. */
export interface PostgresWriter {
  /** Durable when it resolves. Throws the errors of the service. */
  write(write: EncodedWrite): Promise<WriteOutcome>;
  /** Transactions that were committed. */
  readonly commits: number;
}

/** What the writer works with. */
export interface PostgresWriterOptions {
  readonly connection: PostgresConnection;
  readonly commonLock: bigint;
  /** A write that waited longer is not sent any more, in milliseconds. */
  readonly maxWaitMs: number;
  readonly clock: Clock;
}

/** Bounds of a batch. The server has 6,400 locks by default, for all of its clients. */
const maxLocks = 400;
const maxChars = 1_000_000;
const maxWrites = 200;
/** A write with longer contents, of pictures and recordings, is sent beside the others. */
const largeChars = 100_000;
const maxCollisions = 8;
const collisionBackoff = { baseMs: 5, maxMs: 200 };

interface Pending {
  readonly write: EncodedWrite;
  readonly since: number;
  readonly resolve: (outcome: WriteOutcome) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * One batch is under way at a time: what is written meanwhile goes together into the next one, so that many writes
 * share a round trip, a transaction and a wait for the disk, and keep their order.
 */
export function createPostgresWriter(options: PostgresWriterOptions): PostgresWriter {
  const { connection, commonLock, maxWaitMs, clock } = options;
  const text = `SELECT outcome, scores FROM ${quoteSchema(connection.schema)}.write_batch($1, $2, $3, $4, $5, $6, $7, $8)`;
  const waiting: Pending[] = [];
  let isRunning = false;
  let commits = 0;

  const send = async (writes: readonly EncodedWrite[]): Promise<readonly WriteOutcome[]> => {
    const values = toParameters(writes, commonLock);
    const outcomes = await retry(
      () =>
        connection.withClient(async (client) => (await client.query<WriteOutcome>(text, [...values])).rows),
      {
        // Nothing of it was written.
        delayMs: (error, attempt) =>
          isCollision(error) && attempt < maxCollisions
            ? backoffMs(attempt, collisionBackoff) * (0.5 + Math.random())
            : undefined,
      },
    );
    commits++;
    return outcomes;
  };

  const runBatch = async (batch: readonly Pending[]): Promise<void> => {
    try {
      const outcomes = await send(batch.map(({ write }) => write));
      for (const [index, { resolve }] of batch.entries()) resolve(outcomes[index] as WriteOutcome);
    } catch (error) {
      if (batch.length > 1 && isOfOneWrite(error)) for (const one of batch) await runBatch([one]);
      else for (const { reject } of batch) reject(error);
    }
  };

  const takeBatch = (): Pending[] => {
    const batch: Pending[] = [];
    let locks = 0;
    let chars = 0;
    while (batch.length < maxWrites) {
      const [next] = waiting;
      if (next === undefined) break;
      locks += next.write.locks.size;
      chars += next.write.chars;
      if (batch.length > 0 && (locks > maxLocks || chars > maxChars)) break;
      waiting.shift();
      // Nobody waits for it any more.
      if (clock.monotonic() - next.since > maxWaitMs)
        next.reject(new Error(`not sent within ${maxWaitMs} ms`));
      else batch.push(next);
    }
    return batch;
  };

  const drain = async (): Promise<void> => {
    if (isRunning) return;
    isRunning = true;
    while (waiting.length > 0) {
      const batch = takeBatch();
      if (batch.length > 0) await runBatch(batch);
    }
    isRunning = false;
  };

  return {
    get commits() {
      return commits;
    },
    write: (write) =>
      new Promise<WriteOutcome>((resolve, reject) => {
        const pending = { write, since: clock.monotonic(), resolve, reject };
        if (write.chars > largeChars) {
          void runBatch([pending]);
          return;
        }
        waiting.push(pending);
        void drain();
      }),
  };
}

function toParameters(writes: readonly EncodedWrite[], commonLock: bigint): readonly unknown[] {
  const locks = new Set(writes.flatMap((write) => [...write.locks]));
  const isAlone = locks.size > maxLocks;
  const sorted = isAlone ? [] : [...locks].toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const steps = writes.flatMap((write) => write.steps);
  const column = (at: number) => steps.map((step) => step[at]);
  return [[commonLock, ...sorted].map(String), isAlone, ...Array.from({ length: 6 }, (_, at) => column(at))];
}
