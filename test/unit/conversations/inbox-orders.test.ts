import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Backend } from "../../../src/conversations/backend.ts";
import type { BlobStore } from "../../../src/conversations/blobs.ts";
import { createConversationLog } from "../../../src/conversations/conversation-log.ts";
import { createInbox } from "../../../src/conversations/inbox.ts";
import { createKeyValueStore } from "../../../src/conversations/key-value.ts";
import { openSqliteBackend, type SqliteBackend } from "../../../src/conversations/sql/sqlite.ts";
import { isParleyError, ParleyError } from "../../../src/core/errors.ts";
import type { Attempt, Begun, Inbox, InboxRecord } from "../../../src/core/inbox.ts";
import { messageIds } from "../../../src/core/message-ids.ts";
import type { Conversations, StoredMessage } from "../../../src/core/storage.ts";
import { createKeyedQueue, type KeyedQueue } from "../../../src/support/queues.ts";
import { createRandom, type Random } from "../../chaos/random.ts";
import { silentLog } from "../../support/silent-log.ts";
import { eventOf, messageOf } from "../../support/store-samples.ts";
import { againOf, deletionOf, editTo, endOf, questionOf, stopOf, wordsOf } from "../../support/turn-steps.ts";
import { entryAt, indexes, type Head } from "../../../src/conversations/keys.ts";

// Two processes work on one conversation without a lease, so that each may begin what the other runs, while
// people write, edit, delete, stop and ask again. A seed decides which store operation comes next, which of
// them fails, and which is done although its response is lost. Then everything must have ended well.

const conversationId = "test:1";
const stories = 150;

/** Lets one store operation after the other go on, in the order of a seed. */
function createSteps(random: Random) {
  const waiting: (() => void)[] = [];
  return {
    wait: () => new Promise<void>((resolve) => waiting.push(resolve)),
    /** Goes on until `work` has ended. */
    async run(work: Promise<unknown>): Promise<void> {
      const state = { isOver: false };
      const over = work.finally(() => (state.isOver = true));
      // The work of a failed story is awaited below.
      over.catch(() => undefined);
      while (!state.isOver) {
        await setImmediate();
        if (waiting.length > 0) waiting.splice(random.between(0, waiting.length - 1), 1)[0]?.();
      }
      await over;
    },
  };
}

interface World {
  readonly random: Random;
  readonly backend: Backend;
  readonly wait: () => Promise<void>;
  /** Returns each value that is stored at this moment. */
  readonly dump: () => readonly string[];
  /** The platform's clock. */
  time: number;
  /** The share of operations that fail. */
  failing: number;
  /** Runs one write after the other. */
  readonly writes: KeyedQueue;
}

/**
 * Looks what a write makes of turns. What it opens again although its end was decided must be the last turn
 * of the conversation, unless somebody retries it. None may end otherwise than a person has decided.
 */
async function checkWrite({ backend }: World, changes: Parameters<Backend["apply"]>[1]): Promise<void> {
  const store = createKeyValueStore(backend);
  const head = await store.get<Head>("head", entryAt.head(conversationId).key);
  for (const change of changes) {
    if (change.kind !== "set" || change.at.space !== "inbox") continue;
    const { key } = change.at;
    const { value } = JSON.parse(change.value) as { readonly value: InboxRecord };
    const before = await store.get<InboxRecord>("inbox", key);
    const wasDecided = before?.state === "ending" || before?.state === "over";
    if (wasDecided && value.state === "open" && value.turn?.again?.kind !== "retry")
      expect(key, "what was opened is the last").toBe(head?.last);
    if (before?.state === "ending" && before.turn?.end?.isStored === false && value.state === "ending")
      expect(value.turn?.end?.kind, `the end of ${key} that a person decided`).toBe(before.turn.end.kind);
  }
}

