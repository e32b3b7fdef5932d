import { describe, expect, it } from "vitest";
import { createLog } from "../../../src/operations/log.ts";
import { parseRequestTarget } from "../../../src/support/http/server.ts";
import { growthOf } from "../../support/growth.ts";

const log = createLog({ level: "info", secrets: [], write: () => {} });

describe("a log line with hostile text", () => {
  it.each([
    ["letters", "a"],
    ["addresses", "http://"],
    ["schemes", "a://"],
    ["schemes and users", "a://b:"],
    ["tokens", "Bearer "],
    ["spaces after a token", " "],
  ])("takes time in proportion to its length: %s", (_name, part) => {
    const make = (size: number) => `Bearer${part.repeat(size / part.length)}`;
    expect(growthOf(make, (text) => log.info({ text }, "test"), { size: 20_000 })).toBeLessThan(3);
  });

  it("has no credentials of addresses, wherever they begin", () => {
    const lines: string[] = [];
    const other = createLog({ level: "info", secrets: [], write: (line) => lines.push(line) });
    other.info({}, `xhttp://a:hidden1@b ${"s".repeat(50)}://a:hidden2@b https://a/b#c?sig=hidden3`);
    expect(lines.join("")).not.toMatch(/hidden/);
  });
});

describe("a hostile request target", () => {
  it.each(["/a", "a", "/", "?", "/a.", "%2e"])("takes time in proportion to its length: %s", (part) => {
    const make = (size: number) => `/${part.repeat(size / part.length)}%`;
    expect(growthOf(make, parseRequestTarget, { size: 20_000 })).toBeLessThan(3);
  });
});
