import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

interface Locked {
  readonly integrity?: string;
  readonly hasInstallScript?: boolean;
  readonly version?: string;
  readonly dev?: boolean;
}

const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as {
  readonly packages: Readonly<Record<string, Locked>>;
};
const installed = Object.entries(packages).filter(([folder]) => folder !== "");

test("every package is pinned by its integrity", () => {
  expect(installed.length).toBeGreaterThan(200);
  expect(installed.filter(([, { integrity }]) => integrity === undefined)).toEqual([]);
});

test("no package that production needs runs a script when it is installed, which could fetch what is not pinned", () => {
  const scripts = installed.filter(
    ([, { hasInstallScript, dev }]) => hasInstallScript === true && dev !== true,
  );
  expect(scripts.map(([folder]) => folder)).toEqual([]);
});

test("no package that production needs is a pre-release", () => {
  const early = installed.filter(([, { version = "", dev }]) => version.includes("-") && dev !== true);
  expect(early.map(([folder, { version }]) => `${folder} ${version}`)).toEqual([]);
});
