import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createInbox } from "../../../src/conversations/inbox.ts";
import {
  createKeyValueStore,
  type Change,
  type KeyValueStore,
} from "../../../src/conversations/key-value.ts";
import { createLogPlanner } from "../../../src/conversations/log-plan.ts";
import { migrateInbox } from "../../../src/conversations/migrate-inbox.ts";
import { openSqliteBackend, type SqliteBackend } from "../../../src/conversations/sql/sqlite.ts";
import { ParleyError } from "../../../src/core/errors.ts";
import type { IncomingEvent, Json } from "../../../src/core/events.ts";
import { messageIds } from "../../../src/core/message-ids.ts";
import type { StoredMessage } from "../../../src/core/storage.ts";
import { createKeyedQueue } from "../../../src/support/queues.ts";
import { silentLog } from "../../support/silent-log.ts";
import { eventOf } from "../../support/store-samples.ts";
import { answerOf, callOf, questionOf } from "../../support/turn-steps.ts";
import { entryAt, indexes, type Head } from "../../../src/conversations/keys.ts";

const acceptedAt = 1_000_000;
const conversationOf = (key: string): string => `test:of-${key}`;
const event = (key: string, conversationId = conversationOf(key)) => ({
  ...eventOf(key, conversationId),
  text: `words of ${key}`,
  sentAt: acceptedAt,
});

/** A record of version 4, and what the store has with it. */
interface Earlier {
  readonly event: IncomingEvent;
  readonly record: Readonly<Record<string, unknown>>;
  /** The progress of its turn. */
  readonly turn?: { readonly keys: readonly string[]; readonly attempts: number };
  readonly log?: readonly StoredMessage[];
  readonly isListed?: boolean;
}

function earlier(key: string, state: string, more: Partial<Earlier> = {}): Earlier {
  const { record, ...rest } = more;
  return { event: event(key), isListed: state !== "answered", ...rest, record: { state, ...record } };
}

const begun = (key: string, attempts = 1) => ({ keys: [key], attempts });
const asked = (key: string, id?: string) => questionOf(event(key, id));
const talk = (key: string) => [asked(key), answerOf(key, 1, `answer to ${key}`)];
const first = conversationOf("first");

/** One of each kind that a process of version 4 could leave behind. */
const records: readonly Earlier[] = [
  earlier("waiting", "open"),
  earlier("running", "open", {
    record: { attempts: 2 },
    turn: begun("running", 2),
    log: [asked("running")],
  }),
  earlier("first", "answered", {
    turn: { keys: ["first", "second"], attempts: 1 },
    log: [asked("first"), asked("second", first), answerOf("first", 1, "answer to both")],
  }),
  earlier("second", "answered", { event: event("second", first) }),
  earlier("stopped", "stopping", {
    record: { stoppedBy: "Ada", stoppedAnswer: { message: answerOf("stopped", 1, "half an") } },
    turn: begun("stopped"),
    log: [asked("stopped")],
  }),
  earlier("withdrawn", "withdrawn", {
    event: { ...event("withdrawn"), text: "" },
    turn: begun("withdrawn"),
  }),
  earlier("gone", "withdrawn", {
    event: { ...event("gone"), text: "" },
    turn: { keys: ["gone", "left"], attempts: 1 },
    log: [asked("left", conversationOf("gone"))],
  }),
  earlier("left", "open", { event: event("left", conversationOf("gone")) }),
  earlier("stays", "open", {
    record: { attempts: 1 },
    turn: { keys: ["stays", "leaves"], attempts: 1 },
    log: [asked("stays")],
  }),
  earlier("leaves", "withdrawn", { event: { ...event("leaves", conversationOf("stays")), text: "" } }),
  earlier("again", "open", {
    record: { attempts: 1, redo: { kind: "regenerate", model: "m", since: 1, requestedAt: 2_000_000 } },
    turn: begun("again"),
    log: talk("again"),
  }),
  earlier("edited", "edited", { record: { attempts: 1 }, turn: begun("edited"), log: talk("edited") }),
  earlier("call", "answered", {
    event: { ...callOf("call", conversationOf("call")), sentAt: acceptedAt },
    turn: begun("call"),
  }),
  earlier("erased", "erased", { event: { ...event("erased", ""), text: "" }, isListed: false }),
];

/** Writes what version 4 has stored. */
async function fill(store: KeyValueStore): Promise<void> {
  const planLog = createLogPlanner(store, undefined);
  for (const { event: its, record, turn, log = [], isListed } of records) {
    const { key, conversationId, address } = its;
    const position = records.findIndex((one) => one.event.key === key);
    const listed = isListed === true ? [indexes.openEvents, indexes.openEventsIn(conversationId)] : [];
    const whole: unknown = { event: its, acceptedAt, version: 1, ...record };
    const progress: unknown = { ...turn, address };
    await store.write([
      { kind: "set", at: entryAt.event(key), value: whole as Json },
      ...(turn === undefined
        ? []
        : [{ kind: "set", at: { space: "turn", key }, value: progress as Json } satisfies Change]),
      ...listed.map((index) => ({ kind: "add-member", index, member: key, score: position }) as const),
      { kind: "add-member", index: `answered-events-in:${conversationId}`, member: key, score: position },
    ]);
    const plan = await planLog(
      conversationId,
      log.map((message) => ({ message: { ...message, createdAt: acceptedAt } })),
      { conflicts: 0 },
    );
    await store.writeIf(plan.conditions, plan.changes);
  }
}

