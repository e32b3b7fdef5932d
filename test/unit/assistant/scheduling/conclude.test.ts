import { describe, expect, it } from "vitest";
import { type Before, conclude, concludeAgain, ends } from "../../../../src/assistant/scheduling/conclude.ts";
import { toStopped, toWithdrawn } from "../../../../src/assistant/scheduling/active-turn.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { ResultKind, RunWrite, Written } from "../../../../src/core/inbox.ts";
import type { AnswerDraft, Result } from "../../../../src/core/result.ts";
import type { StoredMessage } from "../../../../src/core/storage.ts";
import { createFakePlatform, message, silentLog } from "../../../support/fakes.ts";

const receipt = { calls: [{ operation: "chat", asked: "chatty" }], totalMs: 1 } as const;

const words = (text: string): AnswerDraft => ({
  parts: [{ kind: "text", text }],
  receipt,
  isCut: true,
});

const event = message("asked", { key: "fake:asked" });

const earlierAnswer: StoredMessage = {
  id: "fake:asked/answer",
  role: "assistant",
  turnKey: "fake:asked",
  attempt: 1,
  parts: [{ kind: "text", text: "earlier" }],
  createdAt: 1,
  estimatedTokens: 1,
  outcome: "complete",
  receipt,
};

const results: Readonly<Record<ResultKind, Partial<Result>>> = {
  answer: {},
  failed: { error: new ParleyError("gateway-unreachable", "gone") },
  stopped: { error: toStopped("Ada") },
  refused: { error: new ParleyError("access-denied", "not allowed") },
  sealed: { error: new ParleyError("too-old", "not run again") },
  withdrawn: { error: toWithdrawn() },
};

interface Setting {
  readonly earlier?: StoredMessage | undefined;
  readonly again?: "regenerate" | "edit" | "continue";
  /** What the store says to writes of the end, one after the other. By default each is written. */
  readonly written?: readonly Written[];
}

type Ending = Extract<RunWrite, { kind: "end" }>;

function open({ earlier, again, written = [] }: Setting) {
  const { platform, replies } = createFakePlatform();
  const writes: RunWrite[] = [];
  const stopping = new AbortController();
  const left = [...written];
  let stored = earlier;
  const options = {
    inbox: {
      write(_: unknown, what: RunWrite): Promise<Written> {
        writes.push(what);
        const outcome = what.kind === "end" ? (left.shift() ?? { isWritten: true as const }) : undefined;
        if (what.kind === "end" && outcome?.isWritten === true && what.answer !== undefined)
          stored = what.answer;
        return Promise.resolve(outcome ?? { isWritten: true });
      },
    },
    conversations: {
      find: (_: string, id: string) => Promise.resolve(id === earlierAnswer.id ? stored : undefined),
      getBlob: () => Promise.resolve(undefined),
      saveSettings: () => Promise.resolve(),
    },
    archive: {
      removeMessages: () =>
        Promise.resolve({ messages: 0, blobs: 0, conversations: 0, settings: 0, ratings: 0 }),
    },
    now: () => 1000,
    log: silentLog,
  };
  const run = {
    key: event.key,
    attempt: earlier === undefined ? 1 : 2,
    again: again === undefined ? undefined : { kind: again },
    platform,
    conversationId: "fake:c1",
    settings: {},
    reply: platform.openReply({ at: "c1", message: 7 }, { saveAddress: () => Promise.resolve() }),
    signal: stopping.signal,
    questions: new Map(),
    shownMessageKeys: () => ["fake:reply:7"],
    ask: () => Promise.resolve(),
    events: [{ ...event, text: "" }],
  };
  const ending = (): Ending => writes.findLast((what): what is Ending => what.kind === "end")!;
  /** What is stored, and what people see, in two lines. */
  const told = (): { stored: string; shown: string } => {
    const { answer } = ending();
    const [reply] = replies;
    const buttons = reply?.actions
      .map(({ kind }) => kind)
      .filter((kind) => kind !== "good" && kind !== "bad");
    const textOf = (parts: StoredMessage["parts"]) =>
      parts.map((part) => ("text" in part ? part.text : part.kind)).join();
    return {
      stored:
        answer === undefined
          ? "nothing"
          : [
              answer.outcome,
              textOf(answer.parts),
              ...(answer.notices ?? []),
              ...(answer.failure === undefined ? [] : [`failure: ${answer.failure}`]),
            ]
              .filter((one) => one !== "")
              .join(" | "),
      shown: [
        reply?.state,
        reply?.text,
        ...(reply?.notices ?? []),
        ...(reply?.failure === undefined || reply.state !== "failed"
          ? []
          : [reply.failure.text, ...(reply.failure.retryKey === undefined ? [] : ["[Retry]"])]),
        ...(buttons?.length === 0 ? [] : [`[${buttons?.join(", ")}]`]),
      ]
        .filter((one) => one !== "")
        .join(" | "),
    };
  };
  const closed = () => writes.filter(({ kind }) => kind === "close").length;
  return { options, run, replies, writes, ending, told, closed, abandon: (e: Error) => stopping.abort(e) };
}

