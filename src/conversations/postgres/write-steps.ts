import { createHash } from "node:crypto";
import {
  type BackendChange,
  countedPrefix,
  type EntryAddress,
  type IndexChange,
  type ScoreLimit,
  type WriteCondition,
} from "../backend.ts";
import { toStored } from "./stored-name.ts";

/** A row of the function that writes: kind, space or index, key or member, content, amount, original. */
export type WriteStep = readonly [
  kind: string,
  name: string,
  key: string,
  content: string | null,
  amount: number | null,
  original: string | null,
];

/** An atomic write as the function in the database takes it. */
export interface EncodedWrite {
  readonly steps: readonly WriteStep[];
  /** Numbers of the advisory locks of what is checked or changed. */
  readonly locks: ReadonlySet<bigint>;
  /** Of its contents. */
  readonly chars: number;
}

/** Encodes the writes of one schema: others in the same database have other locks. */
export interface WriteEncoder {
  /** `Backend.apply`. `now`: Unix ms; times to live are relative, since the database's clock ends them. */
  apply(conditions: readonly WriteCondition[], changes: readonly BackendChange[], now: number): EncodedWrite;
  /** `Backend.count`. */
  count(limits: readonly ScoreLimit[], changes: readonly IndexChange[]): EncodedWrite;
  /** `Backend.replace`. */
  replace(at: EntryAddress, old: string, value: string): EncodedWrite;
  /** The lock that every batch shares, and that a batch with too many locks takes alone. */
  readonly commonLock: bigint;
}

const end: WriteStep = ["end", "", "", null, null, null];

/** @see {@link WriteEncoder} */
export function createWriteEncoder(schema: string): WriteEncoder {
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
    commonLock: toLock(""),
    apply(conditions, changes, now) {
      const builder = start();
      for (const [position, at] of conditions.entries()) addCondition(builder, at, position);
      for (const change of changes) addChange(builder, change, now);
      return builder.end();
    },
    count(limits, changes) {
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
    replace({ space, key }, old, value) {
      const builder = start();
      const { name } = toStored(key);
      builder.lock(space, name);
      builder.add(["replace", space, name, value, null, old]);
      return builder.end();
    },
  };
}

/** The table of an index: those that are seldom read in order are not kept in order. */
export function tableOf(index: string): "rankings" | "counts" {
  return isCounted(index) ? "counts" : "rankings";
}

function isCounted(index: string): boolean {
  return index.startsWith(countedPrefix);
}

function toTtl(expires: number | undefined, now: number): number | null {
  return expires === undefined ? null : Math.max(0, expires - now);
}
