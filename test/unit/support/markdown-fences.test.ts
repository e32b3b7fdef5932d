import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { closeFence, type Fence, parseFence, readFenceLine } from "../../../src/support/markdown-fences.ts";
import { toFenced } from "../../../src/core/quoting.ts";

function readAll(markdown: string): ReturnType<typeof readFenceLine>[] {
  let fence: Fence | undefined;
  return markdown.split("\n").map((line) => {
    const step = readFenceLine(line, fence);
    fence = step.fence;
    return step;
  });
}

const rolesOf = (markdown: string) => readAll(markdown).map(({ role }) => role);

describe("readFenceLine", () => {
  test.each([
    ["```ts\nlet x\n```", ["opener", "code", "closer"]],
    ["~~~\n```\n~~~", ["opener", "code", "closer"]],
    ["````\n```\n`````", ["opener", "code", "closer"]],
    ["```\n``` ts\n```", ["opener", "code", "closer"]],
    ["- ```\n  a\n  ```", ["opener", "code", "closer"]],
    ["> ```\n> a\n> ```\nb", ["opener", "code", "closer", "none"]],
    ["> ```\n> a\nb", ["opener", "code", "none"]],
    ["> ```\n```\na", ["opener", "opener", "code"]],
    ["```\n        ```\na", ["opener", "code", "code"]],
    ["```code```\ntext", ["none", "none"]],
    ["text ```\ntext", ["none", "none"]],
    ["``\n~~", ["none", "none"]],
  ])("%j", (markdown, roles) => {
    expect(rolesOf(markdown)).toEqual(roles);
  });

  test("tells the marker, language, quote and indentation of a block", () => {
    expect(parseFence("```ts title=x")).toEqual({ marker: "```", language: "ts", quote: "", indent: 0 });
    expect(parseFence("  - ~~~~")).toEqual({ marker: "~~~~", language: "", quote: "", indent: 4 });
    expect(parseFence("> > ```")).toMatchObject({ quote: "> > ", indent: 0 });
  });
});

/** Lines that are likely to have something to do with fences. */
const line = fc.oneof(
  fc.stringMatching(/^[> ]{0,4}(?:- |1\. )?(?:`{2,6}|~{2,6})[a-z` ]{0,6}$/),
  fc.string({ maxLength: 12 }).map((text) => text.replaceAll("\n", "")),
);
const markdown = fc.array(line, { maxLength: 12 }).map((lines) => lines.join("\n"));

describe("closeFence", () => {
  test("closes what is open and nothing else", () => {
    expect(closeFence("a\n```js\nlet x")).toBe("a\n```js\nlet x\n```");
    expect(closeFence("a\n````\n```\nlet x")).toBe("a\n````\n```\nlet x\n````");
    expect(closeFence("> ```\n> let x")).toBe("> ```\n> let x\n> ```");
    expect(closeFence("a\n```js\nlet x\n```")).toBe("a\n```js\nlet x\n```");
    expect(closeFence("plain")).toBe("plain");
  });

  test("leaves no block open, keeps the text, and changes nothing the second time", () => {
    fc.assert(
      fc.property(markdown, (text) => {
        const closed = closeFence(text);
        expect(readAll(closed).at(-1)?.fence).toBeUndefined();
        expect(closed.startsWith(text)).toBe(true);
        expect(closeFence(closed)).toBe(closed);
      }),
    );
  });
});

describe("toFenced", () => {
  test("holds any text as code", () => {
    fc.assert(
      fc.property(markdown, (text) => {
        const roles = rolesOf(toFenced(text));
        expect(roles[0]).toBe("opener");
        expect(roles.at(-1)).toBe("closer");
        expect(new Set(roles.slice(1, -1))).toEqual(new Set(["code"]));
      }),
    );
  });
});
