import { unzipSync } from "fflate";
import { afterEach, beforeEach, describe, expect, it, test, vi } from "vitest";
import { defineCommand, type Command } from "../../../../src/core/command.ts";
import type { Completion } from "../../../../src/core/command-services.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import { createWorld, type World } from "../../../support/assistant-world.ts";
import { call, said } from "../../../support/fakes.ts";
import { holdUpOf } from "../../../support/longest-turn.ts";
import { messageOf } from "../../../support/store-samples.ts";

let world: World;

/** Uses what a command file can use: a message's text, an asked option, and a plain completion. */
const translate = defineCommand({
  name: "translate",
  description: "Translate a text",
  options: {
    text: { kind: "string", description: "What to translate", required: true },
    language: { kind: "string", description: "Into which language", required: true },
  },
  visibility: "private",
  messageCommand: { label: "Translate this", fills: { text: "text" }, asks: ["language"] },
  async run({ options, services }) {
    const instructions = `Translate into ${options.language}. Answer with the translation only.`;
    const { text, notices } = await services.complete({ instructions, text: options.text });
    return await services.say(text, { notices });
  },
});

const { messageCommand: _menu, ...inPrivate } = translate;
/** The same for all to see. */
const interpret: Command = { ...inPrivate, name: "interpret", visibility: "public" };

let completion: Completion | undefined;
/** Keeps what it is told of its completion. */
const listen = defineCommand({
  name: "listen",
  description: "Listen to the model",
  options: {},
  visibility: "public",
  async run({ services }) {
    completion = await services.complete({ instructions: "Listen.", text: "hello" });
    return await services.say("heard");
  },
});

beforeEach(async () => {
  world = await createWorld({
    commands: [translate, interpret, listen],
    files: { png: await fixture("picture.png"), voice: await fixture("voice.ogg") },
  });
});

afterEach(async () => {
  await world.close();
});

