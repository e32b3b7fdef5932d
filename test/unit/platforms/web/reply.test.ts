import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { ReplyHooks } from "../../../../src/core/reply.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import { storedMessage } from "./fake-receiver.ts";
import { followEvents, snapshotOf, startPageServer, type PageEvent, type PageServer } from "./page-server.ts";

const conversationPageId = "c".repeat(24);
const conversationId = `web:${conversationPageId}`;
const path = `/api/conversations/${conversationPageId}`;
const hooks: ReplyHooks = { saveAddress: () => Promise.resolve() };
const replyId = "m".repeat(24);
const key = `${conversationId}:${replyId}`;

let server: PageServer;
beforeEach(async () => {
  server = await startPageServer();
});
afterEach(async () => {
  await server.close();
});

const send = (text: string) => server.askAsPage("POST", `${path}/messages`, { id: replyId, text });

const snapshot = () => snapshotOf(server.host, path);

describe("a message that is refused", () => {
  it.each([
    ["access-denied", {}, 403, undefined],
    ["rate-limited", { detail: { max: 20 }, retryAfterMs: 1500 }, 429, "2"],
    ["over-budget", { detail: { scope: "person", budgetUsd: 1 }, retryAfterMs: 60_000 }, 429, "60"],
  ] as const)("is answered in words, and not shown (%s)", async (code, more, status, retryAfter) => {
    server.receiver.refusal = new ParleyError(code, "the test refuses", more);
    const response = await send("hello");
    expect(response.status).toBe(status);
    expect(response.headers["retry-after"]).toBe(retryAfter);
    expect(response.json()).toMatchObject({ error: { code, message: expect.stringMatching(/\.$/) } });
    expect(await snapshot()).toEqual([]);
  });
});

describe("a reply", () => {
  it("that failed or was interrupted is shown with its failure after a reload", async () => {
    const failure = "The gateway is away.";
    const notices = ["small print"];
    server.receiver.stored.set(conversationId, [
      storedMessage("turn-1/assistant/2", "assistant", "", { outcome: "failed", failure, notices }),
      storedMessage("turn-2/assistant/1", "assistant", "half", { outcome: "interrupted", failure, notices }),
    ]);
    expect(await snapshot()).toMatchObject([
      { id: "turn-1/assistant", state: "failed", failure, notices },
      { id: "turn-2/assistant", state: "finished", isInterrupted: true, notices: [...notices, failure] },
    ]);
  });

  it("is streamed to the page, and replaced by its stored form after it has ended", async () => {
    await send("hello");
    const reply = server.platform.openReply({ conversationId, replyId }, hooks);
    const following = await followEvents(server.host, `${path}/events`);
    const isEnough = (all: readonly PageEvent[]) => all.at(-1)?.data.item?.model === "m";
    await reply.show();
    reply.status("Reading cat.png");
    reply.write({ lead: "> 🎙️ a transcript", text: "Hel" });
    reply.write({ lead: "> 🎙️ a transcript", text: "Hello there" });
    server.receiver.stored.set(conversationId, [
      storedMessage(`${key}/user`, "user", "hello"),
      storedMessage(`${key}/assistant/1`, "assistant", "Hello there", { model: "m" }),
    ]);
    await reply.finish({ notices: ["small print"] });
    const events = await following.until(isEnough);
    const states = events.flatMap(({ data }) => (data.kind === "put" ? [data.item.state] : []));
    expect(states).toContain("waiting");
    expect(events.some(({ data }) => data.item?.status === "Reading cat.png")).toBe(true);
    const texts = events.flatMap(({ data }) => (data.item === undefined ? [] : [data.item.text]));
    expect(texts).toContain("Hel");
    expect(texts.at(-1)).toBe("Hello there");
    expect(texts.join()).not.toContain("a transcript");
    expect((await snapshot()).map((item) => item.id)).toEqual([`${key}/user`, `${key}/assistant`]);
  });

  it("shows a picture under the same URL before and after it is stored", async () => {
    const bytes = await fixture("picture.png");
    const reply = server.platform.openReply({ conversationId, replyId }, hooks);
    await reply.show();
    await reply.attach({ name: "a.png", mediaType: "image/png", bytes, altText: "a cat" });
    const [item] = await snapshot();
    const picture = item?.files[0];
    if (picture?.kind !== "image") throw new Error("no picture is shown");
    expect(picture.altText).toBe("a cat");
    const { url } = picture;
    expect((await server.askAsPage("GET", url)).bytes.equals(bytes)).toBe(true);
    const hash = createHash("sha256").update(bytes).digest("hex");
    server.receiver.blobs.set(`${conversationId} ${hash}`, { bytes, mediaType: "image/png" });
    const blob = { hash, mediaType: "image/png", sizeBytes: bytes.length };
    server.receiver.stored.set(conversationId, [
      storedMessage(`${key}/assistant/1`, "assistant", "", {
        parts: [{ kind: "image", blob, name: "a.png", altText: "a cat" }],
      }),
    ]);
    await reply.finish();
    const [stored] = await snapshot();
    expect(stored?.files[0]).toMatchObject({ url });
    expect((await server.askAsPage("GET", url)).bytes.equals(bytes)).toBe(true);
  });

  it("that failed can be retried with its own key only", async () => {
    const reply = server.platform.openReply({ conversationId, replyId }, hooks);
    await reply.show();
    await reply.fail({ text: "The gateway is unavailable.", retryKey: "turn-1", notices: ["small print"] });
    expect(await snapshot()).toMatchObject([
      { state: "failed", failure: "The gateway is unavailable.", retryKey: "turn-1" },
    ]);
    const retry = (key: string) => server.askAsPage("POST", `${path}/act`, { kind: "retry", key });
    expect((await retry("other")).status).toBe(410);
    expect((await retry("turn-1")).json()).toEqual({ kind: "done" });
    expect(server.receiver.retried).toEqual(["turn-1"]);
    const retried = server.platform.openReply({ conversationId, replyId }, hooks);
    await retried.show();
    const [item] = await snapshot();
    expect(item?.state).toBe("waiting");
    expect(item?.failure).toBeUndefined();
  });

  it("to a batch of messages has one id from its start, which is that of the turn", async () => {
    const turn = { key: "first", attempt: 2, sentAt: Date.now() };
    const reply = server.platform.openReply({ conversationId, replyId }, { ...hooks, turn });
    await reply.show();
    reply.write({ text: "For both" });
    const live = await snapshot();
    expect(live).toMatchObject([{ id: "first/assistant", attempt: 2, order: turn.sentAt + 0.25 }]);
    const following = await followEvents(server.host, `${path}/events`);
    server.receiver.stored.set(conversationId, [
      storedMessage("first/user", "user", "one"),
      storedMessage("second/user", "user", "two"),
      storedMessage("first/assistant/2", "assistant", "For both"),
    ]);
    await reply.finish();
    const isEnough = (all: readonly PageEvent[]) =>
      all.some(({ data }) => data.item?.isStored === true && data.item.role === "assistant");
    const change = (await following.until(isEnough)).at(-1)?.data;
    expect(change).toMatchObject({ kind: "put", item: { id: "first/assistant", attempt: 2 } });
    expect((await snapshot()).map((item) => item.id)).toEqual([
      "first/user",
      "second/user",
      "first/assistant",
    ]);
  });

  it("stays in its live form while the store is unavailable", async () => {
    const reply = server.platform.openReply({ conversationId, replyId }, hooks);
    await reply.show();
    reply.write({ text: "Said anyway" });
    server.receiver.isBroken = true;
    await reply.finish();
    expect((await server.ask(`${path}/events`)).status).toBe(503);
    server.receiver.isBroken = false;
    expect(await snapshot()).toMatchObject([{ text: "Said anyway", state: "finished" }]);
  });

  it("is cancelled by Stop", async () => {
    expect((await server.askAsPage("POST", `${path}/cancel`, {})).json()).toEqual({ isCancelled: true });
    expect(server.receiver.cancelled).toEqual([conversationId]);
  });
});

