import { describe, expect, it } from "vitest";
import { createAllowedModels } from "../../../../src/assistant/access/access.ts";
import { createModelChoice, suggestModels } from "../../../../src/assistant/turn/model-choice.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { Gateway, Model, ModelCapabilities } from "../../../../src/core/gateway.ts";

const signal = new AbortController().signal;
const none = { chat: undefined, image: undefined, transcription: undefined };

function choiceOf(models: Record<string, ModelCapabilities>, allowed: readonly string[] = []) {
  const list: Model[] = Object.entries(models).map(([id, capabilities]) => ({ id, capabilities }));
  const gateway: Partial<Gateway> = { listModels: () => Promise.resolve(list), knownModels: () => list };
  return createModelChoice(gateway as Gateway, none, createAllowedModels(allowed));
}

describe("the model for a picture", () => {
  it("is one that generates, before one that draws in its answers", async () => {
    const choice = choiceOf({
      chat: { chats: true },
      both: { drawsInChat: true },
      draws: { generatesImages: true },
    });
    expect(await choice.choose("image", undefined, signal)).toBe("draws");
  });

  it("may be one that draws in its answers, unless it is known not to generate", async () => {
    const choice = choiceOf({
      no: { drawsInChat: true, generatesImages: false },
      both: { drawsInChat: true },
    });
    expect(await choice.choose("image", undefined, signal)).toBe("both");
    const without = choiceOf({ no: { drawsInChat: true, generatesImages: false } });
    await expect(without.choose("image", undefined, signal)).rejects.toMatchObject({
      code: "gateway-unsupported",
    });
  });
});

describe("with MODELS_ALLOWED", () => {
  const models = {
    "gpt-5": { chats: true },
    "gpt-4.1": { chats: true },
    "gpt-4.1-mini": { chats: true },
    "dall-e-3": { generatesImages: true, chats: false },
  };

  it("the default is the first that is allowed", async () => {
    expect(await choiceOf(models, ["gpt-4*"]).choose("chat", undefined, signal)).toBe("gpt-4.1");
    await expect(choiceOf(models, ["gpt-4*"]).choose("image", undefined, signal)).rejects.toMatchObject({
      code: "gateway-unsupported",
    });
  });

  it("one that is not allowed is refused with those that are and can do it", async () => {
    const choice = choiceOf(models, ["gpt-4*", "dall-e*"]);
    await expect(choice.choose("chat", "gpt-5", signal)).rejects.toMatchObject({
      code: "model-not-allowed",
      detail: { model: "gpt-5", allowed: "`gpt-4.1`, `gpt-4.1-mini`" },
    });
    expect(await choice.choose("chat", "gpt-4.1-mini", signal)).toBe("gpt-4.1-mini");
  });

  it("the suggestion for an unknown one is allowed", async () => {
    await expect(choiceOf(models, ["gpt-4*"]).choose("chat", "gpt-4.2", signal)).rejects.toMatchObject({
      code: "gateway-unknown-model",
      detail: { suggestion: "gpt-4.1" },
    });
  });
});

describe("for pictures", () => {
  const models = {
    blind: { chats: true, seesImages: false },
    unknown: { chats: true },
    draws: { chats: true, seesImages: true, drawsInChat: true },
    sees: { chats: true, seesImages: true },
    listens: { seesImages: true, chats: false },
  };

  it("a model that reads only text is replaced by one that sees and answers in words", async () => {
    expect(await choiceOf(models).insteadForPictures("blind", signal)).toBe("sees");
    expect(await choiceOf(models, ["blind", "draws"]).insteadForPictures("blind", signal)).toBe("draws");
    expect(await choiceOf(models, ["blind"]).insteadForPictures("blind", signal)).toBeUndefined();
  });

  it("a model that sees, or may, is kept", async () => {
    for (const model of ["sees", "unknown", "not listed"])
      expect(await choiceOf(models).insteadForPictures(model, signal)).toBeUndefined();
  });
});

describe("suggestions", () => {
  const list: Model[] = Object.entries({
    plain: {},
    chatty: { chats: true },
    painter: { chats: false, generatesImages: true },
    both: { chats: true, drawsInChat: true },
    no: { chats: true, drawsInChat: true, generatesImages: false },
    ears: { chats: false, transcribes: true },
  }).map(([id, capabilities]) => ({ id, capabilities }));

  it.each([
    ["chat", ["plain", "chatty", "both", "no"]],
    ["image", ["painter", "both", "plain"]],
    ["transcription", ["ears", "plain"]],
    [undefined, ["plain", "chatty", "painter", "both", "no", "ears"]],
  ] as const)("for %s are those that can do it, then those of which nothing is known", (operation, ids) => {
    expect(suggestModels(list, "", { operation })).toEqual(ids);
  });

  it("are filtered by what was typed, the beginnings first, and bounded", () => {
    expect(suggestModels(list, " A ", {})).toEqual(["plain", "chatty", "painter", "ears"]);
    expect(suggestModels(list, "p", { max: 1 })).toEqual(["plain"]);
  });
});

describe("without a list of models", () => {
  const gateway: Partial<Gateway> = {
    listModels: () =>
      Promise.reject(new ParleyError("gateway-unsupported", "x", { detail: { lacks: "models" } })),
    knownModels: () => [],
  };

  it("a model that is asked for by name is taken", async () => {
    const choice = createModelChoice(gateway as Gateway, none, createAllowedModels([]));
    expect(await choice.choose("chat", "local", signal)).toBe("local");
    expect(await choice.choose("image", "painter", signal)).toBe("painter");
  });

  it("there is no default, and the words do not point to a list", async () => {
    const choice = createModelChoice(gateway as Gateway, none, createAllowedModels([]));
    await expect(choice.choose("chat", undefined, signal)).rejects.toMatchObject({
      code: "gateway-unsupported",
      detail: { lacks: "models" },
    });
    const some = createModelChoice(gateway as Gateway, none, createAllowedModels(["gpt-*"]));
    await expect(some.choose("chat", "local", signal)).rejects.toMatchObject({
      code: "model-not-allowed",
      detail: { lacks: "models" },
    });
  });
});
