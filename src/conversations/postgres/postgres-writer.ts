import { createHash } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import { backoffMs, retry, backoffs } from "../../support/retry.ts";
import {
  type BackendChange,
  countedPrefix,
  type EntryAddress,
  type IndexChange,
  type ScoreLimit,
  type WriteCondition,
} from "../backend.ts";
import { type PostgresConnection, isCollision, isOfOneWrite } from "./postgres-client.ts";
import { quoteSchema } from "./postgres-schema.ts";

/** What the function in the database returns for a write. */
export interface WriteOutcome {
  /** The position of the condition that is not met or of the exceeded limit, or -1 if applied. */
  readonly outcome: number;
  /** The scores of the terms of an exceeded limit. */
  readonly scores: readonly number[];
}

/** The options of the writer. */
interface PostgresWriterOptions {
  readonly connection: PostgresConnection;
  /** A write that waited longer is not sent, in milliseconds. */
  readonly maxWaitMs: number;
  readonly clock: Clock;
}

/** The limit of a batch. Each step takes a lock at most, and the server has 6,400 for all its clients. */
const maxSteps = 400;
/** A write with longer contents, such as pictures and recordings, is sent in parallel to the others. */
const largeChars = 100_000;
const maxCollisions = 8;

interface Pending {
  readonly write: EncodedWrite;
  readonly since: number;
  readonly resolve: (outcome: WriteOutcome) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Sends one batch at a time. Writes that arrive meanwhile go into the next batch together. So many writes
 * share a round trip, a transaction and a wait for the disk, and keep their order. It throws the errors of
 * the service.
 */
export function createPostgresWriter({ connection, maxWaitMs, clock }: PostgresWriterOptions) {
  const text = `SELECT outcome, scores FROM ${quoteSchema(connection.schema)}.write_batch($1, $2, $3, $4, $5, $6, $7)`;
  const waiting: Pending[] = [];
  let isRunning = false;
  let commits = 0;

  const send = async (writes: readonly EncodedWrite[]): Promise<readonly WriteOutcome[]> => {
    const values = toParameters(writes);
    const outcomes = await retry(
      () =>
        connection.withClient(async (client) => (await client.query<WriteOutcome>(text, [...values])).rows),
      {
        // Nothing of the batch was written.
        delayMs: (error, attempt) =>
          isCollision(error) && attempt < maxCollisions
            ? backoffMs(attempt, backoffs.collision) * (0.5 + Math.random())
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
    for (let steps = 0; ;) {
      const [next] = waiting;
      steps += next?.write.steps.length ?? 0;
      if (next === undefined || (batch.length > 0 && steps > maxSteps)) return batch;
      waiting.shift();
      // Nobody waits for it any more.
      if (clock.monotonic() - next.since > maxWaitMs)
        next.reject(new Error(`not sent within ${maxWaitMs} ms`));
      else batch.push(next);
    }
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
    /** The number of committed transactions. */
    get commits() {
      return commits;
    },
    write: (write: EncodedWrite): Promise<WriteOutcome> =>
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

function toParameters(writes: readonly EncodedWrite[]): readonly unknown[] {
  const locks = new Set(writes.flatMap((write) => [...write.locks]));
  const sorted = [...locks].toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const steps = writes.flatMap((write) => write.steps);
  const column = (at: number) => steps.map((step) => step[at]);
  return [sorted.map(String), ...Array.from({ length: 6 }, (_, at) => column(at))];
}

/** The longest name, in bytes, that is stored unchanged. An index row of two names has at most 2,704. */
const maxBytes = 1000;
const prefixChars = 200;
/** Precedes characters that Postgres' text cannot hold, and digests. */
const mark = "\u0001";

/** A key, member or name of an index in the form that Postgres stores. */
interface StoredName {
  /** It has at most 1,000 bytes and differs for different names. */
  readonly name: string;
  /** Set if `name` is only a digest. {@link fromStored} turns it into the name. */
  readonly original: string | undefined;
}

/** Encodes a name, which may hold any Unicode, including NUL, and 16,384 characters. */
export function toStored(name: string): StoredName {
  const escaped = escape(name);
  if (Buffer.byteLength(escaped) <= maxBytes) return { name: escaped, original: undefined };
  const digest = createHash("sha256").update(name).digest("hex");
  return { name: `${escaped.slice(0, prefixChars).toWellFormed()}${mark}d${digest}`, original: escaped };
}

/** Returns the name that was given to {@link toStored}. */
export function fromStored(stored: string): string {
  return stored.includes(mark) ? stored.replaceAll(`${mark}0`, "\0").replaceAll(`${mark}1`, mark) : stored;
}

function escape(name: string): string {
  return name.includes("\0") || name.includes(mark)
    ? name.replaceAll(mark, `${mark}1`).replaceAll("\0", `${mark}0`)
    : name;
}

/** A row of the function that writes: kind, space or index, key or member, content, amount, original. */
type WriteStep = readonly [
  kind: string,
  name: string,
  key: string,
  content: string | null,
  amount: number | null,
  original: string | null,
];

/** An atomic write in the form of the function in the database. */
export interface EncodedWrite {
  readonly steps: readonly WriteStep[];
  /** The numbers of the advisory locks for what is checked or changed. */
  readonly locks: ReadonlySet<bigint>;
  /** The number of characters of its contents. */
  readonly chars: number;
}

const end: WriteStep = ["end", "", "", null, null, null];

/** Encodes the writes of one schema. Other schemas of a database have other locks. */
export function createWriteEncoder(schema: string) {
  const toLock = (text: string): bigint =>
    createHash("sha1").update(`parley/${schema}\0${text}`).digest().readBigInt64BE();

  const start = () => {
    const steps: WriteStep[] = [];
    const locks = new Set<bigint>();
    let chars = 0;
    return {
      add(step: WriteStep) {
        steps.push(step);
        chars += step[2].length + (step[3]?.length ?? 0) + (step[5]?.length ?? 0);
      },
      lock: (name: string, key: string) => void locks.add(toLock(`${name}\0${key}`)),
      end(): EncodedWrite {
        steps.push(end);
        return { steps, locks, chars };
      },
    };
  };
  type Builder = ReturnType<typeof start>;

  const addEntry = (
    builder: Builder,
    kind: string,
    { space, key }: EntryAddress,
    { content = null, amount = null }: { content?: string | null; amount?: number | null } = {},
  ): void => {
    const stored = toStored(key);
    builder.lock(space, stored.name);
    builder.add([kind, space, stored.name, content, amount, stored.original ?? null]);
  };

  const addCondition = (builder: Builder, at: WriteCondition, position: number): void => {
    if (at.mustBe !== undefined) addEntry(builder, "same", at, { content: at.mustBe, amount: position });
    else addEntry(builder, at.mustExist === true ? "present" : "absent", at, { amount: position });
  };

  const addToIndex = (builder: Builder, change: IndexChange): void => {
    const ranking = toStored(change.index).name;
    const kind = `${tableOf(change.index)}.${change.kind}`;
    if (change.kind === "trim-index") {
      builder.add([kind, ranking, "", null, change.maxScore, null]);
      return;
    }
    const member = toStored(change.member);
    if (isCounted(change.index)) builder.lock(ranking, member.name);
    const score = change.kind === "remove-member" ? null : change.score;
    builder.add([kind, ranking, member.name, null, score, member.original ?? null]);
  };

  const addChange = (builder: Builder, change: BackendChange, now: number): void => {
    switch (change.kind) {
      case "set":
        if (change.expires === "kept") addEntry(builder, "set-kept", change.at, { content: change.value });
        else
          addEntry(builder, "set", change.at, { content: change.value, amount: toTtl(change.expires, now) });
        return;
      case "delete":
        addEntry(builder, "delete", change.at);
        return;
      case "keep":
        addEntry(builder, "keep", change.at, { amount: toTtl(change.expires, now) });
        return;
      case "add-member":
      case "append-member":
      case "add-score":
      case "remove-member":
      case "trim-index":
        addToIndex(builder, change);
    }
  };

  return {
    /**
     * Encodes `Backend.apply`. `now` is in Unix ms. Times to live are relative to the database's clock.
     */
    apply(
      conditions: readonly WriteCondition[],
      changes: readonly BackendChange[],
      now: number,
    ): EncodedWrite {
      const builder = start();
      for (const [position, at] of conditions.entries()) addCondition(builder, at, position);
      for (const change of changes) addChange(builder, change, now);
      return builder.end();
    },
    /** Encodes `Backend.count`. */
    count(limits: readonly ScoreLimit[], changes: readonly IndexChange[]): EncodedWrite {
      const builder = start();
      for (const [position, { terms, max }] of limits.entries()) {
        for (const { index, member, weight = 1 } of terms) {
          const [ranking, key] = [toStored(index).name, toStored(member).name];
          builder.lock(ranking, key);
          builder.add([`${tableOf(index)}.term`, ranking, key, null, weight, null]);
        }
        builder.add(["limit", "", String(position), null, max, null]);
      }
      for (const change of changes) addToIndex(builder, change);
      return builder.end();
    },
  };
}

/** The table of an index. Indexes that are seldom read in order are not kept in order. */
export function tableOf(index: string): "rankings" | "counts" {
  return isCounted(index) ? "counts" : "rankings";
}

function isCounted(index: string): boolean {
  return index.startsWith(countedPrefix);
}

function toTtl(expires: number | undefined, now: number): number | null {
  return expires === undefined ? null : Math.max(0, expires - now);
}