describe("a private call", () => {
  const call = { conversationId, replyId, isPrivate: true } as const;

  it("is received as private, and part of a snapshot only while it runs", async () => {
    await send("/imagine a cat private:yes");
    expect(server.receiver.events[0]).toMatchObject({ isPrivate: true, address: call });
    const reply = server.platform.openReply(call, hooks);
    await reply.show();
    reply.write({ text: "A secret cat" });
    expect(await snapshot()).toMatchObject([
      { role: "user", isPrivate: true },
      { role: "assistant", isPrivate: true, text: "A secret cat" },
    ]);
    const following = await followEvents(server.host, `${path}/events`);
    await reply.finish();
    const isEnough = (all: readonly PageEvent[]) => all.at(-1)?.data.item?.state === "finished";
    expect((await following.until(isEnough)).at(-1)?.data.item.text).toBe("A secret cat");
    expect(await snapshot()).toEqual([]);
  });

  it("that failed can be retried although snapshots leave it out", async () => {
    const reply = server.platform.openReply(call, hooks);
    await reply.show();
    await reply.fail({ text: "The gateway is unavailable.", retryKey: key });
    expect(await snapshot()).toEqual([]);
    const pressed = { kind: "retry", key };
    expect((await server.askAsPage("POST", `${path}/act`, pressed)).json()).toEqual({ kind: "done" });
    const retried = server.platform.openReply(call, hooks);
    await retried.show();
    expect(await snapshot()).toMatchObject([{ state: "waiting", isPrivate: true }]);
  });

  it("is stopped by Stop, and deleted with its conversation", async () => {
    await send("/imagine a cat private:yes");
    await server.platform.openReply(call, hooks).show();
    await server.askAsPage("POST", `${path}/cancel`, {});
    expect(server.receiver.cancelled).toEqual([conversationId, key]);
    server.receiver.summaries = [{ conversationId: key, title: "a cat", updatedAt: 5 }];
    expect((await server.askAsPage("GET", "/api/conversations")).json()).toEqual({
      conversations: [],
      mayHaveMore: false,
    });
    await server.askAsPage("DELETE", path);
    expect(server.receiver.gone).toEqual([conversationId, key]);
  });
});
