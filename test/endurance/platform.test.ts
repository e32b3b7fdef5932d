import { readdir } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { folderRungs, startFolderTalk, type FolderTalk } from "./folder-talk.ts";
import { copyProject, section, type ProjectCopy } from "./guide.ts";

// The project is compiled on each rung.
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

let starts = 0;
/** Starts the bot with a store of its own. */
const start = async () => {
  starts += 1;
  talk = await startFolderTalk(copy, { STORE_URL: `sqlite:${path.join(copy.root, `parley-${starts}.db`)}` });
  return talk;
};

const forbidsNothing = async () => expect(await copy.forbiddenImports()).toBe("");
const holds = async (rung: string) => expect(await copy.failuresOf(contract), rung).toBe("");

test("on each rung the platform compiles and does what the guide says, and the contract holds with fewer traits", async () => {
  const [connect, receive, reply] = folderRungs;
  await climb(connect);
  (await start()).stop();

  await climb(receive);
  const listening = await start();
  await listening.puts("hello.txt", "Hello");
  expect(await listening.reads("main/hello.txt", /Hello/)).toBe("Hello");
  expect(await readdir(path.join(copy.root, "talk-here/in/main"))).toEqual([]);
  listening.stop();

  await climb(reply);
  await forbidsNothing();
  await holds(reply);
  const answering = await start();
  await answering.asks("one", "The password is swordfish.", /swordfish/);
  await answering.asks("two", "What did I say first?", /swordfish/);
  answering.stop();

  for (const rung of ["4. Threads", "5. Files", "6. Buttons and commands"]) {
    await climb(rung);
    await holds(rung);
  }
  await forbidsNothing();
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
