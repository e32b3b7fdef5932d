import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  findMeantPictures,
  mayAskForChange,
  parseAskedChange,
} from "../../../../src/assistant/turn/ask-model.ts";
import { showPictures } from "../../../../src/assistant/turn/stored-messages.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { ChatEvent } from "../../../../src/core/gateway.ts";
import type { MessagePart, StoredMessage } from "../../../../src/core/storage.ts";
import { createWorld, type World } from "../../../support/assistant-world.ts";
import { call, message, said } from "../../../support/fakes.ts";
import { silentLog } from "../../../support/silent-log.ts";
import { worldOfEachTest } from "../../../support/world-of-each-test.ts";

describe("answers with pictures", () => {
  const image = (byte: number): ChatEvent => ({
    kind: "image",
    image: { bytes: new Uint8Array([byte, 2, 3]), mediaType: "image/png" },
  });
  const text: ChatEvent = { kind: "text", text: "Here they are." };
  const finish: ChatEvent = { kind: "finish", reason: "stop", model: "m", usage: { isEstimated: true } };

  describe("pictures of a chat answer", () => {
    let world: World;
    afterEach(() => world.close());

    async function answered(...events: readonly (ChatEvent | Error)[]) {
      world = await createWorld();
      world.gateway.answerWith(async function* answer() {
        for (const event of events) {
          await Promise.resolve();
          if (event instanceof Error) throw event;
          yield event;
        }
      });
      await world.answered(message("draw cats"));
      return world.platform.replies[0]!;
    }

    test("are shown once the answer is stored, with the prompt as alt text", async () => {
      const reply = await answered(image(1), image(2), text, image(3), finish);
      expect(reply.files.map(({ name, altText }) => [name, altText])).toEqual([
        ["picture-1.png", "draw cats"],
        ["picture-2.png", "draw cats"],
        ["picture-3.png", "draw cats"],
      ]);
      expect(reply.state).toBe("finished");
      expect(reply.actions.map(({ kind }) => kind)).toEqual(["again", "change", "details", "good", "bad"]);
    });

    test("that arrived before it broke off are shown and kept", async () => {
      const reply = await answered(image(1), image(2), new ParleyError("gateway-unreachable", "cut"));
      expect(reply.files.map(({ name }) => name)).toEqual(["picture-1.png", "picture-2.png"]);
      expect(reply.state).toBe("failed");
      const log = await world.store.conversations.recent("fake:c1", { maxMessages: 10 });
      const stored = log.find(({ role }) => role === "assistant");
      expect(stored?.outcome).toBe("interrupted");
      expect(stored?.parts).toHaveLength(2);
    });
  });

  describe("showPictures", () => {
    const picture = (hash: string): MessagePart => ({
      kind: "image",
      blob: { hash, mediaType: "image/png", sizeBytes: 3 },
      name: `${hash}.png`,
      altText: "a cat",
    });
    const blobs = {
      conversations: {
        getBlob: (_: string, hash: string) =>
          Promise.resolve(
            hash === "lost" ? undefined : { bytes: new Uint8Array([1, 2, 3]), mediaType: "image/png" },
          ),
      },
      log: silentLog,
    };

    test("attaches all in one tick, whatever is between them", async () => {
      const groups: string[][] = [];
      let current: string[] | undefined;
      const parts = [picture("a"), { kind: "text", text: "and" } as const, picture("b"), picture("c")];
      await showPictures(blobs, "c", parts, {
        async attach({ name }) {
          if (current === undefined) {
            current = [];
            groups.push(current);
            void Promise.resolve().then(() => (current = undefined));
          }
          current.push(name);
          await new Promise((resolve) => setImmediate(resolve));
        },
      });
      expect(groups).toEqual([["a.png", "b.png", "c.png"]]);
    });

    test("says what is no longer kept", async () => {
      const attach = () => Promise.resolve();
      expect(await showPictures(blobs, "c", [picture("a"), picture("lost")], { attach })).toEqual([
        "1 picture is no longer kept.",
      ]);
    });

    test("says why the platform refuses them, and leaves outages to the next run", async () => {
      const forbidden = new ParleyError("platform-forbidden", "no", {
        detail: { permission: "Attach Files" },
      });
      const [notice] = await showPictures(blobs, "c", [picture("a")], {
        attach: () => Promise.reject(forbidden),
      });
      expect(notice).toContain("The pictures could not be shown here.");
      expect(notice).toContain("Attach Files");
      const outage = new ParleyError("platform-unreachable", "down");
      const attach = () => Promise.reject(outage);
      await expect(showPictures(blobs, "c", [picture("a")], { attach })).rejects.toBe(outage);
    });
  });
});

describe("the picture that is meant", () => {
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
      expect(await world.assistant.press(again, by)).toMatchObject({
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
});
