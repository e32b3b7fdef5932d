import { request as sendRequest } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { StoredMessage } from "../../../../src/core/storage.ts";
import { growthOfTurns } from "../../../support/longest-turn.ts";
import { messageOf } from "../../../support/store-samples.ts";
import { startPageServer, type PageServer } from "./page-server.ts";

const shortChat = "a".repeat(24);
const longChat = "b".repeat(24);
const fileChars = 100_000;

let server: PageServer;
beforeEach(async () => {
  server = await startPageServer();
});
afterEach(() => server.close());

/** Stores messages with ten long files each. Eight of them are what one read returns at most. */
function storeChat(id: string, part: string, count: number): void {
  const text = part.repeat(fileChars).slice(0, fileChars);
  const parts = Array.from({ length: 10 }, (_, n) => ({ kind: "file", name: `${n}.py`, text }) as const);
  server.receiver.stored.set(
    `web:${id}`,
    Array.from({ length: count }, (_, n) => ({ ...questionOf(id, n), parts })),
  );
}

function questionOf(id: string, number: number): StoredMessage {
  const key = `web:${id}:${String(number).padStart(24, "0")}`;
  return { ...messageOf(`${key}/user`, "x"), turnKey: key };
}

/** Loads the chat as a page does, and reads what it gets without keeping it. */
function load(id: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = sendRequest(
      `http://${server.host}/api/conversations/${id}/events`,
      { agent: false },
      (response) => {
        response.on("data", (chunk: Buffer) => {
          // The list comes after the snapshot.
          if (!chunk.subarray(-4000).includes("event: list")) return;
          request.destroy();
          resolve();
        });
        response.on("error", () => resolve());
      },
    );
    request.on("error", reject);
    request.end();
  });
}

describe.each(["\uFDFA ", "`\n", '"\\'])("a chat full of long files of %j", (part) => {
  it("is loaded in turns that do not grow with it, three times at once", async () => {
    storeChat(shortChat, part, 2);
    storeChat(longChat, part, 8);
    const threeTimes = (id: string) => () => Promise.all([load(id), load(id), load(id)]);
    await load(longChat);
    expect(await growthOfTurns(threeTimes(shortChat), threeTimes(longChat), 3)).toBeUndefined();
  }, 60_000);
});

it("the first question of a chat of any length can be edited", async () => {
  server.receiver.stored.set(
    `web:${longChat}`,
    Array.from({ length: 2500 }, (_, number) => questionOf(longChat, number)),
  );
  const { id: itemId, turnKey } = questionOf(longChat, 0);
  await server.askAsPage("POST", `/api/conversations/${longChat}/edit`, { itemId, text: "y" });
  expect(server.receiver.edits.map(({ key }) => key)).toEqual([turnKey]);
});

it("a person exports one chat at a time", async () => {
  server.receiver.stored.set(`web:${longChat}`, []);
  let running = 0;
  let most = 0;
  const waiting: (() => void)[] = [];
  server.receiver.exports.set(`web:${longChat}`, {
    title: "",
    files: [
      {
        name: "conversation.md",
        mediaType: "text/markdown",
        async *read() {
          running += 1;
          most = Math.max(most, running);
          await new Promise<void>((resolve) => waiting.push(resolve));
          running -= 1;
          yield Buffer.from("# A chat\n");
        },
      },
    ],
  });
  const answers = Promise.all([1, 2, 3].map(() => server.ask(`/api/conversations/${longChat}/export.md`)));
  for (let served = 0; served < 3;) {
    // All requests have come when nothing has happened for so long.
    for (let turn = 0; turn < 200; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    for (const go of waiting.splice(0)) {
      served += 1;
      go();
    }
  }
  for (const answer of await answers) expect(answer.status).toBe(200);
  expect(most).toBe(1);
});
