import { describe, expect, it } from "vitest";
import { createLabelConversation } from "../../../src/assistant/label-conversation.ts";
import { ParleyError } from "../../../src/core/errors.ts";
import type { ConversationSettings } from "../../../src/core/storage.ts";

const by = { platform: "web", author: { id: "web:local", name: "You" } };

function setUp({ isAllowed = true } = {}) {
  const saved: ConversationSettings[] = [];
  const label = createLabelConversation({
    conversations: {
      exists: (id) => Promise.resolve(id === "web:1"),
      saveSettings: async (_id, settings) => void saved.push(settings),
    },
    async expectAllowed() {
      if (!isAllowed) throw new ParleyError("access-denied", "the rules do not allow it");
    },
  });
  return { label, saved };
}

describe("labels of a conversation", () => {
  it("are one line of at most 100 characters, and what is not given stays", async () => {
    const { label, saved } = setUp();
    expect(await label("web:1", { name: "  The\nplan  for\tOslo " }, by)).toBe(true);
    expect(await label("web:1", { name: "😀".repeat(200) }, by)).toBe(true);
    expect(await label("web:1", { isPinned: true }, by)).toBe(true);
    expect(saved).toEqual([{ name: "The plan for Oslo" }, { name: "😀".repeat(100) }, { isPinned: true }]);
  });

  it("are removed by an empty name and by unpinning", async () => {
    const { label, saved } = setUp();
    await label("web:1", { name: " ", isPinned: false }, by);
    expect(saved).toEqual([{ name: undefined, isPinned: undefined }]);
    expect(Object.keys(saved[0] ?? {})).toEqual(["name", "isPinned"]);
  });

  it("create no conversation, and need access", async () => {
    const { label, saved } = setUp();
    expect(await label("web:2", { name: "x" }, by)).toBe(false);
    await expect(setUp({ isAllowed: false }).label("web:1", { name: "x" }, by)).rejects.toMatchObject({
      code: "access-denied",
    });
    expect(saved).toEqual([]);
  });
});
