import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { followEvents, startPageServer, type PageServer } from "./page-server.ts";

const id = "a".repeat(24);

describe("the list of conversations", () => {
  let server: PageServer;
  beforeEach(async () => {
    server = await startPageServer();
  });
  afterEach(() => server.close());

  it("says which are pinned and whether there may be more, and leaves private calls out", async () => {
    server.receiver.summaries = [
      { conversationId: `web:${id}`, title: "One", updatedAt: 3 },
      { conversationId: `web:${id}:bbbbbbbbbbbbbbbb`, title: "Private", updatedAt: 2 },
      { conversationId: `web:${"b".repeat(24)}`, title: "Two", updatedAt: 1, isPinned: true },
    ];
    const all = [
      { id, title: "One", updatedAt: 3 },
      { id: "b".repeat(24), title: "Two", updatedAt: 1, isPinned: true },
    ];
    expect((await server.askAsPage("GET", "/api/conversations")).json()).toEqual({
      conversations: all,
      mayHaveMore: false,
    });
    expect((await server.askAsPage("GET", "/api/conversations?max=1")).json()).toEqual({
      conversations: all.slice(0, 1),
      mayHaveMore: true,
    });
    expect((await server.askAsPage("GET", "/api/conversations?max=no")).json()).toMatchObject({
      conversations: all,
    });
  });

  it("is followed on the events of each conversation: what runs there and elsewhere, and that it has changed", async () => {
    const elsewhere = "c".repeat(24);
    const following = await followEvents(server.host, `/api/conversations/${id}/events`);
    const others = server.platform.openReply(
      { conversationId: `web:@${"0".repeat(12)}:${elsewhere}`, replyId: "e".repeat(24) },
      { saveAddress: () => Promise.resolve() },
    );
    await others.show();
    const address = { conversationId: `web:${elsewhere}`, replyId: "d".repeat(24) };
    const reply = server.platform.openReply(address, { saveAddress: () => Promise.resolve() });
    await reply.show();
    reply.write({ text: "Done." });
    await reply.finish();
    server.receiver.stored.set(`web:${id}`, []);
    await server.askAsPage("POST", `/api/conversations/${id}/labels`, { name: "Oslo" });
    // This changes the conversation, so that all that came before has arrived.
    await server.askAsPage("DELETE", `/api/conversations/${id}`);
    await following.until((all) => all.some(({ data }) => data.kind === "gone"));
    const { lists } = following;
    expect(lists[0]).toEqual({ running: [], isChanged: false });
    expect(lists.map(({ running }) => running.join())).toContain(elsewhere);
    expect(lists.at(-1)?.running).toEqual([]);
    expect(lists.filter(({ isChanged }) => isChanged).length).toBeGreaterThan(2);
    // The actions of another account are not reported.
    expect(lists.some(({ running }) => running.some((one) => one.includes("@")))).toBe(false);
  });

  it("names and pins a conversation that exists", async () => {
    const path = `/api/conversations/${id}/labels`;
    expect((await server.askAsPage("POST", path, { name: "Oslo" })).status).toBe(404);
    server.receiver.stored.set(`web:${id}`, []);
    expect((await server.askAsPage("POST", path, { name: "Oslo", isPinned: true })).status).toBe(200);
    expect(server.receiver.labels.get(`web:${id}`)).toEqual({ name: "Oslo", isPinned: true });
    for (const wrong of [{ name: 1 }, { name: "x".repeat(1001) }, { isPinned: "yes" }])
      expect((await server.askAsPage("POST", path, wrong)).status).toBe(422);
  });
});
