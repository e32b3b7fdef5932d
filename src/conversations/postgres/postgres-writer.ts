import { createHash } from "node:crypto";
import type { ClientBase } from "pg";
import type { Clock } from "../../core/clock.ts";
import { backoffMs, retry, backoffs } from "../../support/retry.ts";
import {
  type Backend,
  type BackendChange,
  countedPrefix,
  type EntryAddress,
  type IndexChange,
  type PassedLimit,
  type ScoreLimit,
  type WriteCondition,
} from "../backend.ts";
import { type PostgresConnection, isCollision, isOfOneWrite } from "./postgres-client.ts";
import { quoteSchema } from "./postgres-schema.ts";

/** The options of the writer. */
interface PostgresWriterOptions {
  readonly connection: Pick<PostgresConnection, "schema" | "withClient">;
  /** A write that waited longer is not sent, in milliseconds. */
  readonly maxWaitMs: number;
  /** The time in Unix ms from which times to live are counted. */
  readonly now: () => number;
  readonly clock: Clock;
}

/** A write within a transaction. What it checks or changes is locked first. */
interface Write<T> {
  readonly locks: ReadonlySet<bigint>;
  /** The number of characters of its contents. */
  readonly chars: number;
  readonly run: (client: ClientBase) => Promise<T>;
}

