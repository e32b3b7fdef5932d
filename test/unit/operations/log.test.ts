import { describe, expect, it } from "vitest";
import { ParleyError } from "../../../src/core/errors.ts";
import { createLog } from "../../../src/operations/log.ts";

function capture(level: "debug" | "info" = "info") {
  const lines: string[] = [];
  const log = createLog({
    level,
    secrets: ["sk-very-secret", 'with"quote'],
    write: (line) => {
      lines.push(line);
    },
  });
  return { log, lines };
}

describe("createLog", () => {
  it("writes one JSON object a line with level, time and fields", () => {
    const { log, lines } = capture();
    log.child({ platform: "discord" }).info({ turns: 2 }, "turns resumed");
    expect(JSON.parse(lines[0]!)).toMatchObject({
      level: "info",
      platform: "discord",
      turns: 2,
      msg: "turns resumed",
    });
  });

  it("redacts secrets in every field", () => {
    const { log, lines } = capture();
    const cause = new Error('GET https://cdn.example/a.png?sig=abc&x=1 Bearer abcdefghijkl with"quote');
    log.error(
      {
        err: new ParleyError("gateway-error", "key sk-very-secret refused", { cause }),
        url: "redis://user:pass@host:6379/0",
      },
      "sk-very-secret",
    );
    const text = lines.join("");
    for (const secret of ["sk-very-secret", 'with\\"quote', "sig=abc", "abcdefghijkl", "user:pass"]) {
      expect(text).not.toContain(secret);
    }
    expect(JSON.parse(lines[0]!)).toMatchObject({ err: { code: "gateway-error" } });
  });

  it("writes nothing below its level", () => {
    const { log, lines } = capture();
    log.debug({}, "detail");
    expect(lines).toEqual([]);
  });
});
