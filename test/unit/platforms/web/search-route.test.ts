import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startPageServer, type PageServer } from "./page-server.ts";

const id = "a".repeat(24);

describe("the search of the page", () => {
  let server: PageServer;
  beforeEach(async () => {
    server = await startPageServer();
  });
  afterEach(() => server.close());

  it("finds conversations of the page with the item that has the words, and no private calls", async () => {
    const turnKey = `web:${id}:${"b".repeat(24)}`;
    const excerpt = [{ text: "Oslo", isMatch: true }];
    server.receiver.found = [
      {
        conversationId: `web:${id}`,
        title: "One",
        updatedAt: 3,
        message: { turnKey, role: "assistant", excerpt },
      },
      { conversationId: `web:${id}:cccccccccccccccc`, title: "Private", updatedAt: 2 },
      { conversationId: `web:${"b".repeat(24)}`, title: "Oslo", updatedAt: 1 },
    ];
    const answer = await server.askAsPage("POST", "/api/search", { text: "oslo" });
    expect(answer.json()).toEqual({
      found: [
        { id, title: "One", updatedAt: 3, itemId: `${turnKey}/assistant`, excerpt },
        { id: "b".repeat(24), title: "Oslo", updatedAt: 1 },
      ],
    });
    expect(server.receiver.searches).toEqual([{ prefix: "web:", text: "oslo" }]);
  });

  it("refuses what it cannot search for, and is no GET: the words stay out of addresses", async () => {
    for (const wrong of [{}, { text: 1 }, { text: "x".repeat(201) }, { text: "x", after: 5 }])
      expect((await server.askAsPage("POST", "/api/search", wrong)).status).toBe(422);
    expect((await server.askAsPage("GET", "/api/search?text=oslo")).status).toBe(405);
    server.receiver.isBroken = true;
    expect((await server.askAsPage("POST", "/api/search", { text: "oslo" })).status).toBe(503);
  });
});
