import { describe, expect, test } from "vitest";
import type { Actor } from "../../../../src/core/access.ts";
import { isParleyError } from "../../../../src/core/errors.ts";
import { message, worldOfEachTest } from "../../../support/fakes.ts";

const person = (name: string): Actor => ({
  platform: "fake",
  author: { id: `fake:${name}`, name },
  origin: { user: `fake:user:${name}`, isMember: true, isManager: false },
});

describe("a rating of an answer", () => {
  const world = worldOfEachTest({ rules: { deny: ["fake:user:eve"] } });

  async function answered(): Promise<string> {
    await world.answered(message("hello"));
    const details = world.platform.replies[0]?.actions.find(({ kind }) => kind === "details");
    return details?.key ?? "";
  }

  test("is stored with the answer without the name of whom it is from", async () => {
    const key = await answered();
    expect(await world.assistant.rate(key, "good", person("bo"))).toBe("rated");
    expect(await world.assistant.rate(key, "good", person("bo"))).toBe("unchanged");
    expect(await world.assistant.rate(key, "bad", person("cleo"))).toBe("rated");
    const [conversationId = ""] = key.split(" ");
    const [answer] = (await world.store.conversations.recent(conversationId, { maxMessages: 5 })).filter(
      ({ role }) => role === "assistant",
    );
    expect(Object.values(answer?.ratings ?? {})).toEqual(["good", "bad"]);
    expect(JSON.stringify(answer?.ratings)).not.toMatch(/bo|cleo/);
  });

  test("of what is not stored, or of another platform, is none; whom the rules refuse is refused", async () => {
    const key = await answered();
    expect(await world.assistant.rate("fake:none /x/answer", "good", person("bo"))).toBe("gone");
    expect(await world.assistant.rate("no key", "good", person("bo"))).toBe("gone");
    expect(await world.assistant.rate(key, "good", { ...person("bo"), platform: "other" })).toBe("gone");
    await expect(world.assistant.rate(key, "good", person("eve"))).rejects.toSatisfy((error) =>
      isParleyError(error, "access-denied"),
    );
  });
});
