/** The tables with entries, and with sorted indexes. `counts` has those that are seldom read in order. */
export type SqlTable = "entries" | "rankings" | "counts";
type ColumnType = "text" | "integer";

/** What differs between two databases in the statements. */
export interface SqlDialect {
  /** The names of the tables, with their schema. */
  readonly tables: Readonly<Record<SqlTable, string>>;
  /** The column of an entry's space, which SQLite's tables call a namespace. */
  readonly space: string;
  /** The parameter at a position from 1 on. */
  readonly parameter: (position: number, type: ColumnType) => string;
  /** The rows with these columns, as the table `wanted`: all of them, or the one of this run. */
  readonly rows: (columns: Readonly<Record<string, ColumnType>>) => string;
  /** All addresses of a read in their order, as the table `wanted` with the columns `space` and `key`. */
  readonly addresses: string;
  /** Ends a selection from all rows, so that it has their order. */
  readonly inOrder: string;
  /** The time by which entries expire, in Unix ms. */
  readonly now: string;
  /** The time from which times to live are counted, in Unix ms. */
  readonly since: string;
  /** The greatest of several values. */
  readonly greatest: string;
  /** Removes at most so many entries that expired until the first parameter (Unix ms). */
  readonly sweep: (max: number) => string;
  /** Types of columns. Text is compared by its bytes. */
  readonly text: string;
  readonly integer: string;
  /** Ends the creation of each table. */
  readonly storage: Readonly<Record<SqlTable, string>>;
  /** The columns of the index by which members are read in order. */
  readonly byScore: string;
}

/** Creates the tables that do not exist. Stores of one version have the same ones. */
export function createTables({ tables, space, text, integer, storage, byScore }: SqlDialect): string {
  const members = (name: "rankings" | "counts") => `
    CREATE TABLE IF NOT EXISTS ${tables[name]} (
      ranking ${text} NOT NULL,
      member ${text} NOT NULL,
      score ${integer} NOT NULL,
      PRIMARY KEY (ranking, member)
    ) ${storage[name]};`;
  return `
    CREATE TABLE IF NOT EXISTS ${tables.entries} (
      ${space} ${text} NOT NULL,
      key ${text} NOT NULL,
      value TEXT NOT NULL,
      expires ${integer},
      PRIMARY KEY (${space}, key)
    ) ${storage.entries};
    CREATE INDEX IF NOT EXISTS entries_by_expiry ON ${tables.entries} (expires) WHERE expires IS NOT NULL;
    ${members("rankings")}
    CREATE INDEX IF NOT EXISTS rankings_by_score ON ${tables.rankings} (${byScore});
    ${members("counts")}`;
}

/** A statement, and how it is run. */
export interface Statement {
  readonly text: string;
  /** Whether a run takes all rows, where the database can. Otherwise it takes one. */
  readonly takes: "rows" | "row";
  /** Whether it changes rows and returns none. */
  readonly isChange: boolean;
}

const toSelection = (text: string, takes: Statement["takes"] = "row"): Statement => ({
  text,
  takes,
  isChange: false,
});
const toChange = (text: string, takes: Statement["takes"] = "row"): Statement => ({
  text,
  takes,
  isChange: true,
});