const befores: Readonly<Record<Before, { readonly words: boolean; readonly earlier: boolean }>> = {
  neither: { words: false, earlier: false },
  words: { words: true, earlier: false },
  earlier: { words: false, earlier: true },
  both: { words: true, earlier: true },
};

/** Ends a turn and resolves to what is stored and shown of it. */
async function ended(kind: ResultKind, before: Before) {
  const { words: hasWords, earlier: hasEarlier } = befores[before];
  const world = open(hasEarlier ? { earlier: earlierAnswer, again: "regenerate" } : {});
  const result: Result = {
    kind,
    notices: [],
    answer: hasWords ? words("half") : { parts: [], receipt },
    ...results[kind],
  };
  if (hasWords) world.run.reply.write({ text: "half" });
  await conclude(world.options, world.run, result);
  expect(world.closed()).toBe(1);
  return { end: ends[kind][before], ...world.told() };
}

type Row = Awaited<ReturnType<typeof ended>>;

const offline = "Parley was offline when this arrived, so it was not answered automatically.";
const gone = "The model gateway cannot be reached. Try again in a moment.";
const denied =
  "You are not on the list of people and places that Parley answers. Ask your Parley admin to add you to ALLOW.";
const none = "There is no new answer, so this is the earlier one.";
const deleted = "Stopped: the message was deleted.";

/** What is stored and shown of each result. The last words in brackets are the buttons. */
const rows: Readonly<Record<ResultKind, Partial<Readonly<Record<Before, Row>>>>> = {
  answer: {
    words: {
      end: "answer",
      stored: "complete | half",
      shown: "finished | half | [regenerate, model, continue, details]",
    },
    both: {
      end: "answer",
      stored: "complete | half",
      shown: "finished | half | [regenerate, model, continue, details]",
    },
  },
  stopped: {
    neither: {
      end: "words-less",
      stored: "interrupted | Stopped by Ada.",
      shown: "finished | Stopped by Ada. | [regenerate, model, details]",
    },
    words: {
      end: "partial",
      stored: "interrupted | half | Stopped by Ada.",
      shown: "finished | half | Stopped by Ada. | [regenerate, model, continue, details]",
    },
    earlier: {
      end: "earlier",
      stored: "nothing",
      shown: `finished | earlier | ${none} Stopped by Ada. | [regenerate, model, details]`,
    },
    both: {
      end: "partial",
      stored: "interrupted | half | Stopped by Ada.",
      shown: "finished | half | Stopped by Ada. | [regenerate, model, continue, details]",
    },
  },
  failed: {
    neither: {
      end: "failure",
      stored: `failed | failure: ${gone}`,
      shown: `failed | ${gone} | [Retry]`,
    },
    words: {
      end: "partial",
      stored: `interrupted | half | failure: ${gone}`,
      shown: `failed | half | ${gone} | [Retry]`,
    },
    earlier: {
      end: "earlier",
      stored: "nothing",
      shown: `finished | earlier | ${none} ${gone} | [regenerate, model, details]`,
    },
    both: {
      end: "earlier",
      stored: "nothing",
      shown: `finished | earlier | ${none} ${gone} | [regenerate, model, details]`,
    },
  },
  refused: {
    neither: { end: "failure", stored: `failed | failure: ${denied}`, shown: `failed | ${denied}` },
    earlier: {
      end: "earlier",
      stored: "nothing",
      shown: `finished | earlier | ${none} ${denied} | [regenerate, model, details]`,
    },
  },
  sealed: {
    neither: {
      end: "failure",
      stored: `failed | failure: ${offline}`,
      shown: `failed | ${offline} | [Retry]`,
    },
    earlier: {
      end: "earlier",
      stored: "nothing",
      shown: `finished | earlier | ${none} ${offline} | [regenerate, model, details]`,
    },
  },
  withdrawn: {
    neither: { end: "nothing", stored: "nothing", shown: `finished | ${deleted}` },
    words: { end: "nothing", stored: "nothing", shown: `finished | half | ${deleted}` },
    earlier: {
      end: "earlier",
      stored: "nothing",
      shown: `finished | earlier | ${none} ${deleted} | [regenerate, model, details]`,
    },
    both: {
      end: "earlier",
      stored: "nothing",
      shown: `finished | earlier | ${none} ${deleted} | [regenerate, model, details]`,
    },
  },
};

