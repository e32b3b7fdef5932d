import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseConfig } from "../../../src/config.ts";
import { settings } from "../../../src/settings.ts";
import { has } from "../../support/requirements.ts";

let folder: string;
let unit: string;
const text = await readFile("deploy/parley.service", "utf8");

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-unit-"));
  unit = join(folder, "parley.service");
  // systemd checks whether the program is there.
  await writeFile(unit, text.replaceAll("/opt/parley", resolve(".")));
});
afterAll(async () => rm(folder, { recursive: true, force: true }));

const analyze = (...args: readonly string[]) => {
  const { status, stdout, stderr } = spawnSync("systemd-analyze", args, { encoding: "utf8" });
  return { status, output: `${stdout}${stderr}` };
};

test.skipIf(!has("systemd"))("systemd finds nothing wrong with the unit", () => {
  const { status, output } = analyze("verify", "--man=no", "--recursive-errors=no", unit);
  // It may say more about other units of this machine.
  expect(output.split("\n").filter((line) => line.includes("parley.service"))).toEqual([]);
  expect(status, output).toBe(0);
});

test.skipIf(!has("systemd"))("its exposure is as low as a program with network gets", () => {
  const { output } = analyze("security", "--offline=yes", "--no-pager", unit);
  const exposure = Number(/Overall exposure level for parley\.service: ([\d.]+)/.exec(output)?.[1]);
  expect(exposure, output).toBeLessThan(2);
});

test("starts the project's own Node, with settings that there are", () => {
  expect(text).toContain("ExecStart=/opt/parley/node_modules/.bin/node /opt/parley/src/launch.js");
  const names = [...text.matchAll(/^Environment=(\w+)=/gm)].map(([, name]) => name!);
  expect(names.filter((name) => name !== "NODE_ENV" && !Object.hasOwn(settings, name))).toEqual([]);
  const seconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(text)?.[1]);
  expect(seconds * 1000).toBeGreaterThan(parseConfig({}).SHUTDOWN_TIMEOUT_MS + 5000);
});