/** A process's way to the store. An operation may fail before or after it is done. */
function openProcess(world: World) {
  const { backend, random, wait } = world;
  async function step<T>(operation: () => Promise<T>): Promise<T> {
    await wait();
    const fails = random.next() < world.failing;
    const isDone = !fails || random.next() < 0.5;
    const result = isDone ? await operation() : undefined;
    await wait();
    if (fails) throw new ParleyError("store-unavailable", "the response is lost");
    return result as T;
  }
  const shaky: Backend = {
    ...backend,
    read: (...given) => step(() => backend.read(...given)),
    apply: (...given) =>
      step(() =>
        world.writes.run("", async () => {
          // Nobody has made it if it is refused.
          const judged = await checkWrite(world, given[1]).then(
            () => undefined,
            (error: unknown) => error,
          );
          const failed = await backend.apply(...given);
          if (failed === -1 && judged !== undefined) throw judged;
          return failed;
        }),
      ),
    range: (...given) => step(() => backend.range(...given)),
  };
  const store = createKeyValueStore(shaky);
  const writers = createKeyedQueue();
  const inbox = createInbox({ store, log: silentLog, writers, eraseFiles: () => Promise.resolve() });
  return { ...inbox, ...createConversationLog({ store, writers, blobs: noBlobs }) };
}

/** Nothing here has files. */
const noBlobs = {} as BlobStore;

/** Tries until the store has responded, as a platform delivers again. */
async function untilKnown<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isParleyError(error) || error.code !== "store-unavailable") throw error;
    }
  }
}

/** What people did and what the processes wrote, for the checks. */
interface Seen {
  /** The words of each event by its last edit, or `undefined` if it was deleted. */
  readonly words: Map<string, string | undefined>;
  /** The time of the last edit of each event. */
  readonly editedAt: Map<string, number>;
  /** What was said to others. */
  readonly said: Set<string>;
  /** All words that must be nowhere. */
  readonly gone: Set<string>;
  /** The attempts whose answers were stored, by turn and in order. */
  readonly answers: Map<string, number[]>;
  /** The words of each event that an attempt was given, by both. */
  readonly asked: Map<string, string>;
  /** The attempts that a stop forbids to answer, by turn. */
  readonly stopped: Map<string, number>;
}

/** One attempt of a process at the next turn. It may be left at any write, as by a kill. */
async function runNext(inbox: Inbox, world: World, seen: Seen): Promise<void> {
  const { random } = world;
  const open = await inbox.openIn(conversationId);
  const next = open.find(({ turn }) => turn !== undefined) ?? open[0];
  if (next === undefined) return;
  if (next.state === "ending") {
    await showEnd(inbox, world, next);
    return;
  }
  const batch = next.turn === undefined ? open.filter(({ turn }) => turn === undefined).slice(0, 2) : [next];
  const isFirst = next.turn === undefined && random.next() < 0.6;
  const asked = isFirst ? { messages: batch.map(({ event }) => questionOf(event)) } : undefined;
  const begun = await inbox.begin(batch, asked);
  if (begun === undefined) return;
  await runAttempt(inbox, world, seen, begun);
}

/** Shows an end that is decided, by an attempt of its own. */
async function showEnd(inbox: Inbox, world: World, ending: InboxRecord): Promise<void> {
  const begun = await inbox.begin([ending]);
  if (begun === undefined) return;
  const { record, events } = begun;
  const { event, turn } = record;
  // Somebody may edit it meanwhile.
  for (let steps = world.random.between(0, 4); steps > 0; steps--) await world.wait();
  const shown: Attempt = { key: event.key, attempt: turn.attempt, conversationId };
  if (turn.end?.isStored === false) {
    const end = endOf(shown, undefined, {
      kind: turn.end.kind,
      // As the attempt has read them: they may have been edited since.
      questions: events.filter((one) => wordsOf(one) !== "").map((one) => questionOf(one)),
      toEdited: (question, edited) => (wordsOf(edited) === "" ? question : questionOf(edited)),
    });
    if (!(await inbox.write(shown, end)).isWritten) return;
  }
  await inbox.write(shown, { kind: "close" });
}

async function runAttempt(inbox: Inbox, world: World, seen: Seen, { record, events }: Begun): Promise<void> {
  const { random } = world;
  const { key } = record.event;
  const run: Attempt = { key, attempt: record.turn.attempt, conversationId };
  const unasked = events.filter((event) => wordsOf(event) !== "");
  if (unasked.length > 0) {
    const messages = unasked.map((event) => questionOf(event));
    if (!(await inbox.write(run, { kind: "asked", messages })).isWritten) return;
  }
  const log = messagesIn(world.dump());
  for (const event of events)
    seen.asked.set(`${event.key} ${run.attempt}`, textOf(log.get(messageIds.user(event.key))));
  if (random.next() < 0.5)
    await inbox.write(run, { kind: "address", address: { message: key }, shownAs: [key] });
  if (random.next() < 0.1) {
    await inbox.write(run, { kind: "give-back" });
    return;
  }
  // What is pressed while the write is under way may come before or after it.
  const forbidden = seen.stopped.get(key) ?? 0;
  const end = endOf(run, `answer ${run.attempt} to ${key}`, { earlier: random.pick(["version", "erased"]) });
  if (!(await inbox.write(run, end)).isWritten) return;
  seen.answers.set(key, [...(seen.answers.get(key) ?? []), run.attempt]);
  expect(run.attempt, "an attempt answered that was stopped before").toBeGreaterThan(forbidden);
  await inbox.write(run, { kind: "close" });
}

