import { describe, expect, it } from "vitest";
import { createModelChoice } from "../../../../src/assistant/turn/model-choice.ts";
import type { Gateway, Model, ModelCapabilities } from "../../../../src/core/gateway.ts";

const signal = new AbortController().signal;
const none = { chat: undefined, image: undefined, transcription: undefined };

function choiceOf(models: Record<string, ModelCapabilities>) {
  const list: Model[] = Object.entries(models).map(([id, capabilities]) => ({ id, capabilities }));
  const gateway: Partial<Gateway> = { listModels: () => Promise.resolve(list), knownModels: () => list };
  return createModelChoice(gateway as Gateway, none);
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
