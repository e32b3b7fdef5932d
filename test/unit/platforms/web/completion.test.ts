import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { usageOf } from "../../../../src/core/command.ts";
import { toCommandView } from "../../../../src/platforms/web/messages.ts";
import type { CommandView } from "../../../../src/platforms/web/views.ts";
import { loadPageModule } from "./page-module.ts";
import { testCommands } from "./page-server.ts";

interface Suggestion {
  readonly insert: string;
  readonly label: string;
}
interface Completion {
  readonly kind: string;
  readonly from: number;
  readonly to: number;
  readonly isEager: boolean;
  readonly modelQuery?: string;
  readonly suggestions: readonly Suggestion[];
}
const { accept, complete, commandOf } = await loadPageModule<{
  readonly complete: (
    text: string,
    caret: number,
    commands: readonly CommandView[],
  ) => Completion | undefined;
  readonly accept: (
    text: string,
    completion: Completion,
    suggestion: Suggestion,
  ) => { text: string; caret: number };
  readonly commandOf: (text: string, commands: readonly CommandView[]) => CommandView | undefined;
}>("completion");

const commands = [...testCommands.values()].map((command) => toCommandView(command, usageOf(command)));
const at = (marked: string) => {
  const caret = marked.indexOf("|");
  return complete(marked.replace("|", ""), caret, commands);
};
const labels = (marked: string) => at(marked)?.suggestions.map(({ label }) => label);

describe("completion", () => {
  it("offers commands at the beginning of a message only", () => {
    expect(labels("/|")).toEqual(["/imagine", "/models"]);
    expect(labels("/mo|")).toEqual(["/models"]);
    expect(labels("/age|")).toBeUndefined();
    expect(labels("/agi|")).toEqual(["/imagine"]);
    expect(labels("say /im|")).toBeUndefined();
    expect(labels("|")).toBeUndefined();
  });

  it("accepts a suggestion with Enter unless the word is complete", () => {
    expect(at("/model|")?.isEager).toBe(true);
    expect(at("/models|")?.isEager).toBe(false);
    expect(at("/imagine a cat co|")?.isEager).toBe(false);
    expect(at("/imagine a cat count:|")?.isEager).toBe(true);
    expect(at("/imagine a cat count:3|")?.isEager).toBe(false);
  });

  it("offers unused options, except the free-text one and attachments", () => {
    expect(labels("/imagine |")).toEqual(["model:", "count:", "private:"]);
    expect(labels("/imagine a c|")).toEqual(["count:"]);
    expect(labels("/imagine count:2 a c|")).toBeUndefined();
    expect(labels("/imagine a |")).toBeUndefined();
    expect(labels("/nothing c|")).toBeUndefined();
  });

  it("offers values, and requests model ids", () => {
    expect(labels("/imagine a cat count:|")).toEqual(["1", "2", "3", "4"]);
    expect(labels("/imagine a cat count:9|")).toBeUndefined();
    expect(at("/imagine a cat model:gp|")).toMatchObject({ modelQuery: "gp", suggestions: [] });
  });

  it("replaces the word by the suggestion and puts the caret after it", () => {
    const text = "/imagine a cat co and more";
    const completion = complete(text, "/imagine a cat co".length, commands)!;
    expect(accept(text, completion, completion.suggestions[0]!)).toEqual({
      text: "/imagine a cat count:and more",
      caret: "/imagine a cat count:".length,
    });
    expect(accept("/mod", at("/mod|")!, at("/mod|")!.suggestions[0]!).text).toBe("/models ");
  });

  it("finds the command of a text by the same rules as the server", () => {
    expect(commandOf("/imagine", commands)?.name).toBe("imagine");
    expect(commandOf("/IMAGINE a", commands)?.name).toBe("imagine");
    expect(commandOf("/imagine/a", commands)).toBeUndefined();
    expect(commandOf(" /imagine", commands)).toBeUndefined();
  });

  it("changes nothing outside the completed word", () => {
    const fragments = fc.constantFrom("/", "imagine", "im", " ", "model:", "count:", "a", "\n", "é", "🦊");
    fc.assert(
      fc.property(fc.array(fragments, { maxLength: 12 }), fc.nat(), (words, position) => {
        const text = words.join("");
        const caret = position % (text.length + 1);
        const completion = complete(text, caret, commands);
        for (const suggestion of completion?.suggestions ?? []) {
          const taken = accept(text, completion!, suggestion);
          expect(taken.text.startsWith(text.slice(0, completion!.from) + suggestion.insert)).toBe(true);
          expect(taken.text.endsWith(text.slice(completion!.to).replace(/^ /, ""))).toBe(true);
          expect(taken.caret).toBe(completion!.from + suggestion.insert.length);
        }
      }),
    );
  });
});
