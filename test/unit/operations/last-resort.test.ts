import { afterEach, describe, expect, it } from "vitest";
import { ParleyError } from "../../../src/core/errors.ts";
import { createLog, installLastResort } from "../../../src/operations/log.ts";

const events = ["unhandledRejection", "uncaughtException"] as const;

describe("last-resort handlers", () => {
  const before = new Map(events.map((event) => [event, process.listeners(event as "uncaughtException")]));
  const codes: number[] = [];
  let written = "";
  afterEach(() => {
    for (const event of events)
      for (const listener of process.listeners(event as "uncaughtException"))
        if (before.get(event)?.includes(listener) !== true) process.off(event, listener);
    codes.length = 0;
    written = "";
  });
  /** Returns the handlers that were installed, without those of the test runner. */
  const install = (secrets: readonly string[] = []) => {
    const log = createLog({ level: "info", secrets, write: (line) => void (written += line) });
    installLastResort({ log: () => log, exit: (code) => void codes.push(code) });
    const [rejected, thrown] = events.map((event) =>
      process
        .listeners(event as "uncaughtException")
        .find((listener) => before.get(event)?.includes(listener) !== true),
    ) as unknown as ((reason: unknown) => void)[];
    return { rejected: rejected!, thrown: thrown! };
  };

  it("logs a rejection with its stack and goes on", () => {
    install().rejected(new ParleyError("internal", "provoked"));
    expect(written).toContain("unhandled rejection");
    expect(written).toContain("last-resort.test.ts");
    expect(codes).toEqual([]);
  });

  it("logs an exception and ends with code 1", () => {
    install().thrown(new Error("provoked"));
    expect(written).toContain("uncaught exception");
    expect(written).toContain("last-resort.test.ts");
    expect(codes).toEqual([1]);
  });

  it("writes no secrets", () => {
    install(["sk-secret-1"]).rejected(new Error("refused key sk-secret-1"));
    expect(written).not.toContain("sk-secret-1");
  });

  it.each([
    undefined,
    null,
    "text",
    Object.create(null),
    {
      toString() {
        throw new Error("unprintable");
      },
    },
    new Proxy({}, {}),
    Symbol("s"),
  ])("logs %o, which is not an Error", (thrown) => {
    expect(() => install().rejected(thrown)).not.toThrow();
    expect(written).toContain("not an Error");
  });

  it("ends also when the log fails", () => {
    installLastResort({
      log: () => {
        throw new Error("the log is broken");
      },
      exit: (code) => void codes.push(code),
    });
    const thrown = process.listeners("uncaughtException").at(-1)!;
    expect(() => thrown(new Error("provoked"), "uncaughtException")).toThrow("the log is broken");
    expect(codes).toEqual([1]);
  });
});
