import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startFolderTalk } from "./folder-talk.ts";
import { copyProject, folderPlatform, section, type ProjectCopy } from "./guide.ts";

// Each test compiles the project.
vi.setConfig({ testTimeout: 120_000 });

const guide = "docs/extending.md";
let copy: ProjectCopy;

beforeEach(async () => {
  copy = await copyProject();
});
afterEach(() => copy.close());

test("a command is one file", async () => {
  await copy.apply(await section(guide, "A command"));
  expect(await copy.typeErrors()).toEqual([]);
  expect(await copy.forbiddenImports()).toBe("");
  expect(await copy.main(["slack-manifest"])).toContain("Translate this");
});

test("an option kind fails to compile exactly where the guide says", async () => {
  const blocks = await section(guide, "An option kind");
  await copy.apply(blocks);
  const listed = blocks
    .find(({ kind }) => kind === "errors")
    ?.code.trim()
    .split("\n");
  expect(await copy.typeErrors()).toEqual(listed);
});

test("a setting is one entry", async () => {
  await copy.apply(await section(guide, "A setting"));
  expect(await copy.typeErrors()).toEqual([]);
  expect(await copy.main(["settings"])).toMatch(/\| `GREETING` +\| +\| what the bot says first +\|/);
  expect(await copy.main(["settings", "--env"])).toContain("# What the bot says first.\nGREETING=\n");
  await expect(copy.main(["--check-config"], { GREETING: "x".repeat(201) })).rejects.toMatchObject({
    stderr: expect.stringContaining("GREETING"),
  });
});

test("a store backend is one folder and one line, and conversations are kept in it", async () => {
  await copy.apply(folderPlatform);
  await copy.apply(await section(guide, "A store backend"));
  expect(await copy.typeErrors()).toEqual([]);
  expect(await copy.forbiddenImports()).toBe("");
  await expect(copy.main(["--check-config"], { STORE_URL: "memory:x" })).rejects.toMatchObject({
    stderr: expect.stringContaining("STORE_URL takes nothing behind memory:"),
  });
  const { asks, stop } = await startFolderTalk(copy, { STORE_URL: "memory:" });
  try {
    await asks("one", "The password is swordfish.", /swordfish/);
    await asks("two", "What did I say first?", /swordfish/);
  } finally {
    stop();
  }
});