/** All statements of the engine, once for each database. Their parameters are in the order of the columns. */
export function createStatements(
  dialect: SqlDialect,
  { sweepBatch, pageSize }: { readonly sweepBatch: number; readonly pageSize: number },
) {
  const { tables, space, rows, addresses, inOrder, now, since } = dialect;
  const { entries } = tables;
  const text = (position: number) => dialect.parameter(position, "text");
  const integer = (position: number) => dialect.parameter(position, "integer");
  const isAlive = `(expires IS NULL OR expires > ${now})`;
  const address = { space: "text", key: "text" } as const;
  // A scalar subquery looks each key up in the index, whatever the statistics of the database say.
  const ofWanted = (column: string) =>
    `(SELECT ${column} FROM ${entries} AS entry
      WHERE entry.${space} = wanted.space AND entry.key = wanted.key AND ${isAlive})`;
  const isAt = `WHERE ${space} = ${text(1)} AND key = ${text(2)}`;

  const ofTable = (name: "rankings" | "counts") => {
    const table = tables[name];
    const is = (of: string) => `${of}.ranking = wanted.ranking`;
    const isSame = `${is("was")} AND was.member = wanted.member`;
    const add = (score: string, where: string, change: string) =>
      toChange(
        `INSERT INTO ${table} AS old (ranking, member, score)
         SELECT ranking, member, ${score} FROM ${rows({ ranking: "text", member: "text", score: "integer" })}
         WHERE ${where} ON CONFLICT (ranking, member) DO UPDATE SET score = ${change}`,
        "rows",
      );
    const page = (compare: string, direction: string) =>
      // If the limit is only a parameter, SQLite compiles the statement again each time it is bound.
      toSelection(
        `SELECT member, score FROM ${table}
         WHERE ranking = ${text(1)} AND (score, member) ${compare} (${integer(2)}, ${text(3)})
         ORDER BY score ${direction}, member ${direction} LIMIT ${integer(4)} + 0`,
      );
    return {
      // It is looked up first, because a conflict locks the row, and writes, even where nothing changes.
      "add-member": add(
        "score",
        `coalesce((SELECT was.score < wanted.score FROM ${table} AS was WHERE ${isSame}), true)`,
        "excluded.score WHERE excluded.score > old.score",
      ),
      "append-member": add(
        `${dialect.greatest}(score, coalesce((SELECT was.score + 1 FROM ${table} AS was
           WHERE ${is("was")} ORDER BY was.score DESC LIMIT 1), score))`,
        "true",
        "excluded.score",
      ),
      "add-score": add("score", "true", "old.score + excluded.score"),
      "remove-member": toChange(`DELETE FROM ${table} WHERE ranking = ${text(1)} AND member = ${text(2)}`),
      "trim-index": toChange(`DELETE FROM ${table} WHERE ranking = ${text(1)} AND score <= ${integer(2)}`),
      score: toSelection(`SELECT score FROM ${table} WHERE ranking = ${text(1)} AND member = ${text(2)}`),
      "highest-first": page("<", "DESC"),
      "lowest-first": page(">", "ASC"),
    };
  };

  return {
    read: toSelection(`SELECT ${ofWanted("value")} FROM ${addresses} ${inOrder}`, "rows"),
    presence: toSelection(`SELECT ${ofWanted("''")} FROM ${addresses} ${inOrder}`, "rows"),
    /** Whether each entry has a value: null without an entry. */
    compare: toSelection(
      `SELECT ${ofWanted("must_be IS NULL OR value = must_be")}
       FROM ${rows({ ...address, must_be: "text" })} ${inOrder}`,
      "rows",
    ),
    set: toChange(
      `INSERT INTO ${entries} (${space}, key, value, expires)
       SELECT space, key, value, ${since} + ttl
       FROM ${rows({ ...address, value: "text", ttl: "integer" })}
       WHERE true ON CONFLICT (${space}, key) DO UPDATE SET value = excluded.value, expires = excluded.expires`,
      "rows",
    ),
    replace: toChange(`UPDATE ${entries} SET value = ${text(3)} ${isAt}`),
    keep: toChange(`UPDATE ${entries} SET expires = ${since} + ${integer(3)} ${isAt} AND ${isAlive}`),
    delete: toChange(`DELETE FROM ${entries} ${isAt}`),
    scan: toSelection(
      `SELECT key, expires - ${since} FROM ${entries}
       WHERE ${space} = ${text(1)} AND key > ${text(2)} AND ${isAlive} ORDER BY key LIMIT ${pageSize}`,
    ),
    names: toSelection(
      `SELECT ranking FROM (SELECT ranking FROM ${tables.rankings} WHERE ranking > ${text(1)}
         UNION SELECT ranking FROM ${tables.counts} WHERE ranking > ${text(1)}) AS names
       ORDER BY ranking LIMIT ${pageSize}`,
    ),
    sweep: toChange(dialect.sweep(sweepBatch)),
    ofIndexes: { rankings: ofTable("rankings"), counts: ofTable("counts") },
  };
}
