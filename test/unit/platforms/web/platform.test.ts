import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CommandCall, IncomingMessage } from "../../../../src/core/events.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import { storedMessage } from "./fake-receiver.ts";
import {
  firstEvent,
  followEvents,
  snapshotOf,
  startPageServer,
  type PageEvent,
  type PageServer,
} from "./page-server.ts";

const id = "c".repeat(24);
const conversationId = `web:${id}`;
const path = `/api/conversations/${id}`;
const replyId = "m".repeat(24);
const key = `${conversationId}:${replyId}`;

let server: PageServer;
beforeEach(async () => {
  server = await startPageServer({ maxFileBytes: 100_000 });
});
afterEach(async () => {
  await server.close();
});

async function upload(name: string, bytes: Uint8Array, type = "application/octet-stream"): Promise<string> {
  const answer = await server.ask(`/api/uploads?name=${encodeURIComponent(name)}`, {
    method: "POST",
    headers: { "x-parley": "1", "sec-fetch-site": "same-origin", "content-type": type },
    body: bytes,
  });
  expect(answer.status).toBe(201);
  return String(answer.json()["id"]);
}

const send = (text: string, uploads: readonly string[] = [], messageId = replyId) =>
  server.askAsPage("POST", `${path}/messages`, { id: messageId, text, uploads });

describe("a sent message", () => {
  it("is received once although it is sent twice", async () => {
    expect((await send("hello")).json()).toEqual({ outcome: "accepted" });
    expect((await send("hello")).json()).toEqual({ outcome: "duplicate" });
    expect(server.receiver.events).toHaveLength(1);
    expect(server.receiver.events[0]).toMatchObject({
      kind: "message",
      key,
      platform: "web",
      conversationId,
      author: { id: "web:local", name: "You" },
      text: "hello",
      attachments: [],
      address: { conversationId, replyId },
    });
  });

  it("with a command becomes a call, validated before it is received", async () => {
    await send('/imagine a cat count:2 model:"x y"');
    expect(server.receiver.events[0]).toMatchObject({
      kind: "call",
      name: "imagine",
      options: { prompt: "a cat", count: "2", model: "x y" },
      inConversation: true,
      isPrivate: false,
      isInputVisible: true,
    });
    const bad = [
      ["/nothing", "There is no command /nothing. There are: /imagine, /models."],
      ["/image a cat", "There is no command /image. Did you mean /imagine?"],
      ["/imagine", "this is missing"],
      ["/imagine a count:7", "a whole number from 1 to 4"],
      ["/models please", "this command takes no text"],
    ] as const;
    for (const [text, words] of bad) {
      const answer = await send(text, [], "n".repeat(24));
      expect(answer.status, text).toBe(422);
      expect(JSON.stringify(answer.json()), text).toContain(words);
    }
    expect(server.receiver.events).toHaveLength(1);
    expect(await snapshot()).toHaveLength(1);
  });

  it("that begins with a path is not a command", async () => {
    await send("/usr/bin/env is where?");
    expect(server.receiver.events[0]?.kind).toBe("message");
  });

  it("is not shown and can be sent again when the store was unavailable", async () => {
    server.receiver.isBroken = true;
    const answer = await send("hello");
    expect(answer.status).toBe(503);
    expect(JSON.stringify(answer.json())).toContain("cannot reach its store");
    server.receiver.isBroken = false;
    expect(await snapshot()).toEqual([]);
    expect((await send("hello")).json()).toEqual({ outcome: "accepted" });
  });

  it.each([
    [{ id: "short", text: "x" }],
    [{ id: "../../../../etc/passwd", text: "x" }],
    [{ id: replyId }],
    [{ id: replyId, text: " " }],
    [{ id: replyId, text: "x".repeat(60_001) }],
    [{ id: replyId, text: "x", uploads: "a" }],
    [{ id: replyId, text: "x", uploads: Array.from({ length: 11 }, () => "a") }],
  ])("that is malformed is refused: %#", async (body) => {
    expect((await server.askAsPage("POST", `${path}/messages`, body)).status).toBe(422);
    expect(server.receiver.events).toHaveLength(0);
  });
});

