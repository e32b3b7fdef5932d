import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { createPictureShelf } from "../../../src/embedded-gateway/load-image.ts";
import { longText } from "../../../src/embedded-gateway/sandbox/chat-model.ts";
import { toTokens, toWords } from "../../../src/embedded-gateway/sandbox/sandbox.ts";

describe("tokens", () => {
  it("joined are the text again, with all characters whole", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => {
        expect(toTokens(text).join("")).toBe(text);
        expect(toWords(text).join("")).toBe(text);
        if (text.isWellFormed()) expect(toTokens(text).every((token) => token.isWellFormed())).toBe(true);
      }),
    );
  });
});

describe("small limits", () => {
  const label = "*Parley sandbox: I answer by rules, no language model is connected.*\n\nYou wrote: “hello”";

  it.each([1, 5, 20])("%d tokens are at most as many words", (count) => {
    const words = toTokens(label).slice(0, count).join("").trim().split(/\s+/);
    expect(words.length).toBeLessThanOrEqual(count);
  });

  it("9,000 characters fit the default limit", () => {
    expect(toTokens(`${label}${longText("write 9000 characters")}`).length).toBeLessThan(1024);
  });
});

describe("long answers", () => {
  it.each([
    ["Write 9,000 characters", 9000],
    ["send 9k chars", 9000],
    ["send 1 character", 1],
    ["write 2 characters", 2],
    ["write 100 characters", 100],
    ["write 10000000 characters", 100_000],
  ])("to %j are so long", (request, chars) => {
    expect(longText(request)).toHaveLength(chars);
  });

  it.each(["hello", "9000 characters", "write something", "write 0 characters"])(
    "are not given to %j",
    (request) => {
      expect(longText(request)).toBeUndefined();
    },
  );
});

describe("picture shelf", () => {
  const picture = (bytes: number) => ({
    bytes: Buffer.alloc(bytes),
    mediaType: "image/png",
    extension: "png",
  });

  it("evicts the least recently used, and all after their lifetime", () => {
    vi.useFakeTimers();
    // The faked clock starts at 0, which the cache reads as no time.
    vi.advanceTimersByTime(1);
    const shelf = createPictureShelf({ ttlMs: 1000, maxBytes: 100 });
    const [first, second] = [shelf.put(picture(60)), shelf.put(picture(60))];
    expect(first).toMatch(/^\/pictures\/[\w-]{32}\.png$/);
    expect(shelf.get(first)).toBeUndefined();
    expect(shelf.get(second)?.bytes).toHaveLength(60);
    vi.advanceTimersByTime(1001);
    expect(shelf.get(second)).toBeUndefined();
    vi.useRealTimers();
  });
});