/** Fails at one of the writes, before or after it is done. */
function failingAt(store: KeyValueStore, at: number, isDone: boolean): KeyValueStore {
  let writes = 0;
  const step = async <T>(write: () => Promise<T>): Promise<T> => {
    if (++writes !== at) return await write();
    if (isDone) await write();
    throw new ParleyError("store-unavailable", "killed");
  };
  return {
    ...store,
    write: (...given) => step(() => store.write(...given)),
    writeIf: (...given) => step(() => store.writeIf(...given)),
  };
}

describe("the inbox of a store of version 4", () => {
  let folder: string;
  let backend: SqliteBackend;
  let store: KeyValueStore;
  const open = async () => {
    folder = await mkdtemp(join(tmpdir(), "parley-migration-"));
    backend = openSqliteBackend(join(folder, "parley.db"));
    store = createKeyValueStore(backend);
    await fill(store);
  };
  const close = async () => {
    await backend.close();
    await rm(folder, { recursive: true });
  };
  beforeEach(open);
  afterEach(close);

  const migrate = (of: KeyValueStore = store) => migrateInbox(of, { log: silentLog });

  /** Everything that is stored, apart from the time at which it expires. */
  async function stored(): Promise<unknown> {
    const found: [string, unknown][] = [];
    for (const space of ["inbox", "turn", "slot", "id", "head", "meta"] as const)
      for await (const { key } of backend.scan(space))
        found.push([`${space} ${key}`, await store.get<Json>(space, key)]);
    for await (const { key: index } of backend.scan("indexes")) {
      const members = await backend.range(index, { order: "lowest-first", max: 99 });
      if (members.length > 0) found.push([`index ${index}`, members.map(({ member }) => member).toSorted()]);
    }
    return Object.fromEntries(found.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  it("has the state of each turn, in which words have one home", async () => {
    await migrate();
    const inbox = createInbox({
      store,
      log: silentLog,
      writers: createKeyedQueue(),
      eraseFiles: () => Promise.resolve(),
    });
    const read = await inbox.read(records.map(({ event: { key } }) => key));
    const seen = read.map(({ event: { key, ...its }, state, in: turn, isInLog, turn: own }) => [
      key,
      state,
      turn ?? own?.keys.join(" ") ?? "",
      own === undefined ? "" : `${own.attempt}, ${own.since} before`,
      own?.end === undefined ? (own?.again?.kind ?? "") : `${own.end.kind}, stored: ${own.end.isStored}`,
      isInLog === true,
      its.kind === "message" ? its.text : "",
    ]);
    expect(seen).toEqual([
      ["waiting", "open", "", "", "", false, "words of waiting"],
      ["running", "open", "running", "2, 0 before", "", true, ""],
      ["first", "over", "first second", "1, 0 before", "", true, ""],
      ["second", "joined", "first", "", "", true, ""],
      ["stopped", "ending", "stopped", "1, 0 before", "stopped, stored: true", true, ""],
      ["withdrawn", "ending", "", "1, 0 before", "withdrawn, stored: false", false, ""],
      ["gone", "open", "left", "1, 1 before", "edit", true, ""],
      ["left", "joined", "gone", "", "", true, ""],
      ["stays", "open", "stays", "1, 0 before", "", true, ""],
      ["leaves", "erased", "", "", "", false, ""],
      ["again", "open", "again", "1, 1 before", "regenerate", true, ""],
      ["edited", "open", "edited", "1, 1 before", "edit", false, "words of edited"],
      ["call", "over", "call", "1, 0 before", "", true, ""],
      ["erased", "erased", "", "", "", false, ""],
    ]);
    const openNow = (await inbox.open()).map(({ event: { key } }) => key);
    const listed = ["again", "edited", "gone", "running", "stays", "stopped", "waiting", "withdrawn"];
    expect(openNow.toSorted()).toEqual(listed);
    const half = await store.get<StoredMessage>("slot", entryAt.slot(conversationOf("stopped"), 1).key);
    expect(half?.id).toBe(messageIds.answer("stopped"));
    const headAt = entryAt.head(first);
    expect((await store.get<Head>(headAt.space, headAt.key))?.last).toBe("first");
    expect(Object.keys((await stored()) as object).join(" ")).not.toMatch(/turn |answered-events/);
  });

  it("is the same after a kill at each of the writes", async () => {
    await migrate();
    const whole = await stored();
    let at = 0;
    for (let isKilled = true; isKilled;) {
      at++;
      for (const isDone of [false, true]) {
        await close();
        await open();
        isKilled = await migrate(failingAt(store, at, isDone)).then(
          () => false,
          () => true,
        );
        await migrate();
        expect(await stored(), `killed at write ${at}, ${isDone ? "done" : "not done"}`).toEqual(whole);
      }
    }
    expect(at).toBeGreaterThan(records.length);
  });
});
