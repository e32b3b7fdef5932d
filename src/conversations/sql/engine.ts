import {
  type Backend,
  type BackendChange,
  type IndexMember,
  type PassedLimit,
  type Resolves,
  type ScoreLimit,
  type WriteCondition,
} from "../backend.ts";
import { createStatements, type SqlDialect, type SqlTable, type Statement } from "./statements.ts";
import { type EntryAddress, countedPrefix } from "../keys.ts";

/** The values of a statement's parameters, or of the columns of a result. */
export type SqlRow = readonly unknown[];

/** A statement to run with each of the rows. A database may send them together. */
export interface Step {
  readonly statement: Statement;
  readonly rows: readonly SqlRow[];
}

/** What a step has found, in the order of its rows, and how many rows of the table it changed. */
export interface Outcome {
  readonly rows: readonly SqlRow[];
  readonly changed: number;
}

/** Work within a transaction. It yields its statements, because one database answers later than the other. */
export type Steps<T> = Generator<Step, T, Outcome>;

/** A write for a transaction. */
export interface SqlWrite<T = unknown> {
  readonly resolves: Resolves;
  /** What it checks, and the entries and counts that it changes. Members of other indexes are not checked. */
  readonly touches: () => readonly (EntryAddress | CountAddress)[];
  /** The number of characters of its contents. */
  readonly chars: () => number;
  readonly steps: () => Steps<T>;
}

interface CountAddress {
  readonly index: string;
  readonly member: string;
}

/** What a database does for the engine. Failures are ParleyErrors. */
export interface SqlHost {
  /** Reads within one moment of the database, without a transaction. */
  readonly read: (step: Step) => Promise<readonly SqlRow[]>;
  /** The values of entries, in the order of the addresses. */
  readonly readValues: (
    addresses: readonly EntryAddress[],
    statement: Statement,
  ) => Promise<(string | undefined)[]>;
  readonly write: <T>(write: SqlWrite<T>) => Promise<T>;
  /** The time that the database counts times to live from ({@link SqlDialect.since}), in Unix ms. */
  readonly sinceMs: () => number;
}

const sweepBatch = 500;
const pageSize = 500;
/** Scores before those of all members. */
const startOf = { "lowest-first": Number.MIN_SAFE_INTEGER, "highest-first": 2 ** 53 } as const;

