import { expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createRecentProblems } from "../../../../src/operations/dashboard/recent-problems.ts";
import { createLog } from "../../../../src/operations/log.ts";

test("keeps warnings and errors with their code, turn and request, the newest first", () => {
  const problems = createRecentProblems();
  const log = createLog({ level: "info", secrets: ["hidden-key"], write: (line) => problems.take(line) });
  log.info({}, "nothing wrong");
  log.warn({ platform: "slack", turn: "slack:1" }, "slow with hidden-key");
  const detail = { requestId: "req-7" };
  log.error({ err: new ParleyError("gateway-refused", "refused", { detail }) }, "gateway call failed");
  expect(problems.read()).toEqual([
    {
      time: expect.stringMatching(/^\d{4}-/),
      level: "error",
      message: "gateway call failed",
      code: "gateway-refused",
      reason: "refused",
      requestId: "req-7",
    },
    {
      time: expect.stringMatching(/^\d{4}-/),
      level: "warn",
      message: "slow with [secret]",
      platform: "slack",
      turn: "slack:1",
    },
  ]);
});

test("keeps so many, cuts long reasons, and passes over lines that are no JSON", () => {
  const problems = createRecentProblems(2);
  const log = createLog({ level: "info", secrets: [], write: (line) => problems.take(line) });
  for (const n of [1, 2, 3]) log.error({ err: new ParleyError("internal", "x".repeat(5000)) }, `number ${n}`);
  problems.take('{"level":"error", cut');
  expect(problems.read().map(({ message }) => message)).toEqual(["number 3", "number 2"]);
  expect(problems.read()[0]?.reason?.length).toBeLessThan(400);
});

// Attack: Requests without a login that push the last real problems off the dashboard, or fill the
// log. What holds: five lines of a kind, and a line a minute.
test("many of one kind, such as what strangers cause, leave the others their places", () => {
  const problems = createRecentProblems();
  const log = createLog({ level: "info", secrets: [], write: (line) => problems.take(line) });
  for (const n of [1, 2, 3]) log.error({ turn: `discord:${n}` }, "gateway call failed");
  for (let n = 0; n < 1000; n += 1) log.warn({ path: `/api/${n}` }, "request refused: wrong origin");
  expect(problems.read().filter(({ message }) => message === "gateway call failed")).toHaveLength(3);
  expect(problems.read()).toHaveLength(8);
});