describe.each(Object.entries(rows))("the result %s", (kind, befores_) => {
  it.each(Object.entries(befores_))("with %s before it", async (before, row) => {
    expect(await ended(kind as ResultKind, before as Before)).toEqual(row);
  });
});

describe("an edited question", () => {
  it("has no earlier answer that could stay", async () => {
    const world = open({ earlier: earlierAnswer, again: "edit" });
    await conclude(world.options, world.run, { kind: "failed", notices: [], ...results.failed });
    expect(world.told().shown).toBe(`failed | ${gone} | [Retry]`);
    // What it replaces is gone, with its versions.
    expect(world.ending().earlier).toBe("erased");
  });
});

describe("an end that cannot be stored", () => {
  const changed = (
    end: { readonly kind: "stopped" | "withdrawn"; readonly by?: string },
    attempt = 1,
    since = 0,
  ) => ({
    isWritten: false as const,
    record: {
      event,
      acceptedAt: 1,
      state: "ending" as const,
      version: 3,
      turn: {
        keys: [event.key],
        attempt,
        since,
        openedAt: 1,
        address: {},
        end: { at: 1, isStored: false, ...end },
      },
    },
  });

  it("because a person has stopped the turn keeps the words so far, and says who", async () => {
    const world = open({ written: [changed({ kind: "stopped", by: "Bo" })] });
    const why = "There is nothing to answer.";
    const result: Result = { kind: "answer", notices: [], answer: words("whole"), isWritten: true, why };
    expect(await conclude(world.options, world.run, result)).toBe("cancelled");
    expect(world.told()).toMatchObject({
      stored: "interrupted | whole | Stopped by Bo.",
      shown: expect.stringContaining("finished | whole | Stopped by Bo.") as string,
    });
    expect(world.closed()).toBe(1);
  });

  it("because its messages were deleted stores nothing of it", async () => {
    const world = open({ written: [changed({ kind: "withdrawn" })] });
    const result: Result = { kind: "answer", notices: [], answer: words("whole"), isWritten: true };
    expect(await conclude(world.options, world.run, result)).toBe("cancelled");
    expect(world.ending()).toMatchObject({ end: { kind: "withdrawn" }, questions: [] });
    expect(world.told()).toEqual({ stored: "nothing", shown: `finished | ${deleted}` });
  });

  it.each([
    ["another attempt has begun", changed({ kind: "stopped" }, 2)],
    ["the turn was opened again", changed({ kind: "stopped" }, 1, 1)],
    ["nothing is known of it", { isWritten: false as const }],
  ])("because %s is neither shown nor closed", async (_, written) => {
    const world = open({ written: [written] });
    const result: Result = { kind: "answer", notices: [], answer: words("whole") };
    await expect(conclude(world.options, world.run, result)).rejects.toMatchObject({
      code: "stopping",
      detail: { because: "changed" },
    });
    expect(world.replies[0]).toMatchObject({ state: "open", text: "" });
    expect(world.closed()).toBe(0);
  });

  it("before the process has lost the conversation is left to the next holder", async () => {
    const world = open({});
    world.abandon(new ParleyError("stopping", "lease lost"));
    const result: Result = { kind: "answer", notices: [], answer: words("whole") };
    await expect(conclude(world.options, world.run, result)).rejects.toMatchObject({ code: "stopping" });
    expect(world.told().stored).toBe("complete | whole");
    expect(world.replies[0]?.state).toBe("open");
    expect(world.closed()).toBe(0);
  });
});

