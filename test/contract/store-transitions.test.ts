import { beforeEach, expect, it } from "vitest";
import { transitions } from "../../src/conversations/inbox-record.ts";
import type { Store } from "../../src/conversations/open-store.ts";
import type { EventState, Inbox } from "../../src/core/inbox.ts";
import { eventOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";

/** What is known of an event. `absent` is one that nobody has accepted. */
interface Known {
  readonly state: EventState | "absent";
  /** Whether a turn that begins with it has been claimed. */
  readonly hasTurn: boolean;
}

interface Step {
  readonly run: (inbox: Inbox, key: string) => Promise<unknown>;
  /** What the step makes of an event. */
  readonly after: (known: Known) => Known;
}

const turnOf = (key: string, attempts: number) => ({ keys: [key], address: { message: "7" }, attempts });
const conversationOf = (key: string): string => `test:${key}`;
const newEvent = (key: string) => eventOf(key, conversationOf(key));

/** Makes a step's model of its row in the table of the sources. */
function row(name: keyof typeof transitions): (known: Known) => EventState | undefined {
  const states: Partial<Record<Known["state"], EventState>> = transitions[name];
  return ({ state }) => states[state];
}

/** A step that changes the state as its row says, and nothing where it says nothing. */
const byRow =
  (name: keyof typeof transitions): Step["after"] =>
  (known) => ({ ...known, state: row(name)(known) ?? known.state });

const isGone = ({ state }: Known): boolean => state === "withdrawn" || state === "erased";

const steps: Readonly<Record<string, Step>> = {
  accept: {
    run: (inbox, key) => inbox.accept(newEvent(key)),
    after: (known) => (known.state === "absent" ? { ...known, state: "open" } : known),
  },
  refuse: {
    run: (inbox, key) => inbox.refuse(key),
    after: (known) => (known.state === "absent" ? { ...known, state: "erased" } : known),
  },
  claimTurn: {
    run: (inbox, key) => inbox.claimTurn(turnOf(key, 2)),
    after: (known) =>
      known.state === "absent" || row("claim")(known) !== undefined ? { ...known, hasTurn: true } : known,
  },
  keepHeard: {
    run: (inbox, key) => inbox.keepHeard(key, { hash: "a".repeat(64) }),
    after: byRow("hear"),
  },
  stop: { run: (inbox, key) => inbox.stop([key], "Ada"), after: byRow("stop") },
  edit: {
    run: (inbox, key) => inbox.edit({ ...newEvent(key), text: "new words" }, { at: 9000, attemptsBefore: 0 }),
    after: byRow("edit"),
  },
  reopen: { run: (inbox, key) => inbox.reopen(key, "retry"), after: byRow("reopen") },
  "reopen, replacing the answer": {
    run: (inbox, key) => inbox.reopen(key, "regenerate", { attempts: 1 }),
    after(known) {
      const state = row("replace")(known);
      return state === undefined ? known : { state, hasTurn: true };
    },
  },
  close: {
    run: (inbox, key) => inbox.close([key]),
    after: (known) => ({ ...byRow("close")(known), hasTurn: known.hasTurn && !isGone(known) }),
  },
  withdraw: {
    run: (inbox, key) => inbox.withdraw([key]),
    after: () => ({ state: "erased", hasTurn: false }),
  },
  "withdraw, keeping the reply": {
    run: (inbox, key) => inbox.withdraw([key], { keepsReplies: true }),
    after(known) {
      const state = known.hasTurn ? row("withdrawContent")(known) : undefined;
      return state === undefined ? { state: "erased", hasTurn: false } : { ...known, state };
    },
  },
};

/** Each state, and what leads to it. */
const states: Readonly<Record<string, Known & { readonly prepare: Step["run"] }>> = {
  absent: { state: "absent", hasTurn: false, prepare: async () => undefined },
  open: { state: "open", hasTurn: false, prepare: (inbox, key) => inbox.accept(newEvent(key)) },
  begun: { state: "open", hasTurn: true, prepare: begin },
  stopping: { state: "stopping", hasTurn: true, prepare: then(begin, (inbox, key) => inbox.stop([key], "")) },
  withdrawn: {
    state: "withdrawn",
    hasTurn: true,
    prepare: then(begin, (inbox, key) => inbox.withdraw([key], { keepsReplies: true })),
  },
  answered: { state: "answered", hasTurn: true, prepare: then(begin, (inbox, key) => inbox.close([key])) },
  edited: {
    state: "edited",
    hasTurn: true,
    async prepare(inbox, key) {
      await begin(inbox, key);
      await inbox.close([key]);
      await inbox.edit({ ...newEvent(key), text: "words" }, { at: 5000, attemptsBefore: 1 });
    },
  },
  erased: { state: "erased", hasTurn: false, prepare: then(begin, (inbox, key) => inbox.withdraw([key])) },
};

async function begin(inbox: Inbox, key: string): Promise<void> {
  await inbox.accept(newEvent(key));
  await inbox.claimTurn(turnOf(key, 1));
}

function then(first: typeof begin, next: Step["run"]): typeof begin {
  return async (inbox, key) => {
    await first(inbox, key);
    await next(inbox, key);
  };
}

async function stateOf(inbox: Inbox, key: string): Promise<Known["state"]> {
  const [entry = (await inbox.lookUp([key]))[0]] = await inbox.listOpenIn(conversationOf(key));
  if (entry !== undefined) return entry.state;
  return (await inbox.knows(key)) ? "erased" : "absent";
}

/** Only one of two processes gets these, and what it gets. */
const exclusive: Readonly<Record<string, (result: unknown) => boolean>> = {
  accept: (result) => result === "accepted",
  refuse: (result) => result === "refused",
  claimTurn: (result) => result === true,
  "reopen, replacing the answer": (result) => typeof result === "object",
};

describeStores("what an accepted event becomes", (current, kind) => {
  let one: Store;
  let other: Store;
  beforeEach(async () => {
    one = await current().open();
    // SQLite belongs to one process, which may do two things at once as well.
    other = kind === "sqlite" ? one : await current().open();
  });

  it.each(Object.keys(states))("by each step: %s", async (name) => {
    const { prepare, ...known } = states[name]!;
    for (const [title, step] of Object.entries(steps)) {
      const key = `${name}, ${title}`;
      await prepare(one.inbox, key);
      expect(await stateOf(one.inbox, key), `before ${title}`).toBe(known.state);
      await step.run(one.inbox, key);
      expect(await stateOf(one.inbox, key), title).toBe(step.after(known).state);
    }
  });

  it.each(Object.keys(states))("by each two steps at once, in one order or the other: %s", async (name) => {
    const { prepare, ...known } = states[name]!;
    for (const [index, [first, a]] of Object.entries(steps).entries()) {
      const others = Object.entries(steps).slice(index);
      const pairs = others.map(async ([second, b]) => {
        const key = `${name}, ${first}, ${second}`;
        await prepare(one.inbox, key);
        const results = await Promise.all([a.run(one.inbox, key), b.run(other.inbox, key)]);
        const orders = [b.after(a.after(known)).state, a.after(b.after(known)).state];
        expect(orders, key).toContain(await stateOf(one.inbox, key));
        const wins = first === second ? exclusive[first] : undefined;
        if (wins !== undefined) expect(results.filter(wins).length, key).toBeLessThanOrEqual(1);
      });
      await Promise.all(pairs);
    }
  });
});