/** What one person does, each until it is known to be stored. */
async function act(inbox: Inbox, world: World, seen: Seen, person: string): Promise<void> {
  const { random } = world;
  for (let acts = random.between(2, 7); acts > 0; acts--) {
    const time = world.time++;
    const key = `${person}${random.between(1, 2)}`;
    const known = seen.words.get(key);
    if (!seen.words.has(key)) {
      const text = `words-${key}-0`;
      const isDeleted = random.next() < 0.1;
      if (isDeleted) {
        await untilKnown(() => inbox.change(deletionOf(key)));
        seen.gone.add(text);
      }
      seen.words.set(key, isDeleted ? undefined : text);
      await untilKnown(() => inbox.accept({ ...eventOf(key, conversationId), text }));
      continue;
    }
    switch (random.pick(["accept", "edit", "edit", "delete", "stop", "again"])) {
      case "accept":
        // A late delivery has the words from before.
        await untilKnown(() => inbox.accept({ ...eventOf(key, conversationId), text: `words-${key}-0` }));
        break;
      case "edit": {
        if (known === undefined) break;
        const text = `words-${key}-${time}`;
        // It may be delivered late. Then it is older than a stop, or than another edit.
        const at = random.next() < 0.4 ? time - random.between(1, 8) : time;
        const editedAt = seen.editedAt.get(key) ?? -Infinity;
        await untilKnown(() => inbox.change(editTo(key, text, at)));
        const isTaken = at > editedAt;
        seen.gone.add(isTaken ? known : text);
        if (isTaken) {
          seen.words.set(key, text);
          seen.editedAt.set(key, at);
        }
        break;
      }
      case "delete":
        await untilKnown(() => inbox.change(deletionOf(key)));
        if (known !== undefined) seen.gone.add(known);
        seen.words.set(key, undefined);
        break;
      case "stop": {
        const { result, turn } = await untilKnown(() => inbox.change(stopOf(key, time)));
        if (turn?.turn !== undefined && result === "done")
          seen.stopped.set(turn.event.key, turn.turn.attempt);
        // Whoever stops a message that waits takes it away.
        const [record] = await untilKnown(() => inbox.read([key]));
        if (record?.state !== "erased") break;
        if (known !== undefined) seen.gone.add(known);
        seen.words.set(key, undefined);
        break;
      }
      case "again":
        await untilKnown(() =>
          inbox.change(
            random.next() < 0.5 ? againOf(key) : againOf(key, { reason: "retry", isLastOnly: false }),
          ),
        );
        break;
    }
  }
}

/** Says some things to others, which are stored beside the turns. */
async function sayToOthers(log: Pick<Conversations, "append">, { random }: World, seen: Seen): Promise<void> {
  for (let left = random.between(1, 4); left > 0; left--) {
    const words = `said-${left}`;
    const { author: _author, ...message } = messageOf(words, words);
    await untilKnown(() => log.append(conversationId, { ...message, room: { isApp: false } }));
    seen.said.add(words);
  }
}