describe("a command", () => {
  it("/ask answers alone and begins with the question", async () => {
    await world.answered(call("ask", { prompt: "why?" }));
    expect(world.platform.replies[0]).toMatchObject({ text: "> why?\n\nyou said: why?", state: "finished" });
    expect(said(world.gateway.requests[0])).toEqual(["system: Be brief.", "user: why?"]);
  });

  it("/ask in a conversation is one of its turns", async () => {
    await world.ask("hello");
    await world.answered(call("ask", { prompt: "and?" }, { inConversation: true }));
    expect(said(world.gateway.requests.at(-1))).toEqual([
      "system: Be brief.",
      "user: hello",
      "assistant: you said: hello",
      "user: and?",
    ]);
  });

  it("/ask private in a conversation stays out of it", async () => {
    await world.answered(
      call("ask", { prompt: "secret?", private: true }, { inConversation: true, isPrivate: true }),
    );
    expect(await world.history.history("fake:c1", { maxMessages: 10 })).toEqual([]);
  });

  it("can ask the model for a completion that brings no conversation along and is shown by itself", async () => {
    await world.ask("something said before");
    await world.answered(
      call(
        "translate",
        { text: "Guten Tag", language: "English" },
        { inConversation: true, isPrivate: true },
      ),
    );
    expect(said(world.gateway.requests.at(-1))).toEqual([
      "system: Translate into English. Answer with the translation only.",
      "user: Guten Tag",
    ]);
    expect(world.platform.replies.at(-1)).toMatchObject({ text: "you said: Guten Tag", state: "finished" });
    expect(await world.history.history("fake:c1", { maxMessages: 10 })).toHaveLength(2);
  });

  it("says what a completion left out, also when it is shown again", async () => {
    world.gateway.answerWith(async function* cut(request) {
      yield { kind: "notice", text: "Another model answered." };
      yield { kind: "text", text: "Good d" };
      yield { kind: "finish", reason: "length", model: request.model, usage: { isEstimated: true } };
    });
    await world.answered(
      call("translate", { text: "Guten Tag", language: "English" }, { inConversation: true }),
    );
    const notices = ["Another model answered.", "The answer reached its length limit and may be unfinished."];
    expect(world.platform.replies.at(-1)).toMatchObject({ text: "Good d", notices });
    const [asked, shown] = await world.history.history("fake:c1", { maxMessages: 10 });
    expect(asked?.parts).toEqual([{ kind: "text", text: '/translate text:"Guten Tag" language:English' }]);
    expect(shown).toMatchObject({ parts: [{ text: "Good d" }], notices });
  });

  it("learns why a completion ended, what it left out and which other model answered", async () => {
    world.gateway.answerWith(async function* cut() {
      yield { kind: "notice", text: "Another model answered." };
      yield { kind: "text", text: "Hel" };
      yield { kind: "finish", reason: "length", model: "b", fallback: "b", usage: { isEstimated: true } };
    });
    await world.answered(call("listen", {}));
    expect(completion).toEqual({
      text: "Hel",
      reason: "length",
      notices: ["Another model answered.", "The answer reached its length limit and may be unfinished."],
      fallback: "b",
    });
  });

  it("that says something is kept as it was typed, for people only", async () => {
    const kept = async () => {
      const [asked] = (await world.history.history("fake:c1", { maxMessages: 10 })).slice(-2);
      expect(asked).toMatchObject({ role: "user", inContext: false });
      return asked?.parts;
    };
    await world.ask("/interpret Guten Tag, Ada language:English");
    expect(await kept()).toEqual([{ kind: "text", text: "/interpret Guten Tag, Ada language:English" }]);
    await world.ask('/interpret Hallo! language:"plain English"');
    expect(await kept()).toEqual([{ kind: "text", text: '/interpret Hallo! language:"plain English"' }]);
    await world.ask("/interpret Hallo!");
    expect(await kept()).toEqual([{ kind: "text", text: "/interpret Hallo!" }]);
  });

  it("/imagine with a picture changes it through a chat model", async () => {
    world.gateway.answerWith(async function* edit(request) {
      yield { kind: "text", text: "greyed" };
      yield { kind: "image", image: { bytes: await fixture("picture.png"), mediaType: "image/png" } };
      yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
    });
    const image = { id: "png", name: "cat.png", source: null };
    await world.answered(call("imagine", { prompt: "make it grey", image }));
    expect(world.gateway.requests[0]).toMatchObject({ stream: false });
    expect(said(world.gateway.requests[0])).toEqual(["user: make it grey <data:image/png;>"]);
    expect(world.platform.replies[0]?.files).toHaveLength(1);
  });

  it("/reset hides what was said from the model, not from people", async () => {
    await world.ask("my name is Ada");
    await world.ask("/reset");
    await world.ask("who am I?");
    expect(said(world.gateway.requests.at(-1))).toEqual(["system: Be brief.", "user: who am I?"]);
    expect(world.platform.replies.at(-1)?.notices).toEqual([]);
    expect(await world.history.history("fake:c1", { maxMessages: 20 })).toHaveLength(6);
  });

  it("/reset outside a conversation says where it works", async () => {
    await world.answered(call("reset", {}));
    expect(world.platform.replies[0]?.failure?.text).toContain("inside a thread or direct message");
  });

  it("/forget asks first, then removes what the caller said and says what that was", async () => {
    world.answerWith("noted");
    await world.ask("a secret of Ada's");
    await world.ask("and of Bo's", { author: { id: "fake:bo", name: "Bo" } });
    const here = { inConversation: true, isPrivate: true };
    await world.answered(call("forget", {}, here));
    expect(world.platform.replies.at(-1)?.text).toContain("/forget where:here confirm:yes");
    expect(await world.history.history("fake:c1", { maxMessages: 10 })).toHaveLength(4);

    await world.answered(call("forget", { confirm: true }, here));
    expect(world.platform.replies.at(-1)?.text).toContain("1 message");
    const left = JSON.stringify(await world.history.history("fake:c1", { maxMessages: 10 }));
    expect(left).not.toContain("secret of Ada");
    expect(left).toContain("and of Bo");
  });

  it("/export shows the conversation as files", async () => {
    await world.ask("look", { attachments: [{ id: "png", name: "cat.png", source: null }] });
    await world.answered(call("export", {}, { inConversation: true, isPrivate: true }));
    const files = world.platform.replies.at(-1)?.files ?? [];
    expect(files.map(({ mediaType }) => mediaType)).toEqual([
      "text/markdown",
      "application/json",
      "image/png",
    ]);
    expect(Buffer.from(files[0]!.bytes).toString()).toContain("look");
  });

  it("/export packs pictures where the platform wants one archive", async () => {
    const { guide } = world.platform.platform;
    Object.assign(world.platform.platform, { guide: { ...guide, exportsAs: "archive" } });
    const exported = async () => {
      await world.answered(call("export", {}, { inConversation: true, isPrivate: true }));
      return world.platform.replies.at(-1)?.files ?? [];
    };
    await world.ask("hello");
    expect((await exported()).map(({ name }) => name)).toEqual(["conversation.md", "conversation.json"]);
    await world.ask("look", { attachments: [{ id: "png", name: "cat.png", source: null }] });
    const files = await exported();
    expect(files.map(({ name }) => name)).toEqual([
      "conversation.md",
      "conversation.json",
      "conversation.zip",
    ]);
    expect(Object.keys(unzipSync(files[2]!.bytes))).toEqual([
      "conversation.md",
      "conversation.json",
      expect.stringMatching(/^image-\w{12}\.png$/),
    ]);
  });

  it("/export leaves out what the platform does not take, and reads no more of it than that", async () => {
    Object.assign(world.platform.platform, { maxUploadBytes: () => 20_000 });
    world.answerWith("x".repeat(9000));
    await world.ask("long");
    await world.answered(call("export", {}, { inConversation: true, isPrivate: true }));
    const names = () => world.platform.replies.at(-1)?.files.map(({ name }) => name);
    expect(names()).toEqual(["conversation.md", "conversation.json"]);
    world.answerWith('"'.repeat(9000));
    await world.ask("longer as JSON");
    await world.answered(call("export", {}, { inConversation: true, isPrivate: true }));
    expect(names()).toEqual(["conversation.md"]);
    expect(world.platform.replies.at(-1)?.notices.join()).toContain("1 more file is kept");
    await world.ask("too long");
    await world.answered(call("export", {}, { inConversation: true, isPrivate: true }));
    expect(names()).toEqual([]);
    expect(world.platform.replies.at(-1)).toMatchObject({ state: "failed" });
  });

  it("/export by one person runs once at a time, and holds nobody up", async () => {
    const text = "e\u0301`\n".repeat(25_000);
    for (let n = 0; n < 6; n += 1) {
      const parts = Array.from(
        { length: 10 },
        (_, at) => ({ kind: "file", name: `${at}.py`, text }) as const,
      );
      await world.store.conversations.append("fake:c1", { ...messageOf(`m${n}`, "x"), parts });
    }
    const { platform } = world.platform;
    const openReply = platform.openReply.bind(platform);
    let open = 0;
    let most = 0;
    platform.openReply = (address, hooks) => {
      const reply = openReply(address, hooks);
      return {
        ...reply,
        attach: async (file) => {
          open += 1;
          most = Math.max(most, open);
          for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
          open -= 1;
          await reply.attach(file);
        },
      };
    };
    const problem = await holdUpOf(() =>
      Promise.all(
        Array.from({ length: 8 }, () =>
          world.answered(call("export", {}, { inConversation: true, isPrivate: true })),
        ),
      ),
    );
    expect(problem).toBeUndefined();
    expect(most).toBe(1);
  }, 120_000);

  it("/models lists and searches", async () => {
    await world.answered(call("models", { search: "LIST" }));
    expect(world.platform.replies[0]?.text).toBe(
      "1 of 2 models match:\n- `listener`: transcribes **(default for transcription)**",
    );
  });

  it("that is wrong is kept as it was written, with what was wrong, for people only", async () => {
    await world.ask("/imagine a fox count:9");
    const [asked, failed] = await world.history.history("fake:c1", { maxMessages: 10 });
    expect(asked).toMatchObject({ parts: [{ text: "/imagine a fox count:9" }], inContext: false });
    expect(failed).toMatchObject({
      outcome: "failed",
      turnKey: asked?.turnKey,
      attempt: 1,
      failure: expect.stringContaining("count"),
    });
  });

  it.each([
    ["imagine", { prompt: "x", size: "big" }, "size"],
    ["imagine", { prompt: "x", count: 9 }, "a whole number from 1 to 4"],
    ["ask", {}, "prompt"],
    ["ask", { prompt: "x", model: "chaty" }, "Did you mean `chatty`?"],
    ["nonsense", {}, "There is no command /nonsense"],
  ])("/%s with %o is told what is wrong", async (name, options, words) => {
    await world.answered(call(name, options));
    expect(world.platform.replies[0]?.state).toBe("failed");
    expect(world.platform.replies[0]?.failure?.text).toContain(words);
  });
});

