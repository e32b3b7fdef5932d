import { beforeEach, describe, expect, it } from "vitest";
import { heardWordsOf, withCorrections } from "../../../../src/assistant/actions/answer-anew.ts";
import { createReceiptDraft } from "../../../../src/assistant/turn/turn.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { PressResult } from "../../../../src/core/press.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import type { StoredMessage } from "../../../../src/core/storage.ts";
import { ada, call, said } from "../../../support/fakes.ts";
import { worldOfEachTest } from "../../../support/world-of-each-test.ts";

const note = (id = "voice") => ({ id, name: `${id}.ogg`, source: null });

describe("Fix transcript", () => {
  const world = worldOfEachTest(async () => {
    const voice = await fixture("voice.ogg");
    // The same bytes are heard once.
    return { files: { voice, second: Buffer.concat([voice, Buffer.alloc(1)]) } };
  });
  beforeEach(() => {
    world.gateway.answerWith(async function* answer(request) {
      yield { kind: "text", text: `answer ${world.gateway.requests.length}` };
      yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
    });
  });

  async function asked(...files: string[]): Promise<void> {
    await world.ask("", { attachments: files.map((id) => note(id)) });
  }

  const button = () => world.button("transcript");
  const open = (by = ada, action = button()) => world.assistant.press(action, by);
  const submit = (values: Record<string, string>, by = ada, action = button()) =>
    world.assistant.press({ ...action, values }, by);
  const markdown = (result: PressResult) => (result.kind === "told" ? result.markdown : result.kind);

  async function storedWords(): Promise<string[]> {
    const messages = await world.history.history("fake:c1", { maxMessages: 20 });
    return messages.flatMap(({ parts }) => parts.flatMap((part) => ("text" in part ? [part.text] : [])));
  }

  it("answers anew in the same reply; the corrected words take the place of the old ones, and are quoted", async () => {
    await asked("voice");
    expect(world.platform.replies[0]?.text).toContain("> Heard: heard voice.ogg");
    expect(await submit({ "words-1": "the swords" })).toEqual({ kind: "done" });
    await world.settled();
    expect(world.platform.replies).toMatchObject([
      { text: "> Heard: the swords\n\nanswer 2", shown: 2, state: "finished" },
    ]);
    expect(said(world.gateway.requests[1]).slice(1)).toEqual([
      "user: [voice note voice.ogg, transcribed] the swords",
    ]);
    expect(await storedWords()).toEqual(["the swords", "answer 2"]);
    // It is opened once more, with the words as they are now.
    expect(await open()).toMatchObject({ form: { fields: [{ value: "the swords" }] } });
    await submit({ "words-1": "the chords" });
    await world.settled();
    expect(await storedWords()).toEqual(["the chords", "answer 3"]);
  });

  it("corrects one of several recordings, and listens to none again", async () => {
    await asked("voice", "second");
    await submit({ "words-1": "heard voice.ogg", "words-2": "other words" });
    await world.settled();
    expect(await storedWords()).toEqual(["heard voice.ogg", "other words", "answer 2"]);
    expect(world.gateway.transcriptions).toHaveLength(2);
  });

  it("leaves the other recording alone when an edit takes the corrected one away", async () => {
    const event = await world.ask("", { attachments: [note(), note("second")] });
    await submit({ "words-1": "the swords", "words-2": "heard second.ogg" });
    await world.settled();
    await world.assistant.changed({
      kind: "edit",
      key: event.key,
      editedAt: Date.now() + 60_000,
      conversationIds: [event.conversationId],
      read: () => Promise.resolve({ text: "listen", attachments: [note("second")] }),
    });
    await world.settled();
    expect(await storedWords()).toEqual(["listen", "heard second.ogg", "answer 3"]);
    // Nothing else keeps the corrected words of what was taken away.
    const [entry] = await world.store.inbox.read([event.key]);
    expect(JSON.stringify(entry)).not.toContain("the swords");
  });

  it("offers no words that others said in the thread", async () => {
    await asked("voice");
    const messages = await world.history.history("fake:c1", { maxMessages: 20 });
    const stored = new Map(messages.map((one) => [one.id, { ...one, room: { isApp: false } }]));
    const find = (_: string, id: string) => Promise.resolve(stored.get(id));
    expect(await heardWordsOf({ find }, "fake:c1", messages[1]!)).toEqual([]);
    const receipt = createReceiptDraft();
    receipt.add(messages[1]!.receipt!.calls);
    receipt.reads([...stored.values()]);
    expect(receipt.toReceipt()?.files).toMatchObject({ read: 1 });
    expect(receipt.toReceipt()?.files?.voices).toBeUndefined();
  });

  it("corrects the question that has the recording, and leaves the others as they are", () => {
    const question = (key: string): StoredMessage => ({
      id: `${key}/user`,
      role: "user",
      turnKey: key,
      parts: [{ kind: "voice", name: "voice.ogg", text: "the chords", times: [] }],
      createdAt: 1,
      estimatedTokens: 1,
    });
    const word = { messageKey: "two", name: "voice.ogg", position: 0, text: "the swords" };
    const [one, two] = [question("one"), question("two")];
    expect(withCorrections(one, [word])).toBe(one);
    // The times are those of the words that were heard.
    const parts = [{ kind: "voice", name: "voice.ogg", text: "the swords" }];
    expect(withCorrections(two, [word])).toMatchObject({ id: two.id, parts });
    expect(withCorrections(two, [word]).parts).toEqual(parts);
  });

  it("is there for voice notes alone", async () => {
    await world.ask("hello");
    expect(world.platform.replies[0]?.actions.map(({ kind }) => kind)).not.toContain("transcript");
  });

  it("takes neither empty words nor the same ones", async () => {
    await asked("voice");
    expect(await submit({ "words-1": "  " })).toEqual({
      kind: "problems",
      problems: { "words-1": "Write what was said, or cancel." },
    });
    expect(markdown(await submit({ "words-1": "heard voice.ogg" }))).toContain("Nothing was changed");
    expect(world.gateway.requests).toHaveLength(1);
  });

  it("of a deleted message says that it is gone", async () => {
    await asked("voice");
    const action = button();
    const [question] = await world.history.history("fake:c1", { maxMessages: 1 });
    await world.assistant.changed({
      kind: "delete-messages",
      conversationId: "fake:c1",
      keys: [question!.turnKey],
    });
    expect(["gone", "told"]).toContain((await open(ada, action)).kind);
    expect(["gone", "told"]).toContain((await submit({ "words-1": "x" }, ada, action)).kind);
    expect(world.gateway.requests).toHaveLength(1);
  });

  it("survives a crash: the corrected words are answered after it", async () => {
    await asked("voice");
    const { key } = button();
    const turnKey = key.split(" ")[1]!.replace(/\/answer$/, "");
    const word = { messageKey: turnKey, name: "voice.ogg", position: 0, text: "the swords" };
    await world.store.inbox.change({
      kind: "again",
      of: turnKey,
      reason: "edit",
      attempt: 1,
      isLastOnly: true,
      toQuestion: (stored) => withCorrections(stored, [word]),
    });
    await world.recover(world.restart());
    expect(await storedWords()).toEqual(["the swords", "answer 2"]);
    expect(world.platform.replies.at(-1)).toMatchObject({
      text: "> Heard: the swords\n\nanswer 2",
      state: "finished",
    });
  });

  describe("of a command", () => {
    it("that transcribes replaces the transcript, here and in the history; nothing is listened to again", async () => {
      const event = await world.answered(call("transcribe", { file: note() }, { inConversation: true }));
      expect(await open()).toMatchObject({
        form: {
          introduction: "Write what was said. It takes the place of the transcript.",
          fields: [{ label: "voice.ogg", value: "heard voice.ogg" }],
        },
      });
      const first = button();
      const { receipt } = (await world.store.conversations.find("fake:c1", `${event.key}/answer`))!;
      expect(await submit({ "words-1": "the swords" })).toEqual({ kind: "done" });
      await world.settled();
      expect(world.platform.replies).toMatchObject([{ text: "the swords", shown: 2, state: "finished" }]);
      expect(await storedWords()).toEqual(["the swords", "the swords"]);
      const stored = await world.store.conversations.find("fake:c1", `${event.key}/answer`);
      expect(stored).toMatchObject({ attempt: 2, receipt, model: "listener" });
      expect(world.gateway.transcriptions).toHaveLength(1);
      expect(JSON.stringify(await world.store.inbox.read([event.key]))).not.toContain("heard voice.ogg");
      // It is corrected once more, but not with the earlier button.
      expect(markdown(await open(ada, first))).toContain("earlier attempt");
      await submit({ "words-1": "the chords" });
      await world.settled();
      expect(await storedWords()).toEqual(["the chords", "the chords"]);
    });

    it("that stands alone, or is private, does the same", async () => {
      for (const more of [{}, { isPrivate: true, inConversation: true }]) {
        const event = await world.answered(call("transcribe", { file: note() }, more));
        expect(await submit({ "words-1": "the swords" })).toEqual({ kind: "done" });
        await world.settled();
        expect(world.platform.replies.at(-1)).toMatchObject({ text: "the swords", state: "finished" });
        const kept = await world.history.history(event.key, { maxMessages: 9 });
        expect(JSON.stringify(kept)).not.toContain("heard voice.ogg");
      }
    });

    it("that asks about a voice message answers anew", async () => {
      const subject = { author: ada.author, text: "", attachments: [note()] };
      await world.answered(call("ask", { prompt: "what is it?" }, { subject }));
      expect(await submit({ "words-1": "the swords" })).toEqual({ kind: "done" });
      await world.settled();
      expect(world.platform.replies.at(-1)?.text).toContain("> Heard: the swords\n\nanswer 2");
      // What was heard is not listened to again.
      expect(world.gateway.transcriptions).toHaveLength(1);
      expect(said(world.gateway.requests[1]).at(-1)).toContain("transcribed] the swords");
    });

    it("whose recording was erased meanwhile says that it is gone", async () => {
      const event = await world.answered(call("transcribe", { file: note() }, { inConversation: true }));
      const action = button();
      await world.assistant.changed({
        kind: "delete-messages",
        conversationId: "fake:c1",
        keys: [event.key],
      });
      expect(["gone", "told"]).toContain((await submit({ "words-1": "x" }, ada, action)).kind);
    });
  });

  it("keeps the corrected words when the new answer fails", async () => {
    await asked("voice");
    world.gateway.answerWith(async function* broken() {
      yield* [];
      throw new ParleyError("gateway-unreachable", "gone");
    });
    await submit({ "words-1": "the swords" });
    await world.settled();
    expect((await storedWords())[0]).toBe("the swords");
    expect(world.platform.replies[0]).toMatchObject({ state: "failed" });
  });
});