describe("everything that may happen to events, in random orders", () => {
  let folder: string;
  let file: string;
  let backend: SqliteBackend;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "parley-orders-"));
    file = join(folder, "parley.db");
    backend = openSqliteBackend(file);
  });
  afterEach(async () => {
    await backend.close();
    await rm(folder, { recursive: true });
  });

  /** Returns each stored value. */
  function dump(): readonly string[] {
    const database = new DatabaseSync(file);
    const rows = database.prepare("SELECT value FROM entries").all();
    database.close();
    return rows.map((row) => String(row["value"]));
  }

  it.each(Array.from({ length: stories }, (_, index) => index + 1))("ends well: seed %i", async (seed) => {
    const random = createRandom(seed);
    const steps = createSteps(random);
    const failing = random.pick([0, 0.05, 0.15]);
    const writes = createKeyedQueue();
    const world: World = { random, backend, wait: steps.wait, dump, time: 1, failing, writes };
    const seen: Seen = {
      words: new Map(),
      editedAt: new Map(),
      said: new Set(),
      gone: new Set(),
      answers: new Map(),
      asked: new Map(),
      stopped: new Map(),
    };
    const life = { isQuiet: false };
    /** It begins anew after some failures, as after a kill. */
    async function serve(): Promise<void> {
      let inbox = openProcess(world);
      while (!life.isQuiet) {
        try {
          await runNext(inbox, world, seen);
        } catch (error) {
          if (!isParleyError(error) || error.code !== "store-unavailable") throw error;
          if (random.next() < 0.5) inbox = openProcess(world);
        }
        await steps.wait();
      }
    }
    const people = ["a", "b", "c"].map((person) => act(openProcess(world), world, seen, person));
    const aside = sayToOthers(openProcess(world), world, seen);
    const served = Promise.all([serve(), serve()]);
    await steps.run(
      Promise.all([...people, aside]).finally(() => {
        life.isQuiet = true;
        world.failing = 0;
      }),
    );
    await steps.run(served);

    const inbox = openProcess(world);
    const settle = async () => {
      for (let rounds = 0; rounds < 30 && (await inbox.open()).length > 0; rounds++)
        await runNext(inbox, world, seen);
      return { open: await inbox.open(), openHere: await inbox.openIn(conversationId) };
    };
    let left: Awaited<ReturnType<typeof settle>> | undefined;
    await steps.run(settle().then((open) => (left = open)));
    expect(left, "open for ever").toEqual({ open: [], openHere: [] });
    for (const index of [indexes.openEvents, indexes.openEventsIn(conversationId)])
      expect(await backend.range(index, { order: "lowest-first", max: 9 })).toEqual([]);

    let records: readonly InboxRecord[] = [];
    await steps.run(inbox.read([...seen.words.keys()]).then((read) => (records = read)));
    const { key: headKey } = entryAt.head(conversationId);
    const head = await createKeyValueStore(backend).get<Head>("head", headKey);
    const stored = dump();
    expectWords(seen, records, stored);
    expectAnswers(seen, records, stored, head?.last);
  });
});

/** Words have one home, and those that were taken away have none. */
function expectWords(seen: Seen, records: readonly InboxRecord[], stored: readonly string[]): void {
  const countOf = (words: string) => stored.filter((value) => value.includes(`"${words}"`)).length;
  for (const words of seen.said) expect(countOf(words), `${words} has one home`).toBe(1);
  for (const words of seen.gone) expect(countOf(words), `${words} are left`).toBe(0);
  expect(records).toHaveLength(seen.words.size);
  for (const { event, state } of records) {
    const words = seen.words.get(event.key);
    expect(state, event.key).toMatch(words === undefined ? /^(erased|over)$/ : /^(over|joined)$/);
    if (words !== undefined) expect(countOf(words), `${words} have one home`).toBe(1);
  }
}

/** Each turn has the answer of its last attempt that was stored, which no earlier one has replaced. */
function expectAnswers(
  seen: Seen,
  records: readonly InboxRecord[],
  stored: readonly string[],
  last: string | undefined,
): void {
  for (const [key, attempts] of seen.answers)
    expect(attempts, `the attempts that answered ${key}`).toEqual(attempts.toSorted((a, b) => a - b));
  const messages = messagesIn(stored);
  for (const { event, turn, state } of records) {
    if (state !== "over" || turn?.answer === undefined) continue;
    expect(messages.get(messageIds.answer(event.key))?.attempt, event.key).toBe(turn.answer);
    if (turn.end?.kind !== "answer") continue;
    // What opened it last is answered.
    expect(turn.answer, event.key).toBeGreaterThan(turn.since);
    if (event.key !== last) continue;
    for (const key of turn.keys)
      expect(seen.asked.get(`${key} ${turn.answer}`), `what ${key} asks`).toBe(seen.words.get(key));
  }
}

/** The messages of the log by their ids. */
function messagesIn(stored: readonly string[]): ReadonlyMap<string, StoredMessage> {
  const values = stored.map((value) => (JSON.parse(value) as { readonly value?: StoredMessage }).value);
  return new Map(values.flatMap((value) => (Array.isArray(value?.parts) ? [[value.id, value]] : [])));
}

function textOf(message: StoredMessage | undefined): string {
  return (message?.parts ?? []).map((part) => ("text" in part ? part.text : "")).join("");
}