interface Pending {
  readonly write: Write<unknown>;
  readonly since: number;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** The limits of a batch. By default the server has 6,400 locks for all its clients together. */
const maxLocks = 400;
const maxWrites = 50;
/** A write with longer contents, such as pictures and recordings, is sent in parallel to the others. */
const largeChars = 100_000;
const maxCollisions = 8;

/** What is acknowledged is on disk, whatever is set for the role or the database. */
const begin = `BEGIN;
  SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'`;
/** In the order of their numbers, which prevents most deadlocks. */
const toLockText = (locks: ReadonlySet<bigint>): string =>
  [...locks]
    .toSorted((a, b) => (a < b ? -1 : 1))
    .map((number) => `; SELECT pg_advisory_xact_lock('${number}')`)
    .join("");

/**
 * Writes in the order of the calls, one transaction at a time. Writes that arrive meanwhile go into the next
 * one together, and share its wait for the disk. Under READ COMMITTED their checks see the writes for which
 * the locks waited. It throws the errors of the service.
 */
export function createPostgresWriter({ connection, maxWaitMs, now, clock }: PostgresWriterOptions) {
  const statements = createStatements(connection.schema, now);
  const waiting: Pending[] = [];
  let isRunning = false;
  let commits = 0;

  const transact = (writes: readonly Write<unknown>[]) =>
    connection.withClient(async (client) => {
      const locks = new Set(writes.flatMap((write) => [...write.locks]));
      try {
        await client.query(begin + toLockText(locks));
        const results: unknown[] = [];
        for (const write of writes) results.push(await write.run(client));
        await client.query("COMMIT");
        commits++;
        return results;
      } catch (error) {
        await client.query("ROLLBACK").catch(() => {
          // The connection is gone, and the transaction with it.
        });
        throw error;
      }
    });

  const runBatch = async (batch: readonly Pending[]): Promise<void> => {
    try {
      const results = await retry(() => transact(batch.map(({ write }) => write)), {
        // Nothing of the batch was written.
        delayMs: (error, attempt) =>
          isCollision(error) && attempt < maxCollisions
            ? backoffMs(attempt, backoffs.collision) * (0.5 + Math.random())
            : undefined,
      });
      for (const [index, { resolve }] of batch.entries()) resolve(results[index]);
    } catch (error) {
      if (batch.length > 1 && isOfOneWrite(error)) for (const one of batch) await runBatch([one]);
      else for (const { reject } of batch) reject(error);
    }
  };

  const takeBatch = (): Pending[] => {
    const batch: Pending[] = [];
    for (let locks = 0; batch.length < maxWrites;) {
      const [next] = waiting;
      locks += next?.write.locks.size ?? 0;
      if (next === undefined || (batch.length > 0 && locks > maxLocks)) break;
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

  const send = <T>(write: Write<T>) =>
    new Promise<T>((resolve, reject) => {
      const pending: Pending = {
        write,
        since: clock.monotonic(),
        resolve: resolve as (result: unknown) => void,
        reject,
      };
      if (write.chars > largeChars) {
        void runBatch([pending]);
        return;
      }
      waiting.push(pending);
      void drain();
    });

  return {
    /** The number of committed transactions. */
    get commits() {
      return commits;
    },
    apply: (...[conditions, changes]: Parameters<Backend["apply"]>) =>
      send(statements.apply(conditions, changes)),
    count: (...[limits, changes]: Parameters<Backend["count"]>) => send(statements.count(limits, changes)),
  };
}

type EntryChange<Kind> = Extract<BackendChange, { readonly kind: Kind; readonly at: EntryAddress }>;
type IndexChangeOf<Kind> = Extract<IndexChange, { readonly kind: Kind }>;
type ScoreChange = IndexChangeOf<"add-member" | "append-member" | "add-score">;

/** Groups consecutive changes that one statement can make, because no two of them are about one row. */
function groupChanges(changes: readonly BackendChange[]): readonly (readonly BackendChange[])[] {
  const groups: {
    readonly statement: string;
    readonly rows: Set<string>;
    readonly changes: BackendChange[];
  }[] = [];
  for (const change of changes) {
    const isEntry = "at" in change;
    const how = isEntry ? "expires" in change && change.expires === "kept" : tableOf(change.index);
    const statement = `${change.kind} ${String(how)}`;
    const row = isEntry
      ? `${change.at.space}\0${change.at.key}`
      : // The end of an index is read before members are appended.
        `${change.index}\0${"member" in change && change.kind !== "append-member" ? change.member : ""}`;
    const last = groups.at(-1);
    if (last?.statement === statement && !last.rows.has(row)) {
      last.rows.add(row);
      last.changes.push(change);
    } else groups.push({ statement, rows: new Set([row]), changes: [change] });
  }
  return groups.map((group) => group.changes);
}

/** The Unix ms of the database's clock, by which entries expire. */
export const nowMs = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/** Makes the writes of one schema. Other schemas of a database have other locks. */
function createStatements(schema: string, now: () => number) {
  const entries = `${quoteSchema(schema)}.entries`;
  const isAlive = `(expires IS NULL OR expires > ${nowMs})`;
  const toLock = (name: string, key: string): bigint =>
    createHash("sha1").update(`parley/${schema}\0${name}\0${key}`).digest().readBigInt64BE();
  const lockOfEntry = ({ space, key }: EntryAddress) => toLock(space, key);
  const lockOfMember = (index: string, member: string) => toLock(index, member);
  /** Counts may be checked, so they are locked like entries. Other members are not. */
  const locksOf = (change: BackendChange): bigint[] => {
    if ("at" in change) return [lockOfEntry(change.at)];
    return "member" in change && isCounted(change.index) ? [lockOfMember(change.index, change.member)] : [];
  };
  /** Times to live are relative, because they are counted by the database's clock. */
  const toTtl = (expires: number | "kept" | undefined): number | null =>
    typeof expires === "number" ? Math.round(Math.max(0, expires - now())) : null;
  const tableName = (index: string) => `${quoteSchema(schema)}.${tableOf(index)}`;

  /** The position of the first condition that is not met, or -1. */
  const findUnmet = async (client: ClientBase, conditions: readonly WriteCondition[]): Promise<number> => {
    if (conditions.length === 0) return -1;
    // A scalar subquery looks each key up in the index, whatever the statistics say.
    const { rows } = await client.query<{ is_same: boolean | null }>(
      `SELECT (SELECT must_be IS NULL OR value = must_be FROM ${entries} AS entry
         WHERE entry.space = wanted.space AND entry.key = wanted.key AND ${isAlive}) AS is_same
       FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS wanted (space, key, must_be, position)
       ORDER BY position`,
      [
        conditions.map(({ space }) => space),
        conditions.map(({ key }) => key),
        conditions.map(({ mustBe }) => mustBe ?? null),
      ],
    );
    return conditions.findIndex(({ mustBe, mustExist = false }, at) => {
      const isSame = rows[at]?.is_same ?? null;
      return mustBe === undefined ? (isSame !== null) !== mustExist : isSame !== true;
    });
  };

  const set = async (client: ClientBase, changes: readonly EntryChange<"set">[]): Promise<void> => {
    await client.query(
      `INSERT INTO ${entries} (space, key, value, expires)
       SELECT space, key, value, ${nowMs} + ttl
       FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS wanted (space, key, value, ttl)
       ON CONFLICT (space, key) DO UPDATE SET value = excluded.value, expires = excluded.expires`,
      [
        changes.map(({ at }) => at.space),
        changes.map(({ at }) => at.key),
        changes.map(({ value }) => value),
        changes.map(({ expires }) => toTtl(expires)),
      ],
    );
  };

  const changeEntry = async (
    client: ClientBase,
    change: EntryChange<"delete" | "keep" | "set">,
  ): Promise<void> => {
    const at = [change.at.space, change.at.key];
    const where = "WHERE space = $1 AND key = $2";
    if (change.kind === "delete") await client.query(`DELETE FROM ${entries} ${where}`, at);
    else if (change.kind === "keep")
      await client.query(`UPDATE ${entries} SET expires = ${nowMs} + $3::bigint ${where} AND ${isAlive}`, [
        ...at,
        toTtl(change.expires),
      ]);
    else await client.query(`UPDATE ${entries} SET value = $3 ${where}`, [...at, change.value]);
  };

  /** Adds members or raises scores, all of one kind and table. */
  const addToIndexes = async (client: ClientBase, changes: readonly ScoreChange[]): Promise<void> => {
    const [first] = changes;
    if (first === undefined) return;
    const table = tableName(first.index);
    const same = "was.ranking = wanted.ranking AND was.member = wanted.member";
    const [score, where, update] = {
      // It is looked up first, because ON CONFLICT locks the row, and writes, even where nothing changes.
      "add-member": [
        "score",
        `WHERE coalesce((SELECT was.score < wanted.score FROM ${table} AS was WHERE ${same}), true)`,
        "excluded.score WHERE excluded.score > old.score",
      ],
      "append-member": [
        `greatest(score, (SELECT was.score + 1 FROM ${table} AS was
           WHERE was.ranking = wanted.ranking ORDER BY was.score DESC LIMIT 1))`,
        "",
        "excluded.score",
      ],
      "add-score": ["score", "", "old.score + excluded.score"],
    }[first.kind];
    await client.query(
      `INSERT INTO ${table} AS old (ranking, member, score)
       SELECT ranking, member, ${score}
       FROM unnest($1::text[], $2::text[], $3::bigint[]) AS wanted (ranking, member, score)
       ${where} ON CONFLICT (ranking, member) DO UPDATE SET score = ${update}`,
      [
        changes.map(({ index }) => index),
        changes.map(({ member }) => member),
        changes.map((change) => change.score),
      ],
    );
  };

  const removeFromIndex = async (
    client: ClientBase,
    change: IndexChangeOf<"remove-member" | "trim-index">,
  ): Promise<void> => {
    const [column, value] =
      change.kind === "trim-index"
        ? ["score <= $2::bigint", Math.floor(change.maxScore)]
        : ["member = $2", change.member];
    await client.query(`DELETE FROM ${tableName(change.index)} WHERE ranking = $1 AND ${column}`, [
      change.index,
      value,
    ]);
  };

  const applyAll = async (client: ClientBase, changes: readonly BackendChange[]): Promise<void> => {
    for (const group of groupChanges(changes)) {
      const [first] = group;
      if (first?.kind === "set" && first.expires !== "kept") await set(client, group as EntryChange<"set">[]);
      else if (first !== undefined && "score" in first) await addToIndexes(client, group as ScoreChange[]);
      else
        for (const change of group)
          if ("at" in change) await changeEntry(client, change);
          else if (!("score" in change)) await removeFromIndex(client, change);
    }
  };

  const findPassed = async (
    client: ClientBase,
    limits: readonly ScoreLimit[],
  ): Promise<PassedLimit | undefined> => {
    for (const [position, { terms, max }] of limits.entries()) {
      const scores: number[] = [];
      for (const { index, member } of terms) {
        const { rows } = await client.query<{ score: string }>(
          `SELECT score FROM ${tableName(index)} WHERE ranking = $1 AND member = $2`,
          [index, member],
        );
        scores.push(Number(rows[0]?.score ?? 0));
      }
      const sum = terms.reduce((total, { weight = 1 }, at) => total + weight * (scores[at] ?? 0), 0);
      if (sum > max) return { position, scores };
    }
    return undefined;
  };

  return {
    apply(conditions: readonly WriteCondition[], changes: readonly BackendChange[]): Write<number> {
      return {
        locks: new Set([...conditions.map(lockOfEntry), ...changes.flatMap(locksOf)]),
        chars: changes.reduce((sum, change) => sum + ("value" in change ? change.value.length : 0), 0),
        async run(client) {
          const unmet = await findUnmet(client, conditions);
          if (unmet === -1) await applyAll(client, changes);
          return unmet;
        },
      };
    },
    count(limits: readonly ScoreLimit[], changes: readonly IndexChange[]): Write<PassedLimit | undefined> {
      const terms = limits.flatMap((limit) => limit.terms);
      return {
        locks: new Set([
          ...terms.map(({ index, member }) => lockOfMember(index, member)),
          ...changes.flatMap(locksOf),
        ]),
        chars: 0,
        async run(client) {
          const passed = await findPassed(client, limits);
          if (passed === undefined) await applyAll(client, changes);
          return passed;
        },
      };
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
