import { describe, expect, it } from "vitest";
import { toConversationTitle } from "../../../src/conversations/conversation-index.ts";

const blob = { hash: "0".repeat(64), mediaType: "image/png", sizeBytes: 1 };

describe("the title of a conversation that has none of its own", () => {
  it.each([
    [
      "the first message in one line",
      [{ kind: "text", text: "\n  What is a sloop?\nAnd a ketch?" }],
      "What is a sloop? And a ketch?",
    ],
    [
      "the transcript of a voice note",
      [{ kind: "voice", blob, name: "note.ogg", text: "Hello there" }],
      "Hello there",
    ],
    ["the name of a picture", [{ kind: "image", blob, name: "ship.png" }], "ship.png"],
    [
      "the text after a picture without a name",
      [
        { kind: "image", blob, name: "" },
        { kind: "text", text: "This" },
      ],
      "This",
    ],
    [
      "what a command was asked, without its name and options",
      [{ kind: "text", text: "/imagine a sailing boat at dusk size:1024x1024 count:2" }],
      "a sailing boat at dusk",
    ],
    ["a command that asks nothing", [{ kind: "text", text: "/models" }], "/models"],
    ["a path that is no command", [{ kind: "text", text: "/usr/bin is what?" }], "/usr/bin is what?"],
    ["a fixed word for an empty message", [], "Conversation"],
  ] as const)("is %s", (_, parts, title) => {
    expect(toConversationTitle({ parts })).toBe(title);
  });

  it("is cut after 60 characters as people count them", () => {
    const family = "👨‍👩‍👧‍👦";
    expect(toConversationTitle({ parts: [{ kind: "text", text: family.repeat(60) }] })).toBe(
      family.repeat(60),
    );
    expect(toConversationTitle({ parts: [{ kind: "text", text: family.repeat(61) }] })).toBe(
      `${family.repeat(59)}…`,
    );
  });

  it("is a fixed word for an erased message", () => {
    expect(toConversationTitle(undefined)).toBe("Conversation");
  });
});
