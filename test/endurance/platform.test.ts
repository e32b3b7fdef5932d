import { readdir } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { folderRungs, startFolderTalk, type FolderTalk } from "./folder-talk.ts";
import { copyProject, section, type ProjectCopy } from "./guide.ts";

// Each test compiles the project, some of them on each rung.
vi.setConfig({ testTimeout: 300_000 });

const guide = "docs/platform.md";
const contract = "test/contract/platform-folder.test.ts";
let copy: ProjectCopy;
let talk: FolderTalk | undefined;

beforeEach(async () => {
  copy = await copyProject();
});
afterEach(async () => {
  talk?.stop();
  talk = undefined;
  await copy.close();
});

async function climb(...rungs: readonly string[]): Promise<void> {
  for (const rung of rungs) {
    await copy.apply(await section(guide, rung));
    expect(await copy.typeErrors(), rung).toEqual([]);
  }
}

const start = async () => {
  talk = await startFolderTalk(copy, { STORE_URL: `sqlite:${path.join(copy.root, "parley.db")}` });
  return talk;
};

test("on the first rung the bot starts, and on the second it takes messages", async () => {
  const [connect, receive] = folderRungs;
  await climb(connect);
  (await start()).stop();
  await climb(receive);
  const { puts, reads } = await start();
  await puts("hello.txt", "Hello");
  expect(await reads("main/hello.txt", /Hello/)).toBe("Hello");
  expect(await readdir(path.join(copy.root, "talk-here/in/main"))).toEqual([]);
});

test("on the third rung people read answers, and the contract holds with its traits", async () => {
  await climb(...folderRungs);
  expect(await copy.forbiddenImports()).toBe("");
  expect(await copy.failuresOf(contract)).toBe("");
  const { asks } = await start();
  await asks("one", "The password is swordfish.", /swordfish/);
  await asks("two", "What did I say first?", /swordfish/);
});

test("on each further rung the contract holds with fewer traits, and people use what there is", async () => {
  await climb(...folderRungs);
  for (const rung of ["4. Threads", "5. Files", "6. Buttons and commands"]) {
    await climb(rung);
    expect(await copy.failuresOf(contract), rung).toBe("");
  }
  expect(await copy.forbiddenImports()).toBe("");
  const { asks, puts, reads } = await start();
  await puts("file.files/notes.txt", "The password is swordfish.");
  expect(await asks("file", "What do my notes say?", /\[Details\]/)).toContain("swordfish");
  await puts("press.press", "file.answer-0.txt Details");
  await reads("main/press.told.txt", /Model/);
  await puts("chat.txt", "/chat Otters");
  await reads("about-chat/chat.answer-0.txt", /\w/);
  await puts("wrong.txt", "/chatt");
  await reads("main/wrong.told.txt", /chat/);
});
