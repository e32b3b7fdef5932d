import { beforeEach, describe, expect, test } from "vitest";
import {
  findMeantPictures,
  mayAskForChange,
  parseAskedChange,
} from "../../../../src/assistant/turn/meant-pictures.ts";
import type { ChatEvent } from "../../../../src/core/gateway.ts";
import type { StoredMessage } from "../../../../src/core/storage.ts";
import { call, message, said, worldOfEachTest } from "../../../support/fakes.ts";

function answer(id: string, prompt: string, count: number, shownAs: readonly string[] = []): StoredMessage {
  const parts = Array.from({ length: count }, (_, index) => ({
    kind: "image" as const,
    blob: { hash: `${id}${index}`, mediaType: "image/png", sizeBytes: 1 },
    name: `picture-${index + 1}.png`,
    altText: prompt,
  }));
  return { id, role: "assistant", turnKey: id, parts, createdAt: 0, estimatedTokens: 1, shownAs };
}

const none = { find: () => Promise.resolve(undefined) };
const fox = answer("a", "a fox", 2, ["k1"]);
const cat = answer("b", "a cat", 1);

describe("the pictures that can be meant", () => {
  test("are the newest, the last one last; those replied to come after all others", async () => {
    const plain = await findMeantPictures(none, "c", {
      history: [fox, cat],
      lastPicture: undefined,
      repliesTo: undefined,
    });
    expect(plain?.pictures.map(({ named }) => [named.prompt, named.number])).toEqual([
      ["a fox", 1],
      ["a fox", 2],
      ["a cat", 1],
    ]);
    const replied = await findMeantPictures(none, "c", {
      history: [fox, cat],
      lastPicture: undefined,
      repliesTo: "k1",
    });
    expect(replied?.pictures.map(({ named }) => named.prompt)).toEqual(["a cat", "a fox", "a fox"]);
    expect(replied?.note).toContain("The person replies to the message with pictures 2 to 3.");
  });

  test("are the last one of the conversation where the history has none", async () => {
    const find = (_: string, id: string) => Promise.resolve(id === "b" ? cat : undefined);
    const known = { history: [answer("x", "words", 0)], lastPicture: "b", repliesTo: undefined };
    expect((await findMeantPictures({ find }, "c", known))?.pictures).toHaveLength(1);
    expect(await findMeantPictures(none, "c", known)).toBeUndefined();
  });

  test("are at most eight", async () => {
    const history = Array.from({ length: 5 }, (_, index) => answer(`m${index}`, `p${index}`, 4));
    const meant = await findMeantPictures(none, "c", {
      history,
      lastPicture: undefined,
      repliesTo: undefined,
    });
    expect(meant?.pictures).toHaveLength(8);
    expect(meant?.pictures.at(-1)?.named.prompt).toBe("p4");
  });
});

describe("a request for a change", () => {
  test("is read from the whole answer, whatever number it names", async () => {
    const meant = (await findMeantPictures(none, "c", {
      history: [fox, cat],
      lastPicture: undefined,
      repliesTo: undefined,
    }))!;
    const asked = (text: string) => {
      const change = parseAskedChange(text, meant);
      return change === undefined ? undefined : [change.picture.named.prompt, change.instruction];
    };
    expect(asked('<change_picture number="2"> make it blue </change_picture>')).toEqual([
      "a fox",
      "make it blue",
    ]);
    expect(asked('\n<change_picture number="99">blue</change_picture>\nThere.')).toEqual(["a cat", "blue"]);
    expect(asked("I could write <change_picture> here")).toBeUndefined();
    expect(asked('<change_picture number="1"></change_picture>')).toBeUndefined();
  });

  test("is held back while an answer may become one", () => {
    for (const text of ["", " ", "<", "<change_", '<change_picture number="1">blu'])
      expect(mayAskForChange(text)).toBe(true);
    for (const text of ["<b", "Hello", "< change_picture"]) expect(mayAskForChange(text)).toBe(false);
  });
});

describe("a chat model without pictures of its own", () => {
  const world = worldOfEachTest({
    models: [
      { id: "words", capabilities: { chats: true, drawsInChat: false, seesImages: false } },
      { id: "painter", capabilities: { generatesImages: true, drawsInChat: true } },
    ],
  });
  beforeEach(async () => {
    await world.answered(call("imagine", { prompt: "a fox", count: 2 }, { inConversation: true }));
  });

  const image: ChatEvent = {
    kind: "image",
    image: { bytes: new Uint8Array([7, 7]), mediaType: "image/png" },
  };

  function answersWith(text: string): void {
    world.gateway.answerWith(async function* answer(request) {
      if (request.model === "painter") yield image;
      else for (const piece of text.match(/.{1,9}/gs) ?? []) yield { kind: "text", text: piece };
      yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
    });
  }

  async function ask(text: string) {
    await world.answered(message(text));
    return world.platform.replies.at(-1)!;
  }

  test("has the picture that it names changed, and the reply says which; Again does the same once more", async () => {
    answersWith('<change_picture number="1">make the fox blue</change_picture>');
    const reply = await ask("make the first one blue");
    expect(said(world.gateway.requests[0])[0]).toContain('1: "a fox" (picture 1 of 2 in its message)');
    expect(reply.text).toBe("");
    expect(reply.files.map(({ altText }) => altText)).toEqual(["make the fox blue"]);
    expect(reply.notices.join()).toContain("Changed from picture 1 of 2 “a fox”");
    const changed = world.gateway.requests[1]?.messages[0]?.content;
    expect(changed).toEqual([
      { kind: "text", text: "make the fox blue" },
      { kind: "image", url: `data:image/png;base64,${Buffer.from([0x89, 0x50, 0]).toString("base64")}` },
    ]);
    const again = reply.actions.find(({ kind }) => kind === "again")!;
    const by = { platform: "fake", author: { id: "fake:ada", name: "Ada" } };
    expect(await world.assistant.act(again, by)).toMatchObject({
      kind: "call",
      call: {
        name: "imagine",
        options: { prompt: "make the fox blue", model: "painter" },
        pictures: [{ conversationId: "fake:c1", number: 1 }],
      },
    });
  });

  test("answers all else in words, also when they begin like a request", async () => {
    answersWith("<change nothing> is what I would do.");
    const reply = await ask("what is it?");
    expect(reply.text).toBe("<change nothing> is what I would do.");
    expect(reply.files).toEqual([]);
    expect(reply.notices.join()).not.toContain("Changed");
  });

  test("knows the last picture when hundreds of messages came after it, also after a restart; not after /reset", async () => {
    answersWith("yes");
    const { conversations } = world.store;
    for (let index = 0; index < 210; index += 1)
      await conversations.append("fake:c1", {
        id: `filler${index}`,
        role: "user",
        turnKey: `filler${index}`,
        parts: [{ kind: "text", text: "chatter" }],
        createdAt: 1,
        estimatedTokens: 2,
      });
    world.restart();
    answersWith('<change_picture number="2">blue</change_picture>');
    expect((await ask("make it blue")).notices.join()).toContain("Changed from picture 2 of 2 “a fox”");
    await world.answered(call("reset", {}, { inConversation: true }));
    answersWith("What is blue?");
    await ask("make it green");
    expect(said(world.gateway.requests.at(-1)).join()).not.toContain("change_picture");
  });
});
