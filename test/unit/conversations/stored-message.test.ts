import { describe, expect, it } from "vitest";
import type { StoredMessage } from "../../../src/core/storage.ts";
import { toMessage } from "../../../src/conversations/slots.ts";

const parts = [{ kind: "text", text: "x" }] as const;
describe("a slot", () => {
  it("holds a message of today's form as it is", () => {
    const message: StoredMessage = {
      id: "opaque/assistant/7",
      role: "assistant",
      turnKey: "k",
      attempt: 2,
      parts,
      createdAt: 1,
      estimatedTokens: 5,
      outcome: "failed",
      notices: ["a", "b"],
    };
    expect(toMessage(message)).toBe(message);
  });

  it("holds no message when it is free or erased", () => {
    expect(toMessage(undefined)).toBeUndefined();
    expect(toMessage({ forgotten: true, id: "k/user" })).toBeUndefined();
  });
});
