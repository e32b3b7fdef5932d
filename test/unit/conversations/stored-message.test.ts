import { describe, expect, it } from "vitest";
import type { StoredMessage } from "../../../src/core/storage.ts";
import { type Slot, toMessage } from "../../../src/conversations/slots.ts";

const parts = [{ kind: "text", text: "x" }] as const;
const v1 = (id: string, more: Partial<StoredMessage> = {}): Slot => ({
  id,
  role: id.endsWith("/user") ? "user" : "assistant",
  parts,
  createdAt: 1,
  estimatedTokens: 5,
  ...more,
  turnKey: undefined,
});

describe("a message stored by version 1", () => {
  it.each([
    ["slack:T1:C1:1699.01/user", "slack:T1:C1:1699.01", undefined],
    ["discord:11/assistant/1", "discord:11", 1],
    ["discord:11/first/assistant/12", "discord:11/first", 12],
    ["a\nb/user/user", "a\nb/user", undefined],
    ["without a suffix", "without a suffix", undefined],
  ])("has the turn and attempt of its id %j", (id, turnKey, attempt) => {
    const message = toMessage(v1(id));
    expect(message).toMatchObject({ id, turnKey, parts });
    expect(message?.attempt).toBe(attempt);
    expect(message).not.toHaveProperty("failure");
  });

  it("has its failure out of its notices", () => {
    const notices = ["The context was cut.", "The gateway is away."];
    const failed = toMessage(v1("k/assistant/1", { outcome: "failed", notices }));
    expect(failed).toMatchObject({ failure: "The gateway is away.", notices: ["The context was cut."] });
    const interrupted = toMessage(v1("k/assistant/1", { outcome: "interrupted", notices }));
    expect(interrupted).toMatchObject({ notices });
    expect(interrupted).not.toHaveProperty("failure");
    expect(toMessage(v1("k/assistant/1", { outcome: "failed", notices: [] }))).not.toHaveProperty("failure");
  });
});

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
