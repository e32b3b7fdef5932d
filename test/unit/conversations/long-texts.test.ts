import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openStore, type Store } from "../../../src/conversations/open-store.ts";
import { toZip } from "../../../src/media/zip.ts";
import { makeFastFolder } from "../../support/fast-folder.ts";
import { holdUpOf } from "../../support/longest-turn.ts";
import { silentLog } from "../../support/silent-log.ts";
import { messageOf } from "../../support/store-samples.ts";

/** A message may have so many files, each with so many characters. */
const filesOfMessage = 10;
const fileChars = 100_000;
const messages = 6;

let folder: string;
let store: Store;
beforeAll(async () => {
  folder = await makeFastFolder("parley-long-");
  store = await openStore(`sqlite:${join(folder, "parley.db")}`, { log: silentLog });
  for (const [name, part] of Object.entries(texts)) {
    const text = part.repeat(fileChars).slice(0, fileChars);
    for (let n = 0; n < messages; n += 1) {
      const parts = Array.from({ length: filesOfMessage }, (_, index) => ({
        kind: "file" as const,
        name: `${index}.py`,
        text,
      }));
      await store.conversations.append(`test:${name}`, { ...messageOf(`m${n}`, "x"), parts });
    }
  }
});
afterAll(async () => {
  await store.close();
  await rm(folder, { recursive: true });
});

/** Texts that are costly in different ways. One character of the first becomes eighteen when it is folded. */
const texts = { ligature: "\uFDFA ", accents: "e\u0301\u0301", lines: "`\n" } as const;

/** What people can ask of the store at any time. */
const requests: Readonly<Record<string, (conversationId: string) => Promise<unknown>>> = {
  search: (conversationId) =>
    store.lists.search("test:", {
      text: "nowhere",
      max: 20,
      maxMs: 10_000,
      signal: new AbortController().signal,
      isWanted: (id) => id === conversationId,
    }),
  history: (conversationId) => store.conversations.recent(conversationId, { maxMessages: 201 }),
  export: async (conversationId) => {
    const { files } = await store.exportConversation(conversationId);
    let bytes = 0;
    for (const file of files) for await (const piece of file.read()) bytes += piece.byteLength;
    return bytes;
  },
  archive: async (conversationId) => {
    const { files } = await store.exportConversation(conversationId);
    let bytes = 0;
    for await (const piece of toZip(files)) bytes += piece.byteLength;
    return bytes;
  },
};

describe.each(Object.keys(texts))("a conversation with long files of %s", (name) => {
  it.each(Object.keys(requests))(
    "%s holds nobody up, three at once",
    async (request) => {
      const run = requests[request]!;
      const problem = await holdUpOf(() => Promise.all(Array.from({ length: 3 }, () => run(`test:${name}`))));
      expect(problem).toBeUndefined();
    },
    120_000,
  );
});
