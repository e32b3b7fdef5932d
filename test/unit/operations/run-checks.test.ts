import { describe, expect, it } from "vitest";
import { right, warning, wrong, type Check } from "../../../src/core/checks.ts";
import { ParleyError } from "../../../src/core/errors.ts";
import { runChecks, toExitCode, toReportJson, toReportText } from "../../../src/operations/run-checks.ts";

type RunChecksOptions = Parameters<typeof runChecks>[1];

const options: RunChecksOptions = { isLive: false, secrets: [], now: Date.now };
const toCheck = (subject: string, run: Check["run"]): Check => ({ subject, run });
const run = (checks: readonly Check[], more: Partial<RunChecksOptions> = {}) =>
  runChecks([{ title: "Part", checks }], { ...options, ...more });

describe("runChecks", () => {
  it("runs checks side by side and keeps their order", async () => {
    const { promise: second, resolve } = Promise.withResolvers<void>();
    const sections = await run([
      toCheck("First", async () => {
        await second;
        return [right("First", "done")];
      }),
      toCheck("Second", async () => {
        resolve();
        return [right("Second", "done")];
      }),
    ]);
    expect(sections[0]?.findings.map(({ subject }) => subject)).toEqual(["First", "Second"]);
  });

  it("aborts a check at its deadline and reports it; the others are not affected", async () => {
    let isAborted = false;
    const hanging = toCheck("Slow", ({ signal }) => {
      signal.addEventListener("abort", () => (isAborted = true));
      return new Promise(() => {});
    });
    const sections = await run([hanging, toCheck("Quick", async () => [right("Quick", "done")])], {
      deadlineMs: 20,
    });
    expect(isAborted).toBe(true);
    expect(toReportText(sections)).toContain("✗ Slow   no answer within 0.02 s");
    expect(toReportText(sections)).toContain("✓ Quick  done");
  });

  it("reports a check that fails, with the message of a ParleyError and no other", async () => {
    const sections = await run([
      toCheck("A", async () => {
        throw new ParleyError("config", "the key is missing");
      }),
      toCheck("B", async () => {
        throw new TypeError("secret-text");
      }),
    ]);
    const text = toReportText(sections);
    expect(text).toContain("✗ A  the key is missing");
    expect(text).toContain("✗ B  failed: TypeError");
    expect(text).not.toContain("secret-text");
  });

  it("removes secrets, also where they are encoded in an address", async () => {
    const sections = await run(
      [toCheck("A", async () => [wrong("A", "at http://x/?k=a%2Fb%2Bc1", "not a/b+c1")])],
      { secrets: ["a/b+c1", "abc"] },
    );
    expect(toReportText(sections)).toContain("at http://x/?k=[secret]\n       → not [secret]");
  });
});

describe("the report", () => {
  const sections = [
    { title: "One", findings: [right("Long subject", "fine"), warning("B", "odd", "look")] },
    { title: "Two", findings: [wrong("C", "broken", "mend")] },
  ];

  it("is a line for each finding, its remedy below", () => {
    expect(toReportText(sections)).toBe(`One
  ✓ Long subject  fine
  ! B             odd
                  → look
Two
  ✗ C  broken
       → mend

1 wrong, 1 warning, 1 right.
`);
    expect(toReportText(sections, true)).toContain("\u001b[31m✗\u001b[39m C");
  });

  it("ends with 1 for what is wrong, and with 0 for warnings", () => {
    expect(toExitCode(sections)).toBe(1);
    expect(toExitCode(sections.slice(0, 1))).toBe(0);
    expect(JSON.parse(toReportJson(sections.slice(0, 1)))).toMatchObject({
      ok: true,
      counts: { right: 1, warning: 1, wrong: 0 },
    });
  });
});
