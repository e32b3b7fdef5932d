import { afterEach, beforeEach, expect, it } from "vitest";
import { startPageServer, type PageServer } from "./page-server.ts";

const id = "c".repeat(24);
const newId = "d".repeat(24);
const conversationId = `web:${id}`;
const key = `${conversationId}:${"m".repeat(24)}`;
const path = `/api/conversations/${id}/branch`;

let server: PageServer;
beforeEach(async () => {
  server = await startPageServer();
  server.receiver.stored.set(conversationId, []);
});
afterEach(async () => {
  await server.close();
});

it("a branch is made up to an answer, or up to before a question, with keys of the new chat", async () => {
  expect((await server.askAsPage("POST", path, { itemId: `${key}/assistant`, to: newId })).status).toBe(201);
  expect((await server.askAsPage("POST", path, { itemId: `${key}/user`, to: newId })).status).toBe(201);
  const [first, second] = server.receiver.branches;
  expect(first).toMatchObject({ from: conversationId, to: `web:${newId}`, until: { turnKey: key } });
  expect(second?.until).toEqual({ beforeKey: key });
  const made = first!.toKey(key);
  expect(made).toMatch(new RegExp(`^web:${newId}:[0-9a-f]{24}$`));
  expect(first!.toKey(key)).toBe(made);
  expect(first!.toKey(`${key}/first`)).not.toBe(made);
  expect(first!.toAddress(made)).toEqual({ conversationId: `web:${newId}`, replyId: made.slice(-24) });
});

it("a branch of what is not there is refused, and so is a wrong id", async () => {
  const gone = await server.askAsPage("POST", `/api/conversations/${newId}/branch`, {
    itemId: `${key}/assistant`,
    to: "e".repeat(24),
  });
  expect(gone.status).toBe(404);
  expect((await server.askAsPage("POST", path, { itemId: `${key}/assistant`, to: "../x" })).status).toBe(422);
  expect((await server.askAsPage("POST", path, { itemId: 3, to: newId })).status).toBe(422);
});
