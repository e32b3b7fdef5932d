import { beforeEach, expect, it } from "vitest";
import type { Store } from "../../src/conversations/open-store.ts";
import type { RunWrite } from "../../src/core/inbox.ts";
import { messageIds } from "../../src/core/message-ids.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";
import {
  againOf,
  answerTurn,
  beginTurn,
  callOf,
  createTurnSteps,
  deletionOf,
  editTo,
  endOf,
  openKeys,
  questionOf,
  stopOf,
  unreadFile,
} from "../support/turn-steps.ts";

const id = "test:1";

describeStores("the end of a turn", (current) => {
  let store: Store;
  beforeEach(async () => {
    store = await current().open();
  });
  const { begin, logOf, recordOf, withFile, wordsIn, write } = createTurnSteps(id, () => store);

  it("is stored with its answer, is shown by whoever comes next, and is closed", async () => {
    const attempt = await begin("a", "b");
    expect(await write(attempt, endOf(attempt, "the answer"))).toBe(true);
    expect(await recordOf("a")).toMatchObject({ state: "ending", turn: { end: { isStored: true } } });
    expect(await openKeys(store.inbox, id)).toEqual(["a"]);
    expect(await logOf()).toEqual(["text of a", "text of b", "the answer"]);
    expect(await write(attempt, endOf(attempt, "another answer"))).toBe(false);
    const showing = await beginTurn(store.inbox, ["a"]);
    expect(showing.attempt).toBe(2);
    expect(await write(attempt, { kind: "close" })).toBe(false);
    expect(await write(showing, { kind: "close" })).toBe(true);
    expect(await openKeys(store.inbox)).toEqual([]);
    expect(await recordOf("a")).toMatchObject({ state: "over" });
    expect(await recordOf("b")).toMatchObject({ state: "joined" });
  });

  it("is refused to an attempt that is not the last, or whose turn is to run again", async () => {
    const first = await begin("a");
    const second = await beginTurn(store.inbox, ["a"]);
    expect(await write(first, endOf(first, "late"))).toBe(false);
    await store.inbox.change(editTo("a", "new words"));
    const written = await store.inbox.write(second, endOf(second, "to the old words"));
    expect(written).toMatchObject({ isWritten: false, record: { turn: { again: { kind: "edit" } } } });
    expect(await logOf()).toEqual(["new words"]);
  });

  it("is what a person decided: of a stopped turn only its words so far are stored", async () => {
    const attempt = await begin("a");
    await store.inbox.change(stopOf("a"));
    const written = await store.inbox.write(attempt, endOf(attempt, "the whole answer"));
    expect(written).toMatchObject({
      isWritten: false,
      record: { state: "ending", turn: { end: { kind: "stopped", by: "Ada", isStored: false } } },
    });
    expect(await write(attempt, endOf(attempt, "the words so far", { kind: "stopped" }))).toBe(true);
    expect(await logOf()).toEqual(["text of a", "the words so far"]);
  });

  it("takes the questions into the log that are not there yet, as they are by then", async () => {
    for (const key of ["a", "b", "c"]) await store.inbox.accept(withFile(key, `words of ${key}`));
    const attempt = await beginTurn(store.inbox, ["a", "b", "c"], { isAsked: false });
    const questions = ["a", "b", "c"].map((key) => questionOf(withFile(key, `words of ${key}`)));
    await store.inbox.change(stopOf("a", 9000));
    // They were made before the stop, so that nothing is asked anew.
    await store.inbox.change(editTo("b", "new words of b", 8000));
    await store.inbox.change(deletionOf("c"));
    const end = endOf(attempt, undefined, {
      kind: "stopped",
      questions,
      toEdited: (question, event) =>
        event.kind === "message" && event.edit !== undefined
          ? { ...question, parts: [{ kind: "text", text: event.text }], editedAt: event.edit.at }
          : question,
    });
    expect(await write(attempt, end)).toBe(true);
    expect(await logOf()).toEqual(["words of a", "new words of b"]);
    for (const key of ["a", "b"])
      expect(await recordOf(key), key).toMatchObject({ isInLog: true, event: { text: "" } });
    // Its files can still be read when somebody asks for another answer.
    expect(await recordOf("a")).toMatchObject({ event: { attachments: [unreadFile] } });
  });

  it("of a call takes the words of an edit that came while it ran, and nothing else is kept of it", async () => {
    await store.inbox.accept(callOf("a", id, "old words"));
    const attempt = await beginTurn(store.inbox, ["a"], { isAsked: false });
    await store.inbox.change(editTo("a", "new words"));
    const toEdited: Extract<RunWrite, { kind: "end" }>["toEdited"] = (question, event) =>
      event.kind === "call" && event.editedTo !== undefined
        ? { ...question, parts: [{ kind: "text", text: event.editedTo.text }] }
        : question;
    const questions = [questionOf(callOf("a", id, "old words"))];
    expect(await write(attempt, endOf(attempt, "the answer", { questions, toEdited }))).toBe(true);
    expect(await logOf()).toEqual(["new words", "the answer"]);
    await write(attempt, { kind: "close" });
    expect(await recordOf("a")).toMatchObject({ state: "erased" });
  });

  it("of nothing that is left is shown, and then the key alone is known", async () => {
    const attempt = await begin("a", "b");
    for (const key of ["a", "b"]) await store.inbox.change(deletionOf(key));
    expect(await write(attempt, endOf(attempt, "the answer"))).toBe(false);
    const ending = await beginTurn(store.inbox, ["a"]);
    expect(await write(ending, endOf(ending, undefined, { kind: "withdrawn" }))).toBe(true);
    expect(await write(ending, { kind: "close" })).toBe(true);
    for (const key of ["a", "b"]) expect(await recordOf(key)).toMatchObject({ state: "erased" });
    expect(await logOf()).toEqual([]);
  });

  it("of a turn in a conversation that was deleted meanwhile does not bring the conversation back", async () => {
    const attempt = await begin("a");
    await store.inbox.change(deletionOf("a"));
    await store.erasure.deleteConversation(id);
    const noted = { within: ["test:place"] };
    expect(await write(attempt, endOf(attempt, undefined, { kind: "withdrawn", noted }))).toBe(true);
    await write(attempt, { kind: "close" });
    expect(await store.conversations.existing([id])).toEqual([]);
    expect(await store.lists.list("test:", { max: 9 })).toEqual([]);
    expect(await store.conversations.listWithin("test:place")).toEqual([]);
  });

  it("that could not be stored keeps the words for a Retry alone, and they go with the conversation", async () => {
    const close = async (key: string, isRepeatable: boolean) => {
      await store.inbox.accept(withFile(key, `words of ${key}`));
      const attempt = await beginTurn(store.inbox, [key], { isAsked: false });
      expect(await write(attempt, { kind: "close", isRepeatable })).toBe(true);
    };
    await close("lost", false);
    await close("kept", true);
    expect(await recordOf("lost")).toMatchObject({ state: "over", event: { text: "", attachments: [] } });
    expect(await recordOf("kept")).toMatchObject({ state: "over", event: { text: "words of kept" } });
    await store.erasure.deleteConversation(id);
    expect(await recordOf("kept")).toMatchObject({ state: "erased" });
  });

  it("of a private call that stores nothing makes no conversation of it", async () => {
    const call = { ...callOf("test:call", id), isPrivate: true };
    await store.inbox.accept(call);
    const attempt = await beginTurn(store.inbox, [call.key], { isAsked: false });
    await write(attempt, endOf(attempt, undefined, { kind: "failed", noted: { within: ["test:place"] } }));
    await write(attempt, { kind: "close" });
    expect(await store.lists.list("test:", { max: 9 })).toEqual([]);
    expect(await store.conversations.listWithin("test:place")).toEqual([]);
  });

  it("replaces the answer in its place; the earlier one is gone, or becomes a version", async () => {
    const first = await answerTurn(store.inbox, [eventOf("a", id)], "the first words");
    await store.conversations.append(id, messageOf("later"));
    const again = async (text: string, earlier: "erased" | "version" | "continued") => {
      const reason = earlier === "continued" ? "continue" : "regenerate";
      await store.inbox.change(againOf("a", { reason, isLastOnly: false }));
      const attempt = await beginTurn(store.inbox, ["a"]);
      expect(await write(attempt, endOf(attempt, text, { earlier }))).toBe(true);
      await write(attempt, { kind: "close" });
    };
    const versions = async () =>
      (await store.conversations.find(id, messageIds.answer("a")))?.versions?.map(wordsIn);
    await again("second", "version");
    expect(await logOf()).toEqual(["text of a", "second", "words of later"]);
    expect(await versions()).toEqual(["the first words"]);
    await again("second, and on", "continued");
    expect(await versions()).toEqual(["the first words"]);
    for (let n = 4; n <= 14; n++) await again(`words ${n}`, "version");
    expect(await versions()).toHaveLength(10);
    expect(await versions()).not.toContain("the first words");
    await again("x".repeat(150_000), "version");
    await again("y".repeat(150_000), "version");
    await again("last", "version");
    expect((await versions())?.map((text) => text.slice(0, 2))).toEqual(["yy"]);
    await again("to other words", "erased");
    expect(await versions()).toBeUndefined();
    expect(await write(first, endOf(first, "late"))).toBe(false);
  });

  it("brings no answer back that was deleted", async () => {
    await answerTurn(store.inbox, [eventOf("a", id)]);
    await store.erasure.removeMessages(id, { ids: [messageIds.answer("a")] });
    await store.inbox.change(againOf("a"));
    const attempt = await beginTurn(store.inbox, ["a"]);
    expect(await write(attempt, endOf(attempt, "again"))).toBe(true);
    expect(await logOf()).toEqual(["text of a"]);
  });
});