describe("files", () => {
  it("are stored until their message is processed, and read up to a size limit", async () => {
    const bytes = await fixture("picture.png");
    const uploadId = await upload("cat.png", bytes, "image/png");
    await send("look", [uploadId]);
    const attachment = (server.receiver.events[0] as IncomingMessage).attachments[0]!;
    expect(attachment).toMatchObject({ name: "cat.png", mediaType: "image/png", sizeBytes: bytes.length });
    const signal = AbortSignal.timeout(5000);
    const read = await server.platform.download(attachment, { maxBytes: 1_000_000, signal });
    expect(Buffer.from(read).equals(bytes)).toBe(true);
    await expect(server.platform.download(attachment, { maxBytes: 10, signal })).rejects.toMatchObject({
      code: "attachment-too-large",
    });
    const other = { ...attachment, source: { uploadId: "../../etc/passwd" } };
    await expect(server.platform.download(other, { maxBytes: 10, signal })).rejects.toMatchObject({
      code: "attachment-gone",
    });
    const gone = await send("look", ["0".repeat(32)], "n".repeat(24));
    expect(gone.status).toBe(410);
  });

  it("become options of a command, or are refused with the reason", async () => {
    const picture = await upload("cat.png", await fixture("picture.png"), "image/png");
    await send("/imagine with a hat", [picture]);
    const call = server.receiver.events[0] as CommandCall;
    expect(call.options["image"]).toMatchObject({ name: "cat.png" });
    const refused = await send("/models", [picture], "n".repeat(24));
    expect(refused.status).toBe(422);
    expect(JSON.stringify(refused.json())).toContain("does not take this file");
    const voice = await upload("note.ogg", await fixture("voice.ogg"), "audio/ogg");
    expect((await send("/imagine x", [voice], "p".repeat(24))).status).toBe(422);
  });

  it("that are empty or too large leave nothing on disk", async () => {
    const empty = await server.ask("/api/uploads?name=a", { method: "POST", headers: { "x-parley": "1" } });
    expect(empty.status).toBe(422);
    const large = await server.ask("/api/uploads?name=b", {
      method: "POST",
      headers: { "x-parley": "1" },
      body: new Uint8Array(100_001),
    });
    expect(large.status).toBe(413);
    const unannounced = await server.ask("/api/uploads?name=c", {
      method: "POST",
      headers: { "x-parley": "1", "transfer-encoding": "chunked" },
      body: new Uint8Array(100_001),
    });
    expect(unannounced.status).toBe(413);
    await expect.poll(() => readdir(join(server.directory, "uploads"))).toEqual([]);
  });

  it("can be removed before they are sent", async () => {
    const uploadId = await upload("a.txt", Buffer.from("words"));
    expect((await server.askAsPage("DELETE", `/api/uploads/${uploadId}`)).status).toBe(200);
    expect(await readdir(join(server.directory, "uploads"))).toEqual([]);
  });

  // Attack: An uploaded page or SVG that runs script.
  it("are served with their sniffed type, and as downloads when a browser could run them", async () => {
    const hostile = Buffer.from("<html><script>alert(1)</script></html>");
    const uploadId = await upload("picture.png", hostile, "image/png");
    const answer = await server.askAsPage("GET", `/api/uploads/${uploadId}`);
    expect(answer.headers["content-type"]).toBe("application/octet-stream");
    expect(answer.headers["content-disposition"]).toMatch(/^attachment/);
    expect(answer.headers["content-security-policy"]).toContain("sandbox");
    const svg = await upload(
      "a.svg",
      Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'),
      "image/svg+xml",
    );
    expect((await server.askAsPage("GET", `/api/uploads/${svg}`)).headers["content-disposition"]).toMatch(
      /^attachment/,
    );
  });

  it("of the history are served by hash, with byte ranges", async () => {
    const bytes = await fixture("voice.ogg");
    const hash = createHash("sha256").update(bytes).digest("hex");
    server.receiver.blobs.set(`${conversationId} ${hash}`, { bytes, mediaType: "text/html" });
    const whole = await server.askAsPage("GET", `${path}/blobs/${hash}?name=a%22%0d%0ab.ogg`);
    expect(whole.status).toBe(200);
    expect(whole.headers["content-type"]).toBe("audio/ogg");
    expect(whole.headers["content-disposition"]).toBe("inline; filename*=UTF-8''a%22__b.ogg");
    expect(whole.bytes.equals(bytes)).toBe(true);
    const range = (value: string) =>
      server.askAsPage("GET", `${path}/blobs/${hash}`, undefined, { range: value });
    const part = await range("bytes=10-19");
    expect(part.status).toBe(206);
    expect(part.headers["content-range"]).toBe(`bytes 10-19/${bytes.length}`);
    expect(part.bytes.equals(bytes.subarray(10, 20))).toBe(true);
    expect((await range("bytes=-5")).bytes.equals(bytes.subarray(-5))).toBe(true);
    expect((await range("bytes=5-")).bytes.equals(bytes.subarray(5))).toBe(true);
    expect((await range(`bytes=${bytes.length}-`)).status).toBe(416);
    expect((await server.askAsPage("GET", `/api/conversations/${"d".repeat(24)}/blobs/${hash}`)).status).toBe(
      404,
    );
  });
});