describe("an end that is stored and not shown", () => {
  it("is shown as it was stored", async () => {
    const world = open({ earlier: { ...earlierAnswer, notices: ["It was cut."] } });
    const end = { kind: "answer", at: 1, isStored: true } as const;
    expect(await concludeAgain(world.options, world.run, end)).toBe("shown");
    expect(world.replies[0]).toMatchObject({
      state: "finished",
      text: "earlier",
      notices: ["It was cut."],
    });
    expect(world.writes.map(({ kind }) => kind)).toEqual(["close"]);
  });

  it("is an empty end where its answer was removed since", async () => {
    const world = open({});
    await concludeAgain(world.options, world.run, { kind: "answer", at: 1, isStored: true });
    expect(world.replies[0]).toMatchObject({ state: "finished", text: "", notices: [] });
    expect(world.closed()).toBe(1);
  });

  it.each([
    ["failed", "failed", { canRetry: true } as const],
    ["refused", "failed", {}],
    ["stopped", "finished", {}],
  ] as const)("that was %s says why where nothing else is stored", async (kind, state, more) => {
    const world = open({});
    const end = { kind, at: 1, isStored: true, why: "This is why.", ...more } as const;
    await concludeAgain(world.options, world.run, end);
    expect(world.replies[0]).toMatchObject(
      state === "failed"
        ? { state, failure: { text: "This is why." } }
        : { state, notices: ["This is why."] },
    );
    expect(world.replies[0]?.failure?.retryKey).toBe(kind === "failed" ? event.key : undefined);
  });

  it("that was only decided is stored first", async () => {
    const world = open({});
    const end = { kind: "stopped", at: 1, by: "Ada", isStored: false } as const;
    expect(await concludeAgain(world.options, world.run, end)).toBe("cancelled");
    expect(world.writes.map(({ kind }) => kind)).toEqual(["end", "close"]);
    expect(world.told()).toEqual({
      stored: "interrupted | Stopped by Ada.",
      shown: "finished | Stopped by Ada.",
    });
  });
});

describe("what is shown and not stored", () => {
  it("is shown alone, and closed so that its buttons can run it again", async () => {
    const world = open({});
    const confirm = { label: "Remove", key: event.key };
    const result: Result = {
      kind: "answer",
      notices: [],
      answer: { parts: [{ kind: "text", text: "Really?" }] },
      isUnstored: true,
      buttons: { confirm },
    };
    expect(await conclude(world.options, world.run, result)).toBe("complete");
    expect(world.writes).toEqual([{ kind: "close", isRepeatable: true }]);
    expect(world.replies[0]).toMatchObject({ state: "finished", text: "Really?", confirm });
  });
});

describe("the questions that are not in the log yet", () => {
  it("are stored with the end, with the files that were not read and why", async () => {
    const world = open({});
    const attachments = [{ id: "f", name: "plan.pdf", source: null }];
    const run = { ...world.run, events: [{ ...event, attachments }] };
    await conclude(world.options, run, { kind: "sealed", notices: [], ...results.sealed });
    expect(world.ending().questions).toMatchObject([
      {
        id: "fake:asked/user",
        parts: [
          { kind: "text", text: "asked" },
          { kind: "unread", name: "plan.pdf", reason: offline.slice(0, -1) },
        ],
      },
    ]);
  });

  it("go with a turn whose messages were deleted", async () => {
    const world = open({});
    const run = { ...world.run, events: [event] };
    await conclude(world.options, run, { kind: "withdrawn", notices: [], ...results.withdrawn });
    expect(world.ending()).toMatchObject({ questions: [], noted: {} });
  });
});
