import { afterEach, describe, expect, test } from "vitest";
import { toSpokenLanguage } from "../../src/assistant/settings/settings-reader.ts";
import { parseCommandText, parseOptions } from "../../src/core/command-input.ts";
import { defineCommand } from "../../src/core/command.ts";
import { readCapabilities } from "../../src/gateway/model-catalogue.ts";
import { createHistory } from "../../src/operations/dashboard/history.ts";
import { createMeter, createMetrics } from "../../src/operations/metrics.ts";
import { createCompletionReader } from "../../src/wire/completion-chunk.ts";
import { createScrub, toAttemptError } from "../../src/wire/failures.ts";
import { createSharedMemory } from "../support/memory-records.ts";
import { silentLog } from "../support/silent-log.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { doNothing } from "../support/empty-result.ts";

/** Names that every plain object has, or that change its prototype. */
const names = ["__proto__", "constructor", "toString", "hasOwnProperty"];
const own = Object.getOwnPropertyNames(Object.prototype);

afterEach(() => {
  expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(own);
  expect(Object.keys({}.constructor)).toEqual([]);
});

describe.each(names)("something is called %s", (name) => {
  test("a model: its answers are counted like those of any other", async () => {
    const clock = createManualClock(Date.UTC(2026, 0, 1));
    const metrics = createMetrics();
    const history = createHistory({ metrics, records: createSharedMemory().records, clock, log: silentLog });
    for (let n = 0; n < 2; n++) {
      metrics.take({
        kind: "asked",
        operation: "chat",
        outcome: "ok",
        model: name,
        seconds: 2,
        usage: { isEstimated: false },
      });
      metrics.take({ kind: "refused", platform: "slack", code: name });
    }
    const { models, refused } = await history.day();
    expect(models).toMatchObject([{ model: name, answers: 2 }]);
    expect(Object.entries(refused)).toEqual([[name, 2]]);
  });

  test("the reason for the end of an answer: another reason", () => {
    const choices = [{ delta: { content: "Hi" }, finish_reason: name }];
    expect(createCompletionReader().read({ choices }).ending).toEqual({ reason: "other", word: name });
  });

  test("the type of an error in a successful answer: the gateway failed", () => {
    for (const info of [{ type: name }, { code: name }])
      expect(
        toAttemptError(
          { operation: "chat", model: "m", status: 200, headers: {}, info: { message: "no", ...info } },
          createScrub(undefined),
        ).failure.code,
      ).toBe("gateway-error");
  });

  test("a capability of a model: none that is known", () => {
    const plain = readCapabilities({ id: "m", capabilities: [] });
    expect(readCapabilities({ id: "m", capabilities: [name] })).toEqual(plain);
  });

  test("a language: none of Parley's own", () => {
    expect(toSpokenLanguage({ language: { value: name, from: "person" } })).toBeUndefined();
  });

  test("what looks like an option of a command: free text, and unknown as an option", () => {
    const command = defineCommand({
      name: "say",
      description: "Says it",
      options: { text: { kind: "string", description: "What" } },
      visibility: "public",
      run: doNothing,
    });
    expect(parseCommandText(command, `${name}:x hello`)).toEqual({ text: `${name}:x hello` });
    expect(() => parseOptions(command, Object.fromEntries([[name, "x"]]))).toThrow(/say/);
  });
});

test("a meter that fails fails nobody who reports, and says so once", () => {
  const lines: string[] = [];
  const meter = createMeter(() => {
    throw new Error("full");
  }, createMemoryLog(lines));
  for (let n = 0; n < 3; n++) meter({ kind: "accepted", platform: "slack" });
  expect(lines).toHaveLength(1);
});
