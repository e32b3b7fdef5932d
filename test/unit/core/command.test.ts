import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createCommandSet, defineCommand, parseCommandLine, usageOf } from "../../../src/core/command.ts";
import { parseCommandText, parseOptions } from "../../../src/core/command-input.ts";
import ask from "../../../commands/ask.ts";
import imagine from "../../../commands/imagine.ts";
import transcribe from "../../../commands/transcribe.ts";
import { doNothing } from "../../support/empty-result.ts";

describe("parseCommandText", () => {
  it("takes name:value anywhere and gives the rest to the free text", () => {
    expect(parseCommandText(imagine, 'a red size:64x64 fox count:2 model:"my model"')).toEqual({
      prompt: "a red fox",
      size: "64x64",
      count: "2",
      model: "my model",
    });
  });

  it("leaves unknown names and times of day in the text", () => {
    expect(parseCommandText(ask, "what happens at 12:30 in note:this?")).toEqual({
      prompt: "what happens at 12:30 in note:this?",
    });
  });

  it("keeps the lines of the text", () => {
    expect(parseCommandText(ask, "first\n  second\nmodel:x")).toEqual({
      prompt: "first\n  second",
      model: "x",
    });
  });

  it("turns an image address into a link attachment", () => {
    const options = parseCommandText(ask, "what is this? image:https://pictures.example/cat.png?w=3");
    expect(options["image"]).toMatchObject({
      name: "cat.png",
      linkUrl: "https://pictures.example/cat.png?w=3",
    });
    expect(options["prompt"]).toBe("what is this?");
  });

  it("gives free text back unchanged where it names no option", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        fc.pre(!/(^|\s)(image|model|private):/i.test(text));
        expect(parseCommandText(ask, text)["prompt"] ?? "").toBe(text.trim());
      }),
    );
  });
});

describe("parseOptions", () => {
  it("gives text values their types", () => {
    expect(parseOptions(ask, { prompt: "x", private: "yes" })).toEqual({ prompt: "x", private: true });
    expect(parseOptions(imagine, { prompt: "x", count: "3" })).toEqual({ prompt: "x", count: 3 });
  });

  it.each([
    [ask, {}, "prompt"],
    [ask, { prompt: "" }, "prompt"],
    [imagine, { prompt: "x", count: "2.5" }, "count"],
    [imagine, { prompt: "x", count: 0 }, "count"],
    [ask, { prompt: "x", private: "maybe" }, "private"],
    [ask, { prompt: "x", colour: "red" }, "colour"],
    [transcribe, { file: "text" }, "file"],
    [
      ask,
      { prompt: "x", image: { id: "a", name: "a", source: null, linkUrl: "http://10.0.0.1/x" } },
      "image",
    ],
    [ask, { prompt: "x".repeat(6001) }, "prompt"],
  ])("%# refuses and names the option", (command, raw, option) => {
    expect(() => parseOptions(command, raw)).toThrow(
      expect.objectContaining({
        code: "invalid-option",
        detail: expect.objectContaining({ option }) as unknown,
      }) as Error,
    );
  });
});

describe("a declaration", () => {
  const base = { name: "x", description: "d", visibility: "public", run: doNothing } as const;

  it("that a platform would refuse stops the start", () => {
    expect(() => defineCommand({ ...base, name: "No Spaces", options: {} })).toThrow("command /No Spaces");
    expect(() => defineCommand({ ...base, description: "", options: {} })).toThrow("1 to 100 characters");
    expect(() =>
      defineCommand({
        ...base,
        options: {
          first: { kind: "boolean", description: "d" },
          second: { kind: "boolean", description: "d", required: true },
        },
      }),
    ).toThrow("required options come first");
  });

  it("with a name that is taken stops the start", () => {
    expect(() => createCommandSet([ask, ask])).toThrow("two commands are called /ask");
  });

  it("tells how it is written", () => {
    expect(usageOf(imagine)).toBe("/imagine <prompt> [image:…] [model:…] [size:…] [count:1-4]");
  });
});

describe("parseCommandLine", () => {
  it("reads name and text, whatever the case of the name", () => {
    expect(parseCommandLine(" /ASK  What is this?\nAnd that? ")).toEqual({
      name: "ask",
      text: "What is this?\nAnd that?",
    });
    expect(parseCommandLine("/models")).toEqual({ name: "models", text: "" });
  });

  it.each(["hello", "what does /imagine do?", "/ imagine x", "//imagine x", "/"])(
    "%j is no command",
    (text) => {
      expect(parseCommandLine(text)).toBeUndefined();
    },
  );
});

describe("a message command", () => {
  const declare = (messageCommand: Parameters<typeof defineCommand>[0]["messageCommand"]) => () =>
    defineCommand({
      name: "translate",
      description: "Translate",
      options: {
        text: { kind: "string", description: "What", required: true },
        language: { kind: "string", description: "Into", required: true },
      },
      visibility: "private",
      ...(messageCommand === undefined ? {} : { messageCommand }),
      run: doNothing,
    });

  it("fills options from the message and asks for others", () => {
    expect(declare({ label: "Translate this", fills: { text: "text" }, asks: ["language"] })).not.toThrow();
  });

  it.each([
    [{ label: "T", fills: { text: "text" } }, "the required option language is neither filled nor asked for"],
    [{ label: "T", fills: { text: "file" } }, "option text cannot be filled with the message's file"],
    [{ label: "T", asks: ["text", "language", "tone"] }, "option tone cannot be asked for"],
    [{ label: "", asks: ["text", "language"] }, "label is 1 to 32 characters"],
  ] as const)("is refused where its declaration is wrong: %j", (messageCommand, problem) => {
    expect(declare(messageCommand)).toThrow(problem);
  });
});
