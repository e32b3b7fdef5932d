import { describe, expect, it } from "vitest";
import { createInHand } from "../../../../src/assistant/scheduling/in-flight-events.ts";

describe("createInHand", () => {
  it("says when a key is let go of, at once where it is not held", async () => {
    const inHand = createInHand();
    await inHand.untilFree("a");
    inHand.add("a");
    let isFree = false;
    const waiting = inHand.untilFree("a").then(() => {
      isFree = true;
    });
    // Let go of and taken up again in the same breath is not free.
    inHand.delete("a");
    inHand.add("a");
    await Promise.resolve();
    await Promise.resolve();
    expect(isFree).toBe(false);
    inHand.delete("a");
    await waiting;
    expect(inHand.size).toBe(0);
  });
});
