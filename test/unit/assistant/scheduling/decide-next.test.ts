import { describe, expect, it } from "vitest";
import { decideNext } from "../../../../src/assistant/scheduling/decide-next.ts";
import type { IncomingEvent } from "../../../../src/core/events.ts";
import type { InboxRecord, TurnState } from "../../../../src/core/inbox.ts";
import { call, message } from "../../../support/fakes.ts";

const hourMs = 60 * 60_000;
const now = 10 * hourMs;

type More = Partial<Omit<InboxRecord, "turn" | "event">> & { readonly turn?: Partial<TurnState> };

function record(event: IncomingEvent, { turn, ...more }: More = {}): InboxRecord {
  const begun = { keys: [event.key], attempt: 1, since: 0, openedAt: now, address: {} };
  return {
    event,
    acceptedAt: now,
    state: "open",
    version: 1,
    ...more,
    ...(turn === undefined ? {} : { turn: { ...begun, ...turn } }),
  };
}

const waiting = (key: string, more: More & { readonly sentAt?: number } = {}): InboxRecord => {
  const { sentAt = 1, ...rest } = more;
  return record(message(key, { key, sentAt }), rest);
};
const command = (key: string, more: More = {}): InboxRecord => record(call("ask", {}, { key }), more);
const begun = (key: string, turn: Partial<TurnState> = {}, more: More = {}): InboxRecord =>
  record(message(key, { key }), { ...more, turn });

const stopped = { kind: "stopped", at: now, isStored: false } as const;

/** The decision as a line: what is done, and with which events. */
function next(...open: readonly InboxRecord[]): string {
  const decided = decideNext(open, now);
  if (decided.kind === "nothing") return "nothing";
  if (decided.kind === "wait") return `wait ${decided.until - now} ms`;
  return `${decided.kind} ${decided.batch.map(({ event }) => event.key).join("+")}`;
}

describe("what is done next in a conversation", () => {
  it("is nothing where nothing is open", () => {
    expect(next()).toBe("nothing");
  });

  it("is to answer all messages that wait, up to the next command", () => {
    expect(next(waiting("a"), waiting("b"))).toBe("run a+b");
    expect(next(waiting("a"), command("c"), waiting("b"))).toBe("run a");
    expect(next(command("c"), waiting("b"))).toBe("run c");
    expect(next(command("c"), command("d"))).toBe("run c");
  });

  it("does not wait for a time that the clock gave before it was set back", () => {
    expect(next(waiting("a", { dueAt: now + 11 * 60_000 }))).toBe("run a");
    expect(next(begun("a", {}, { dueAt: now + 11 * 60_000 }))).toBe("run a");
    expect(next(waiting("a", { dueAt: now + 10_000 }))).toBe("wait 10000 ms");
  });

  it("goes on with what has begun, before what was accepted earlier", () => {
    expect(next(waiting("a"), begun("b"), waiting("c"))).toBe("run b");
    expect(next(command("a"), begun("b"))).toBe("run b");
  });

  it("is to show an end that was decided, whether anything of it is stored or not", () => {
    expect(next(waiting("a"), begun("b", { end: stopped }, { state: "ending" }))).toBe("end b");
    const stored = { kind: "answer", at: now, isStored: true } as const;
    expect(next(begun("b", { end: stored }, { state: "ending" }))).toBe("end b");
    // A command that was stopped while it waited has not begun.
    expect(next(record(call("ask", {}, { key: "c" }), { state: "ending", turn: { attempt: 0 } }))).toBe(
      "end c",
    );
  });
});

describe("the order of messages", () => {
  it("is that of their sending where several processes accepted them in another one", () => {
    const sent = (key: string, sentAt: number) => waiting(key, { sentAt });
    expect(next(sent("b", 2), sent("a", 1), sent("c", 3))).toBe("run a+b+c");
  });

  it("is that of the platform's ids in the same millisecond, as far as they are numbers of one length", () => {
    const [one, two] = ["slack:T1:C1:1700000000.000100", "slack:T1:C1:1700000000.000200"];
    expect(next(waiting(two), waiting(one))).toBe(`run ${one}+${two}`);
    expect(next(waiting("b"), waiting("a"))).toBe("run b+a");
    expect(next(waiting("x:10"), waiting("x:9"))).toBe("run x:10+x:9");
  });
});

describe("what may end the process", () => {
  it.each([
    ["is run three times more after its first try", { attempt: 3 }, "run a"],
    ["is not run a fifth time", { attempt: 4 }, "seal a"],
    ["counts anew after it was opened again", { attempt: 7, since: 4 }, "run a"],
    ["is sealed then, too", { attempt: 8, since: 4 }, "seal a"],
    ["is run for an hour", { openedAt: now - hourMs }, "run a"],
    ["is not run later than that", { openedAt: now - hourMs - 1 }, "seal a"],
  ])("%s", (_, turn, decided) => {
    expect(next(begun("a", turn))).toBe(decided);
  });

  it("is given up where it is the showing of an end, however old that is", () => {
    const ending = (turn: Partial<TurnState>) =>
      next(begun("a", { end: stopped, openedAt: 0, ...turn }, { state: "ending" }));
    expect(ending({ attempt: 99 })).toBe("end a");
    expect(ending({ attempt: 100 })).toBe("give-up a");
    expect(ending({ attempt: 100, since: 99 })).toBe("end a");
  });

  it("is no message that came later: an old one that waits is sealed alone", () => {
    const old = { acceptedAt: now - hourMs - 1 };
    expect(next(waiting("a", old))).toBe("seal a");
    expect(next(waiting("a", old), waiting("b"))).toBe("seal a");
    expect(next(waiting("b", { sentAt: 1 }), waiting("a", { ...old, sentAt: 2 }))).toBe("seal a");
    expect(next(command("c", old), waiting("b"))).toBe("seal c");
  });
});

describe("a time before which an event does not run", () => {
  it("is waited for, by those that would be answered with it, too", () => {
    expect(next(waiting("a", { dueAt: now + 150 }))).toBe("wait 150 ms");
    expect(next(waiting("a", { dueAt: now }))).toBe("run a");
    expect(next(waiting("a"), waiting("b", { dueAt: now + 150 }))).toBe("wait 150 ms");
    expect(next(begun("a", {}, { dueAt: now + 1000 }), waiting("b"))).toBe("wait 1000 ms");
  });

  it("is nothing to a command before it, nor to what has begun", () => {
    expect(next(command("c"), waiting("a", { dueAt: now + 150 }))).toBe("run c");
    expect(next(begun("b"), waiting("a", { dueAt: now + 150 }))).toBe("run b");
  });
});
