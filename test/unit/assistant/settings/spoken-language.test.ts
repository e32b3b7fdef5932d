import { expect, test } from "vitest";
import { toSpokenLanguage } from "../../../../src/assistant/settings/turn-settings.ts";

test.each([
  [{ value: "German", from: "person" }, "de"],
  [{ value: "Japanese", from: "conversation" }, "ja"],
  [{ value: "German", from: "server" }, undefined],
  [{ value: "Italian", from: "person" }, undefined],
  [{ value: "automatic", from: "person" }, undefined],
  [undefined, undefined],
] as const)("the setting %j speaks %s", (language, expected) => {
  expect(toSpokenLanguage(language === undefined ? {} : { language })).toBe(expected);
});
