import { describe, expect, it } from "vitest";
import { estimatePartsTokens } from "../../../../src/assistant/turn/stored-messages.ts";
import type { Model } from "../../../../src/core/gateway.ts";
import { createWorld } from "../../../support/assistant-world.ts";
import { holdUpOf } from "../../../support/longest-turn.ts";
import { messageOf } from "../../../support/store-samples.ts";

const messageChars = 60_000;

describe.each([32_000, 2_000_000])("a short question to a model of %i tokens", (contextLength) => {
  it.each(["e\u0301\u0301 ", "a\n"])(
    "after 38 long messages of %j holds nobody up",
    async (part) => {
      const model = { id: "m", contextLength, capabilities: { chat: true } } as unknown as Model;
      const world = await createWorld({ models: [model] });
      try {
        const text = part.repeat(messageChars).slice(0, messageChars);
        for (let n = 0; n < 38; n += 1) {
          const parts = [{ kind: "text", text }] as const;
          const said = { parts, estimatedTokens: estimatePartsTokens(parts) };
          const author = { id: `fake:${n % 2}`, name: "Bo" };
          await world.store.conversations.append("fake:c1", { ...messageOf(`m${n}`, "x"), author, ...said });
        }
        world.answerWith("short");
        await world.ask("short?");
        expect(await holdUpOf(() => world.ask("short?"))).toBeUndefined();
      } finally {
        await world.close();
      }
    },
    60_000,
  );
});