/** The operations of a {@link Backend} on the tables of a database. */
export function createSqlEngine(dialect: SqlDialect, host: SqlHost) {
  const statements = createStatements(dialect, { sweepBatch, pageSize });
  const toTtl = (expires: number | undefined): number | null =>
    expires === undefined ? null : Math.round(expires - host.sinceMs());

  /** Makes a step of each run of changes with one statement, of which no two are about one row. */
  function* applyAll(changes: readonly BackendChange[]): Steps<void> {
    let [statement, rows]: [Statement | undefined, SqlRow[]] = [undefined, []];
    let names = new Set<string>();
    for (const change of changes) {
      const [next, row] = toRow(change);
      const name = nameOfRow(change);
      if (statement !== undefined && (statement !== next || names.has(name))) {
        yield { statement, rows };
        [rows, names] = [[], new Set()];
      }
      statement = next;
      rows.push(row);
      names.add(name);
    }
    if (statement !== undefined) yield { statement, rows };
  }

  const toRow = (change: BackendChange): readonly [Statement, SqlRow] => {
    if ("at" in change) {
      const at = [change.at.space, change.at.key];
      if (change.kind === "delete") return [statements.delete, at];
      if (change.kind === "keep") return [statements.keep, [...at, toTtl(change.expires)]];
      return change.expires === "kept"
        ? [statements.replace, [...at, change.value]]
        : [statements.set, [...at, change.value, toTtl(change.expires)]];
    }
    const statement = statements.ofIndexes[tableOf(change.index)][change.kind];
    if (change.kind === "trim-index") return [statement, [change.index, Math.floor(change.maxScore)]];
    if (change.kind === "remove-member") return [statement, [change.index, change.member]];
    return [statement, [change.index, change.member, change.score]];
  };

  /** The position of the first condition that is not met, or -1. */
  function* findUnmet(conditions: readonly WriteCondition[]): Steps<number> {
    if (conditions.length === 0) return -1;
    const asked = conditions.map(({ space, key, mustBe = null }) => [space, key, mustBe]);
    const { rows } = yield { statement: statements.compare, rows: asked };
    return conditions.findIndex(({ mustBe, mustExist = false }, at) => {
      const [isSame] = rows[at] ?? [];
      return mustBe === undefined ? (isSame !== null) !== mustExist : isSame === null || Number(isSame) === 0;
    });
  }

  /** The first limit whose sum is too high. */
  function* findPassed(limits: readonly ScoreLimit[]): Steps<PassedLimit | undefined> {
    for (const [position, { terms, max }] of limits.entries()) {
      const scores: number[] = [];
      for (const { index, member } of terms) {
        const { rows } = yield {
          statement: statements.ofIndexes[tableOf(index)].score,
          rows: [[index, member]],
        };
        scores.push(Number(rows[0]?.[0] ?? 0));
      }
      const sum = terms.reduce((total, { weight = 1 }, at) => total + weight * (scores[at] ?? 0), 0);
      if (sum > max) return { position, scores };
    }
    return undefined;
  }

  const ofChanges = (changes: readonly BackendChange[]) =>
    changes.flatMap((change): (EntryAddress | CountAddress)[] => {
      if ("at" in change) return [change.at];
      // Counts may be checked, so they are locked like entries.
      return "member" in change && tableOf(change.index) === "counts" ? [change] : [];
    });

  const apply: Backend["apply"] = (conditions, changes, resolves = "durable") =>
    host.write<number>({
      resolves,
      touches: () => [...conditions, ...ofChanges(changes)],
      chars: () => changes.reduce((sum, change) => sum + ("value" in change ? change.value.length : 0), 0),
      *steps() {
        const unmet = yield* findUnmet(conditions);
        if (unmet === -1) yield* applyAll(changes);
        return unmet;
      },
    });

  const sweepSome = (before: number) =>
    host.write<number>({
      resolves: "soon",
      touches: () => [],
      chars: () => 0,
      *steps() {
        return (yield { statement: statements.sweep, rows: [[before]] }).changed;
      },
    });

  return {
    read: (addresses, what) =>
      host.readValues(addresses, what === "presence" ? statements.presence : statements.read),
    apply,
    count: (limits, changes) =>
      host.write<PassedLimit | undefined>({
        resolves: "soon",
        touches: () => [...limits.flatMap(({ terms }) => terms), ...ofChanges(changes)],
        chars: () => 0,
        *steps() {
          const passed = yield* findPassed(limits);
          if (passed === undefined) yield* applyAll(changes);
          return passed;
        },
      }),
    async range(name, { order, after = { score: startOf[order], member: "" }, max }) {
      const statement = statements.ofIndexes[tableOf(name)][order];
      const rows = await host.read({ statement, rows: [[name, after.score, after.member, max]] });
      return rows.map(([member, score]): IndexMember => ({ member: String(member), score: Number(score) }));
    },
    async *scan(what) {
      for (let last = ""; ;) {
        const rows = await host.read(
          what === "indexes"
            ? { statement: statements.names, rows: [[last]] }
            : { statement: statements.scan, rows: [[what, last]] },
        );
        for (const [key, ttl] of rows)
          yield {
            key: String(key),
            expires: ttl === null || ttl === undefined ? undefined : host.sinceMs() + Number(ttl),
          };
        if (rows.length < pageSize) return;
        last = String(rows.at(-1)?.[0]);
      }
    },
    /** Removes what has expired until a time (Unix ms), and returns how many entries. */
    async sweep(before: number) {
      // Each batch joins its own transaction, so that other work runs between the batches of a long sweep.
      for (let total = 0; ;) {
        const removed = await sweepSome(before);
        total += removed;
        if (removed < sweepBatch) return total;
      }
    },
  } satisfies Partial<Backend> & { sweep(before: number): Promise<number> };
}

/** The table of an index. Indexes that are seldom read in order are not kept in order. */
function tableOf(index: string): Exclude<SqlTable, "entries"> {
  return index.startsWith(countedPrefix) ? "counts" : "rankings";
}

/** The end of an index is read before members are appended, so two of them are about one row. */
function nameOfRow(change: BackendChange): string {
  if ("at" in change) return `${change.at.space}\0${change.at.key}`;
  return `${change.index}\0${"member" in change && change.kind !== "append-member" ? change.member : ""}`;
}
