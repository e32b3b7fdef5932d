import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "..", "..");

/**
 * Who reads the system's clock, which may step, and why. Durations and deadlines use `performance.now`,
 * stored times, ages and ids of Discord a `Clock`.
 * @see docs/turn.md
 */
const allowed: Readonly<Record<string, string>> = {
  "src/support/clock.ts": "the clock of the process",
  "src/operations/log.ts": "the time of log lines, as other programs write it",
  "src/embedded-gateway/sandbox/sandbox.ts": "`created` of an answer, which nobody compares",
  "src/embedded-gateway/upstreams/forwarder.ts":
    "`created` of a model and of pictures, which nobody compares",
  "src/platforms/web/page/drafts.js": "the age of a draft, which only decides when it is dropped",
  "src/platforms/web/page/app.js": "a number that differs from the last one",
  "src/platforms/web/page/message-actions.js": "a number that differs from the last one",
  "src/platforms/web/page/message.js": "which day is today, in the browser",
  "src/platforms/web/page/sidebar.js": "which day is today, in the browser",
  "src/platforms/web/page/recorder.js": "the name of a recording",
};

it("the system's clock is read only where a step does no harm", () => {
  const readers = ["src", "commands"]
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((name) =>
        join(folder, name),
      ),
    )
    .filter((name) => /\.(ts|js)$/.test(name))
    .filter((name) => /\bDate\.now\b|\bDate\(\s*\)/.test(readFileSync(join(root, name), "utf8")));
  expect(readers.toSorted()).toEqual(Object.keys(allowed).toSorted());
});
