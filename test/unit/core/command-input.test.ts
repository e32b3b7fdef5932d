import { describe, expect, it, test } from "vitest";
import { resolveInput } from "../../../src/core/command-input.ts";
import { defineCommand } from "../../../src/core/command.ts";
import type { Attachment } from "../../../src/core/events.ts";
import ask from "../../../commands/ask.ts";
import exportCommand from "../../../commands/export.ts";
import imagine from "../../../commands/imagine.ts";
import transcribe from "../../../commands/transcribe.ts";
import { doNothing } from "../../support/empty-result.ts";

const file = (name: string, mediaType?: string): Attachment => ({
  id: name,
  name,
  source: null,
  ...(mediaType === undefined ? {} : { mediaType }),
});
const voice = file("v.ogg", "audio/ogg");
const clip = file("clip.mp4", "video/mp4");
const picture = file("p.png", "image/png");
const author = { id: "fake:ada", name: "Ada" };

describe("the options of a call", () => {
  test("come from text and files together", () => {
    expect(resolveInput(imagine, { text: "a red fox count:2", files: [picture] }).options).toEqual({
      prompt: "a red fox",
      count: "2",
      image: picture,
    });
  });

  it.each([
    [transcribe, [voice, picture], "p.png"],
    [imagine, [picture, file("q.png", "image/png")], "q.png"],
    [ask, [file("notes.txt", "text/plain")], "notes.txt"],
    [exportCommand, [picture], "p.png"],
  ] as const)("do not drop a file: /%s", (command, files, surplus) => {
    const text = command === ask || command === imagine ? "x" : "";
    expect(() => resolveInput(command, { text, files })).toThrow(
      expect.objectContaining({
        code: "invalid-option",
        detail: expect.objectContaining({
          option: surplus,
          problem: expect.stringContaining("does not take this file"),
        }),
      }),
    );
  });

  test("take a video or a file of unknown type for a recording", () => {
    for (const one of [clip, file("note"), file("blob", "application/octet-stream")])
      expect(resolveInput(transcribe, { files: [one] }).options).toEqual({ file: one });
  });
});

describe("a message command", () => {
  const translate = defineCommand({
    name: "translate",
    description: "Translate",
    options: {
      text: { kind: "string", description: "What", required: true },
      language: { kind: "string", description: "Into", required: true },
    },
    visibility: "private",
    messageCommand: { label: "Translate this", fills: { text: "text" }, asks: ["language"] },
    run: doNothing,
  });

  test("takes the message's words and what was asked for", () => {
    const subject = { author, text: "Guten Tag", attachments: [] };
    expect(resolveInput(translate, { options: { language: "en" }, subject }).options).toEqual({
      language: "en",
      text: "Guten Tag",
    });
  });

  test("takes the first file that claims to be of the kind", () => {
    const subject = { author, text: "", attachments: [picture, file("note"), voice] };
    expect(resolveInput(transcribe, { subject }).options).toEqual({ file: voice });
  });

  test("says what the message lacks", () => {
    const subject = { author, text: "", attachments: [picture] };
    expect(() => resolveInput(transcribe, { subject })).toThrow(
      expect.objectContaining({
        detail: expect.objectContaining({ problem: "the message has no voice note or recording" }),
      }),
    );
  });
});

describe("privacy", () => {
  test("is the command's, unless the person says otherwise", () => {
    expect(resolveInput(ask, { text: "hi" }).isPrivate).toBe(false);
    expect(resolveInput(ask, { text: "hi private:yes" }).isPrivate).toBe(true);
    expect(resolveInput(exportCommand, {}).isPrivate).toBe(true);
  });

  test("where one person alone reads anyway, only what they ask for is hidden", () => {
    expect(resolveInput(exportCommand, {}, { isPersonal: true }).isPrivate).toBe(false);
    expect(resolveInput(ask, { text: "hi private:yes" }, { isPersonal: true }).isPrivate).toBe(true);
  });
});
