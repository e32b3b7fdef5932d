import { describe, expect, it } from "vitest";
import { toTitle } from "../../../src/conversations/title.ts";

const blob = { hash: "0".repeat(64), mediaType: "image/png", sizeBytes: 1 };

describe("the title of a conversation nobody has named", () => {
  it.each([
    [
      "the first line said",
      [{ kind: "text", text: "\n  What is a sloop?\nAnd a ketch?" }],
      "What is a sloop?",
    ],
    ["what was spoken", [{ kind: "voice", blob, name: "note.ogg", text: "Hello there" }], "Hello there"],
    ["the name of a picture", [{ kind: "image", blob, name: "ship.png" }], "ship.png"],
    [
      "the words after a picture without a name",
      [
        { kind: "image", blob, name: "" },
        { kind: "text", text: "This" },
      ],
      "This",
    ],
    ["a plain word where there is nothing", [], "Conversation"],
  ] as const)("is %s", (_, parts, title) => {
    expect(toTitle({ parts })).toBe(title);
  });

  it("is cut after 60 characters as people count them", () => {
    const family = "👨‍👩‍👧‍👦";
    expect(toTitle({ parts: [{ kind: "text", text: family.repeat(60) }] })).toBe(family.repeat(60));
    expect(toTitle({ parts: [{ kind: "text", text: family.repeat(61) }] })).toBe(`${family.repeat(59)}…`);
  });

  it("is a plain word for a message that is gone", () => {
    expect(toTitle(undefined)).toBe("Conversation");
  });
});
