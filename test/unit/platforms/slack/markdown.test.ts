import { expect, test } from "vitest";
import { cutText, escapedBytes } from "../../../../src/platforms/slack/markdown.ts";

test("escapedBytes counts bytes after escaping", () => {
  expect(escapedBytes("a<é")).toBe(1 + 4 + 2);
});

test("cutText does not split a surrogate pair", () => {
  expect(cutText("ab😀cd", 4)).toBe("ab…");
  expect(cutText("abcd", 4)).toBe("abcd");
});
