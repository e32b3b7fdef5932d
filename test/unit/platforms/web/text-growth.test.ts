import { describe, expect, it } from "vitest";
import { usageOf } from "../../../../src/core/command.ts";
import { toTurnKey, asPerson, sharedPerson } from "../../../../src/platforms/web/address.ts";
import { toCommandView, toEvent } from "../../../../src/platforms/web/messages.ts";
import type { CommandView } from "../../../../src/platforms/web/views.ts";
import { growthOf } from "../../../support/growth.ts";
import { loadPageModule } from "./page-module.ts";
import { testCommands } from "./page-server.ts";

const { complete } = await loadPageModule<{
  readonly complete: (text: string, caret: number, commands: readonly CommandView[]) => unknown;
}>("completion");
const views = [...testCommands.values()].map((command) => toCommandView(command, usageOf(command)));
const sent = (text: string) => {
  try {
    const address = { conversationId: "web:c", replyId: "r" };
    return asPerson(sharedPerson, () => toEvent(testCommands, { address, text, attachments: [] }));
  } catch (error) {
    return error;
  }
};

/** Texts that a person may paste or a script may send. */
const attacks = ["a", " ", "/", "a ", "model:", 'model:"', 'x:"a ', "\n", "/a ", "🦊"];

describe("a hostile text takes time in proportion to its length", () => {
  it.each(attacks)("in completion: %j", (part) => {
    const make = (size: number) => `/imagine ${part.repeat(size / part.length)} b`;
    const work = (text: string) => [
      complete(text, text.length, views),
      complete(text, text.length - 2, views),
    ];
    expect(growthOf(make, work, { size: 10_000 })).toBeLessThan(3);
  });

  it.each(attacks)("as a command: %j", (part) => {
    const make = (size: number) => `/imagine ${part.repeat(size / part.length)}"`;
    expect(growthOf(make, sent, { size: 10_000 })).toBeLessThan(3);
  });

  it.each(["/assistant/1", "/assistant/", "1", "/user"])("as an id: %s", (part) => {
    const make = (size: number) => `/assistant/${part.repeat(size / part.length)}x`;
    expect(growthOf(make, toTurnKey, { size: 10_000 })).toBeLessThan(3);
  });
});
