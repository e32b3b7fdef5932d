import { readdir } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startFolderTalk, type FolderTalk } from "./folder-talk.ts";
import { copyProject, folderPlatform, type ProjectCopy } from "./guide.ts";

// The project is compiled.
vi.setConfig({ testTimeout: 120_000 });

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

test("a platform is one folder and one line", async () => {
  await copy.apply(folderPlatform);
  expect(await copy.typeErrors()).toEqual([]);
  talk = await startFolderTalk(copy, { STORE_URL: `sqlite:${path.join(copy.root, "parley.db")}` });
  const { asks, puts, reads } = talk;
  await asks("one", "The password is swordfish.", /swordfish/);
  await asks("two", "What did I say first?", /swordfish/);
  expect(await readdir(path.join(copy.root, "talk-here/in/main"))).toEqual([]);
  await puts("file.files/notes.txt", "The password is tuna.");
  expect(await asks("file", "What do my notes say?", /\[Details\]/)).toContain("tuna");
  await puts("press.press", "file.answer-0.txt Details");
  await reads("main/press.told.txt", /Model/);
  await puts("chat.txt", "/chat Otters");
  await reads("about-chat/chat.answer-0.txt", /\w/);
  await puts("wrong.txt", "/chatt");
  await reads("main/wrong.told.txt", /chat/);
});
