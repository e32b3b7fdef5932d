import { describe, expect, test } from "vitest";
import { createDoubleClicks } from "../../../../src/assistant/actions/take-press.ts";
import type { Actor } from "../../../../src/core/access.ts";
import type { CommandCall } from "../../../../src/core/events.ts";
import type { ActionCall, PressResult, ReplyAction } from "../../../../src/core/press.ts";
import { call, message } from "../../../support/fakes.ts";
import { worldOfEachTest } from "../../../support/world-of-each-test.ts";

const ada: Actor = {
  platform: "fake",
  author: { id: "fake:ada", name: "Ada" },
  origin: { user: "fake:user:ada", isMember: true, isManager: false },
};
const eve: Actor = {
  ...ada,
  author: { id: "fake:eve", name: "Eve" },
  origin: { ...ada.origin!, user: "fake:user:eve" },
};

describe("pictures", () => {
  const world = worldOfEachTest({ rules: { deny: ["fake:user:eve"] } });

  /** Draws, and resolves to the reply's button of that kind. */
  async function drawn(
    kind: "again" | "change",
    options: CommandCall["options"] = { prompt: "a fox", size: "64x64", count: 2 },
    more: Partial<CommandCall> = { inConversation: true },
  ): Promise<ReplyAction> {
    await world.answered(call("imagine", options, more));
    return world.platform.replies.at(-1)!.actions.find((action) => action.kind === kind)!;
  }

  const toCall = (result: PressResult): ActionCall => {
    if (result.kind !== "call") throw new Error(`no call but ${result.kind}`);
    return result.call;
  };

  /** Does what a platform does with a call. */
  async function run({ name, options, pictures, conversationId }: ActionCall) {
    await world.answered(
      call(name, options, {
        ...(pictures === undefined ? {} : { pictures }),
        ...(conversationId === undefined ? {} : { conversationId, inConversation: true }),
      }),
    );
    return world.platform.replies.at(-1)!;
  }

  test("of a command that stands alone are drawn again alone", async () => {
    const action = await drawn("again", { prompt: "a fox" }, {});
    expect(toCall(await world.assistant.press(action, ada)).conversationId).toBeUndefined();
  });

  test("of a chat answer are asked for again in the same words", async () => {
    world.gateway.answerWith(async function* answer(request) {
      yield { kind: "image", image: { bytes: new Uint8Array([1, 2]), mediaType: "image/png" } };
      yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
    });
    await world.answered(message("please draw a cat"));
    const action = world.platform.replies[0]!.actions.find(({ kind }) => kind === "again")!;
    expect(toCall(await world.assistant.press(action, ada))).toMatchObject({
      name: "ask",
      options: { prompt: "please draw a cat", model: "chatty" },
      conversationId: "fake:c1",
    });
  });

  test("are changed by what a form says, and the reply says from which picture", async () => {
    const action = await drawn("change");
    const opened = await world.assistant.press(action, ada);
    expect(opened).toMatchObject({
      kind: "form",
      form: { fields: [{ name: "change" }, { name: "picture" }] },
    });
    const blank = await world.assistant.press({ ...action, values: { change: " ", picture: "1" } }, ada);
    expect(blank).toMatchObject({ kind: "problems", problems: { change: "Say what should change." } });
    world.gateway.answerWith(async function* answer(request) {
      yield { kind: "image", image: { bytes: new Uint8Array([7, 7]), mediaType: "image/png" } };
      yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
    });
    const values = { change: "make it blue", picture: "2" };
    const reply = await run(toCall(await world.assistant.press({ ...action, values }, ada)));
    const sent = world.gateway.requests.at(-1)?.messages.at(-1)?.content;
    // The second picture that the fake gateway draws ends with a 1.
    const url = `data:image/png;base64,${Buffer.from([0x89, 0x50, 1]).toString("base64")}`;
    expect(sent).toEqual([
      { kind: "text", text: "make it blue" },
      { kind: "image", url },
    ]);
    expect(reply.notices[0]).toMatch(
      /^Changed from picture 2 of 2 “a fox” \(\d{4}-\d\d-\d\d \d\d:\d\d UTC\)\.$/,
    );
    expect(reply.files).toHaveLength(1);
  });

  test("of a command that stands alone are changed with the bytes in the new conversation", async () => {
    const action = await drawn("change", { prompt: "a fox" }, {});
    const opened = await world.assistant.press(action, ada);
    expect(opened).toMatchObject({ kind: "form", form: { fields: [{ name: "change" }] } });
    world.gateway.answerWith(async function* answer(request) {
      yield { kind: "image", image: { bytes: new Uint8Array([7, 7]), mediaType: "image/png" } };
      yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
    });
    const reply = await run(
      toCall(await world.assistant.press({ ...action, values: { change: "make it blue" } }, ada)),
    );
    expect(reply.notices[0]).toContain("Changed from the picture “a fox”");
    const again = reply.actions.find(({ kind }) => kind === "again")!;
    // An answer that was a change is changed in the same way once more.
    expect((await run(toCall(await world.assistant.press(again, ada)))).notices[0]).toContain("Changed from");
  });

  test("are gone with their answer, for people without access refused, and private ones their owner's alone", async () => {
    const action = await drawn("again");
    await expect(world.assistant.press(action, eve)).rejects.toMatchObject({ code: "access-denied" });
    const bo = { ...ada, author: { id: "fake:bo", name: "Bo" } };
    expect((await world.assistant.press({ ...action, isPrivate: true }, bo)).kind).toBe("gone");
    await world.assistant.changed({ kind: "delete-conversation", conversationId: "fake:c1" });
    expect((await world.assistant.press(action, ada)).kind).toBe("gone");
    expect((await world.assistant.press({ ...action, kind: "change" }, ada)).kind).toBe("gone");
  });
});

describe("recent presses", () => {
  const person = (platform: string, name: string): Actor => ({
    platform,
    author: { id: `${platform}:${name}`, name },
    origin: undefined,
  });
  test("a second press within a second is a double click, later ones are meant", () => {
    const clock = { now: 1000 };
    const isFirst = createDoubleClicks(() => clock.now);
    expect(isFirst("again x", person("slack", "ada"))).toBe(true);
    clock.now += 900;
    expect(isFirst("again x", person("slack", "ada"))).toBe(false);
    expect(isFirst("again x", person("slack", "bo"))).toBe(true);
    clock.now += 1000;
    expect(isFirst("again x", person("slack", "ada"))).toBe(true);
  });
});