const snapshot = () => snapshotOf(server.host, path);

describe("a page that reconnects", () => {
  it("gets the changes after its cursor, without a snapshot", async () => {
    await send("one");
    const first = await firstEvent(server.host, `${path}/events`);
    await send("two", [], "n".repeat(24));
    for (const [query, headers] of [
      [`?after=${first.id}`, {}],
      ["?after=nonsense", { "last-event-id": first.id }],
    ] as const) {
      const rest = await firstEvent(server.host, `${path}/events${query}`, headers);
      expect(rest).toMatchObject({ event: "change", data: { kind: "put", item: { text: "two" } } });
    }
  });

  it("can request more of the history", async () => {
    const many = Array.from({ length: 150 }, (_, index) =>
      storedMessage(`${index}/user`, "user", `${index}`),
    );
    server.receiver.stored.set(conversationId, many);
    const events = await firstEvent(server.host, `${path}/events`);
    expect(events.data.items).toHaveLength(100);
    expect(events.data.mayHaveMore).toBe(true);
    const more = await firstEvent(server.host, `${path}/events?max=300`);
    expect(more.data.items).toHaveLength(150);
    expect(more.data.mayHaveMore).toBe(false);
  });
});

describe("a thread", () => {
  it("has the same id for the same address, and the page that opened it is notified", async () => {
    const address = { conversationId, replyId };
    const following = await followEvents(server.host, `${path}/events`);
    const isEnough = (all: readonly PageEvent[]) => all.some(({ data }) => data.replyId === "x");
    const thread = await server.platform.openThread(address, { title: "Otters" });
    expect(thread.conversationId).toMatch(/^web:[0-9a-f]{24}$/);
    expect(await server.platform.openThread(address, { title: "Otters" })).toEqual(thread);
    const other = await server.platform.openThread({ ...address, replyId: "x" }, { title: "Otters" });
    expect(other.conversationId).not.toBe(thread.conversationId);
    const opened = (await following.until(isEnough)).filter(({ data }) => data.kind === "opened");
    expect(opened[0]?.data).toMatchObject({
      replyId,
      conversationId: thread.conversationId.slice(4),
    });
  });
});

describe("the API", () => {
  it("serves state, conversations and models", async () => {
    server.receiver.summaries = [{ conversationId, title: "Otters", updatedAt: 5 }];
    expect((await server.askAsPage("GET", "/api/conversations")).json()).toEqual({
      conversations: [{ id, title: "Otters", updatedAt: 5 }],
      mayHaveMore: false,
    });
    expect((await server.askAsPage("GET", "/api/models?query=im")).json()).toEqual({
      models: ["sandbox/image"],
    });
    const state = (await server.askAsPage("GET", "/api/state")).json();
    expect(state).toMatchObject({ banner: { isSandbox: true }, limits: { maxFileBytes: 100_000 } });
    expect(JSON.stringify(state)).toContain("/imagine <prompt>");
  });

  it("returns 404, 405 and 422 for requests that match no endpoint or are malformed", async () => {
    expect((await server.askAsPage("GET", "/api/nothing")).status).toBe(404);
    expect((await server.askAsPage("GET", "/api/conversations/SHOUT/events")).status).toBe(404);
    const wrong = await server.askAsPage("DELETE", `${path}/messages`);
    expect([wrong.status, wrong.headers.allow]).toEqual([405, "POST"]);
    expect((await server.askAsPage("POST", `${path}/messages`, [])).status).toBe(422);
  });

  it("returns 503 after the platform stopped", async () => {
    await server.platform.stop();
    expect((await server.askAsPage("GET", "/api/state")).status).toBe(503);
    expect(server.platform.health()).toEqual({ state: "ready" });
  });
});
