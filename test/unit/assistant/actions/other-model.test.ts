import { beforeEach, describe, expect, test } from "vitest";
import type { Model } from "../../../../src/core/gateway.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import { ada, call } from "../../../support/fakes.ts";
import { worldOfEachTest } from "../../../support/world-of-each-test.ts";

const sees = { chats: true, seesImages: true } as const;
const models: readonly Model[] = [
  { id: "usual", capabilities: sees },
  { id: "maker/large", capabilities: sees },
  { id: "maker/large-blind", capabilities: { chats: true, seesImages: false } },
  { id: "painter", capabilities: { generatesImages: true, chats: false } },
  { id: "listener", capabilities: { transcribes: true } },
];

describe("Regenerate with another model", () => {
  const world = worldOfEachTest({ models });
  beforeEach(() => answerByName());

  function answerByName(): void {
    world.gateway.answerWith(async function* answer(request) {
      yield { kind: "text", text: `by ${request.model}` };
      yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
    });
  }

  async function offered(by = ada): Promise<readonly string[]> {
    const result = await world.assistant.press(world.button("model"), by);
    if (result.kind !== "form") throw new Error(JSON.stringify(result));
    expect(result.form.fields).toHaveLength(1);
    return result.form.fields[0]?.options?.map(({ value }) => value) ?? [];
  }

  const choose = (model: string, by = ada) =>
    world.assistant.press({ ...world.button("model"), values: { model } }, by);

  test("offers only models that take pictures where people have shown some", async () => {
    await world.renew({ models, files: { png: await fixture("picture.png") } });
    answerByName();
    await world.ask("what is this?", { attachments: [{ id: "png", name: "picture.png", source: {} }] });
    expect(await offered()).toEqual(["maker/large"]);
    expect(await choose("maker/large-blind")).toEqual({
      kind: "problems",
      problems: {
        model: "maker/large-blind does not take pictures, and there are some here. Choose another model.",
      },
    });
    expect(await choose("maker/large")).toEqual({ kind: "done" });
    await world.settled();
    expect(world.platform.replies.at(-1)).toMatchObject({ text: "by maker/large", notices: [] });
  });

  test("takes a part of a name that one model has; says which there are, or why one cannot answer", async () => {
    await world.renew({ models, allowedModels: ["usual", "maker/*", "painter", "listener"] });
    answerByName();
    await world.ask("why?");
    expect(await choose("  ")).toEqual({
      kind: "problems",
      problems: { model: "Choose a model, or cancel." },
    });
    const problem = async (model: string) => {
      const result = await choose(model);
      return result.kind === "problems" ? result.problems["model"] : result.kind;
    };
    expect(await problem("large")).toBe(
      "Several models have that in their names: maker/large, maker/large-blind. Write one of them.",
    );
    expect(await problem("painter")).toBe("painter does not answer questions. Choose another model.");
    expect(await problem("usual")).toBe(
      "This answer is already by usual. Use Regenerate for another one from it.",
    );
    expect(await problem("secret")).toContain("secret");
    expect(world.gateway.requests).toHaveLength(1);
    expect(await choose("BLIND")).toEqual({ kind: "done" });
    await world.settled();
    expect(world.gateway.requests.at(-1)?.model).toBe("maker/large-blind");
  });

  test("offers nothing that the operator does not allow", async () => {
    await world.renew({ models, allowedModels: ["usual", "painter"] });
    answerByName();
    await world.ask("why?");
    const none = { kind: "told", markdown: "There is no other model that could answer this." };
    expect(await world.assistant.press(world.button("model"), ada)).toEqual(none);
    expect(await choose("maker/large")).toEqual(none);
  });

  test("with a spent budget offers what costs nothing, and refuses the rest", async () => {
    const paid = { inputPerMillionUsd: 1, outputPerMillionUsd: 1 };
    const prices = {
      usual: paid,
      "maker/large": { inputPerMillionUsd: 0, outputPerMillionUsd: 0 },
      "maker/large-blind": paid,
    };
    await world.renew({ models, prices, spending: { personDayUsd: 0.5 } });
    answerByName();
    world.gateway.answerWith(async function* dear(request) {
      yield { kind: "text", text: `by ${request.model}` };
      const usage = { costUsd: request.model === "usual" ? 0.6 : 0, isEstimated: false };
      yield { kind: "finish", reason: "stop", model: request.model, usage };
    });
    await world.ask("why?");
    expect(await offered()).toEqual(["maker/large"]);
    const refused = await choose("maker/large-blind");
    expect(refused).toMatchObject({
      problems: { model: expect.stringContaining("your daily budget") as string },
    });
    expect(await choose("maker/large")).toEqual({ kind: "done" });
    await world.settled();
    expect(world.platform.replies).toMatchObject([{ text: "by maker/large" }]);
    // The one model that is left has made this answer.
    await expect(world.assistant.press(world.button("model"), ada)).rejects.toMatchObject({
      code: "over-budget",
    });
  });

  /** Asks for another answer as a process does that dies then. */
  const again = (of: string, model: string) =>
    world.store.inbox.change({
      kind: "again",
      of,
      reason: "regenerate",
      attempt: 1,
      model,
      isLastOnly: true,
    });

  test("of a command asks the model that was chosen; after a crash too", async () => {
    await world.answered(call("ask", { prompt: "why?", model: "maker/large" }));
    expect(await offered()).toEqual(["usual", "maker/large-blind"]);
    const { key } = world.button("model");
    const [, turnKey = ""] = /^(\S+) /.exec(key) ?? [];
    await again(turnKey.replace(/\/answer$/, ""), "maker/large-blind");
    await world.recover(world.restart());
    expect(world.platform.replies.at(-1)).toMatchObject({ text: "> why?\n\nby maker/large-blind" });
  });

  test("keeps the earlier answer where the model is gone when its turn comes, and says why", async () => {
    await world.ask("why?");
    const { key } = world.button("details");
    const turnKey = key.replace(/.* |\/answer$/g, "");
    await again(turnKey, "retired");
    await world.recover();
    const [reply] = world.platform.replies;
    expect(reply).toMatchObject({ text: "by usual", state: "finished" });
    expect(reply?.notices[0]).toContain("There is no new answer, so this is the earlier one.");
    expect(reply?.notices[0]).toContain("retired");
  });

  test("Continue goes on with the model that has begun", async () => {
    await world.ask("why?");
    world.gateway.answerWith(async function* answer(request) {
      yield { kind: "text", text: `half by ${request.model}` };
      yield { kind: "finish", reason: "length", model: request.model, usage: { isEstimated: true } };
    });
    await choose("maker/large");
    await world.settled();
    expect(await world.assistant.press(world.button("continue"), ada)).toEqual({ kind: "done" });
    await world.settled();
    expect(world.gateway.requests.at(-1)?.model).toBe("maker/large");
  });
});
