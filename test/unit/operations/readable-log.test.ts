import { expect, test } from "vitest";
import { ParleyError } from "../../../src/core/errors.ts";
import { createLog, toReadableLine } from "../../../src/operations/log.ts";

/** Returns what a terminal shows for one line of the log. */
function shown(write: (log: ReturnType<typeof createLog>) => void, isColoured = false): string {
  const lines: string[] = [];
  write(
    createLog({
      level: "debug",
      secrets: ["secret-token"],
      write: (line) => lines.push(toReadableLine(line, { isColoured })),
    }),
  );
  return lines.join("");
}

test("a line has the time of day, the level in a word, the message, the reason and its fields", () => {
  const cause = new ParleyError("gateway-unreachable", "no connection");
  const err = new ParleyError("platform-unreachable", "the socket is closed", { cause });
  expect(
    shown((log) => log.warn({ platform: "discord", err, retryInMs: 1000 }, "connection failed")),
  ).toMatch(
    /^\d\d:\d\d:\d\d warning {2}connection failed: the socket is closed: no connection \(platform discord, retryInMs 1000\)\n$/,
  );
  expect(shown((log) => log.info({}, "turn ended"))).toMatch(/^\d\d:\d\d:\d\d info {5}turn ended\n$/);
});

test("secrets stay hidden, and lists are written as they are", () => {
  const line = shown((log) => log.error({ keys: ["secret-token", "b"] }, "secret-token is wrong"));
  expect(line).toContain('error    [secret] is wrong (keys ["[secret]","b"])');
});

test("an error that nobody has foreseen keeps its stack, below the line", () => {
  const line = shown((log) => log.error({ err: new TypeError("x is not a function") }, "request failed"));
  expect(line).toMatch(/request failed: x is not a function\n {9}at /);
  expect(line).not.toContain('"stack"');
});

test("levels have a colour where the terminal has some", () => {
  expect(shown((log) => log.warn({}, "w"), true)).toContain("\u001B[33mwarning\u001B[39m");
  expect(shown((log) => log.info({}, "i"), true)).not.toContain("\u001B");
});

test("what is no JSON stays as it is", () => {
  expect(toReadableLine("plain words\n", { isColoured: false })).toBe("plain words\n");
});