describe("a command whose store fails at its end", () => {
  it("stays open, and is answered and stored when the store is back", async () => {
    const { inbox } = world.store;
    const write = inbox.write.bind(inbox);
    let isAway = true;
    vi.spyOn(inbox, "write").mockImplementation(async (attempt, what) => {
      if (isAway && what.kind === "end") throw new ParleyError("store-unavailable", "away for a moment");
      return await write(attempt, what);
    });
    await world.assistant.receive(call("models", {}, { inConversation: true }));
    await vi.waitFor(() => expect(world.platform.replies[0]?.state).toBe("abandoned"));
    expect(await inbox.open()).toHaveLength(1);
    isAway = false;
    await world.settled();
    const ended = world.platform.replies.at(-1);
    expect(ended).toMatchObject({ state: "finished", text: expect.stringContaining("models") });
    expect(await inbox.open()).toEqual([]);
    const log = await world.history.history("fake:c1", { maxMessages: 10 });
    expect(log.map(({ role, outcome }) => [role, outcome])).toEqual([
      ["user", undefined],
      ["assistant", "complete"],
    ]);
  });
});

describe("/imagine with pictures", () => {
  let world: World;
  afterEach(async () => {
    await world.close();
  });

  /** Runs `/imagine` with a picture and resolves to the notices of its answer. */
  async function noticesOf(options: Readonly<Record<string, string>>): Promise<readonly string[]> {
    const image = { id: "png", name: "a.png", source: null };
    await world.answered(call("imagine", { prompt: "at night", image, ...options }));
    const [reply] = world.platform.replies.splice(0);
    expect(reply?.state).toBe("finished");
    return reply?.notices ?? [];
  }

  test("a picture is changed by a model that can, and the reply says so where the usual one cannot", async () => {
    world = await createWorld({
      files: { png: await fixture("picture.png") },
      models: [
        { id: "painter", capabilities: { generatesImages: true, drawsInChat: false } },
        { id: "editor", capabilities: { chats: true, drawsInChat: true, seesImages: true } },
        { id: "both", capabilities: { generatesImages: true, drawsInChat: true } },
      ],
    });
    const words = "The model `painter` cannot change pictures, so `editor` did.";
    expect(await noticesOf({})).toContain(words);
    expect(await noticesOf({ model: "editor" })).not.toContain(words);
    await world.store.settings.change("fake:ada", { "image-model": "painter" });
    await world.clock.advance(3000);
    expect(await noticesOf({})).toContain(words);
    await world.store.settings.change("fake:ada", { "image-model": "both" });
    await world.clock.advance(3000);
    expect((await noticesOf({})).join()).not.toContain("cannot change pictures");
    await world.store.settings.change("fake:ada", { "image-model": "gone" });
    await world.clock.advance(3000);
    const explained = await noticesOf({});
    expect(explained.join()).toContain("so `editor` was used");
    expect(explained.join()).not.toContain("painter");
    expect(world.gateway.requests.map(({ model }) => model)).toEqual([
      "editor",
      "editor",
      "editor",
      "both",
      "editor",
    ]);
  });
});
