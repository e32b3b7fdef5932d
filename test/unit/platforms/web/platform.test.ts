import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CommandCall, IncomingMessage } from "../../../../src/core/events.ts";
import type { ReplyHooks } from "../../../../src/core/platform.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import { storedMessage } from "./fake-receiver.ts";
import { firstEvent, followEvents, startPageServer, type PageEvent, type PageServer } from "./page-server.ts";

const id = "c".repeat(24);
const conversationId = `web:${id}`;
const path = `/api/conversations/${id}`;
const hooks: ReplyHooks = { saveAddress: () => Promise.resolve() };
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
  it("is received once, however often it is sent", async () => {
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

  it("with a command is a call, checked before anything is received", async () => {
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
      ["/imagine", "it is needed"],
      ["/imagine a count:7", "a whole number from 1 to 4"],
      ["/models please", "it takes no text of its own"],
    ] as const;
    for (const [text, words] of bad) {
      const answer = await send(text, [], "n".repeat(24));
      expect(answer.status, text).toBe(422);
      expect(JSON.stringify(answer.json()), text).toContain(words);
    }
    expect(server.receiver.events).toHaveLength(1);
    expect(await snapshot()).toHaveLength(1);
  });

  it("that looks like a path is a message", async () => {
    await send("/usr/bin/env is where?");
    expect(server.receiver.events[0]?.kind).toBe("message");
  });

  it("is not shown and not lost to its writer when the store is away", async () => {
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
  it("wait on disk, are found by their message, and are read with the cap", async () => {
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

  it("go into a command's options, or are refused with the reason", async () => {
    const picture = await upload("cat.png", await fixture("picture.png"), "image/png");
    await send("/imagine with a hat", [picture]);
    const call = server.receiver.events[0] as CommandCall;
    expect(call.options["image"]).toMatchObject({ name: "cat.png" });
    const refused = await send("/models", [picture], "n".repeat(24));
    expect(refused.status).toBe(422);
    expect(JSON.stringify(refused.json())).toContain("no place for this file");
    const voice = await upload("note.ogg", await fixture("voice.ogg"), "audio/ogg");
    expect((await send("/imagine x", [voice], "p".repeat(24))).status).toBe(422);
  });

  it("that are empty, too large or broken off leave nothing behind", async () => {
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

  it("can be taken back", async () => {
    const uploadId = await upload("a.txt", Buffer.from("words"));
    expect((await server.askAsPage("DELETE", `/api/uploads/${uploadId}`)).status).toBe(200);
    expect(await readdir(join(server.directory, "uploads"))).toEqual([]);
  });

  it("come back with the type of their bytes, and as downloads where a browser could run them", async () => {
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

  it("of the history are read by hash, in ranges too", async () => {
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

async function snapshot(): Promise<{ id: string; text: string }[]> {
  const first = await firstEvent(server.host, `${path}/events`);
  expect(first.event).toBe("snapshot");
  return first.data.items;
}

describe("a reply", () => {
  it("grows on the page, and is shown as it is stored once it has ended", async () => {
    await send("hello");
    const reply = server.platform.openReply({ conversationId, replyId }, hooks);
    const following = await followEvents(server.host, `${path}/events`);
    const isEnough = (all: readonly PageEvent[]) => all.at(-1)?.data.item?.model === "m";
    await reply.show();
    reply.status("Reading cat.png");
    reply.write({ lead: "> 🎙️ what was heard", text: "Hel" });
    reply.write({ lead: "> 🎙️ what was heard", text: "Hello there" });
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
    expect(texts.join()).not.toContain("what was heard");
    expect((await snapshot()).map((item) => item.id)).toEqual([`${key}/user`, `${key}/assistant`]);
  });

  it("shows a picture at the same address before and after it is stored", async () => {
    const bytes = await fixture("picture.png");
    const reply = server.platform.openReply({ conversationId, replyId }, hooks);
    await reply.show();
    await reply.attach({ name: "a.png", mediaType: "image/png", bytes, altText: "a cat" });
    const [item] = (await snapshot()) as unknown as { files: { url: string; altText: string }[] }[];
    expect(item?.files[0]?.altText).toBe("a cat");
    const url = String(item?.files[0]?.url);
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
    const [stored] = (await snapshot()) as unknown as { files: { url: string }[] }[];
    expect(stored?.files[0]?.url).toBe(url);
    expect((await server.askAsPage("GET", url)).bytes.equals(bytes)).toBe(true);
  });

  it("that fails offers Retry for what it failed at, and nothing else", async () => {
    const reply = server.platform.openReply({ conversationId, replyId }, hooks);
    await reply.show();
    await reply.fail({ text: "The gateway is away.", retryKey: "turn-1", notices: ["small print"] });
    expect(await snapshot()).toMatchObject([
      { state: "failed", failure: "The gateway is away.", retryKey: "turn-1" },
    ]);
    expect((await server.askAsPage("POST", `${path}/retry`, { retryKey: "other" })).status).toBe(410);
    expect((await server.askAsPage("POST", `${path}/retry`, { retryKey: "turn-1" })).status).toBe(202);
    expect(server.receiver.retried).toEqual(["turn-1"]);
    const again = server.platform.openReply({ conversationId, replyId }, hooks);
    await again.show();
    const [item] = (await snapshot()) as unknown as Record<string, unknown>[];
    expect(item?.["state"]).toBe("waiting");
    expect(item?.["failure"]).toBeUndefined();
  });

  it("that failed or was interrupted is shown with its failure after a reload", async () => {
    const failure = "The gateway is away.";
    const notices = ["small print"];
    server.receiver.stored.set(conversationId, [
      storedMessage("turn-1/assistant/2", "assistant", "", { outcome: "failed", failure, notices }),
      storedMessage("turn-2/assistant/1", "assistant", "half", { outcome: "interrupted", failure, notices }),
    ]);
    expect(await snapshot()).toMatchObject([
      { id: "turn-1/assistant", state: "failed", failure, notices, retryKey: "turn-1" },
      { id: "turn-2/assistant", state: "finished", isInterrupted: true, notices: [...notices, failure] },
    ]);
  });

  it("of a burst takes the place of the one that was shown under another message", async () => {
    const reply = server.platform.openReply({ conversationId, replyId }, hooks);
    await reply.show();
    reply.write({ text: "For both" });
    const following = await followEvents(server.host, `${path}/events`);
    const isEnough = (all: readonly PageEvent[]) => all.some(({ data }) => data.replaces !== undefined);
    server.receiver.stored.set(conversationId, [
      storedMessage("first/user", "user", "one"),
      storedMessage("second/user", "user", "two"),
      storedMessage("first/assistant/1", "assistant", "For both", { createdAt: Date.now() + 1 }),
    ]);
    await reply.finish();
    const change = (await following.until(isEnough)).at(-1)?.data;
    expect(change).toMatchObject({ replaces: `${key}/assistant`, item: { id: "first/assistant" } });
    expect((await snapshot()).map((item) => item.id)).toEqual([
      "first/user",
      "second/user",
      "first/assistant",
    ]);
  });

  it("survives a store that cannot be read", async () => {
    const reply = server.platform.openReply({ conversationId, replyId }, hooks);
    await reply.show();
    reply.write({ text: "Said anyway" });
    server.receiver.isBroken = true;
    await reply.finish();
    expect((await server.ask(`${path}/events`)).status).toBe(503);
    server.receiver.isBroken = false;
    expect(await snapshot()).toMatchObject([{ text: "Said anyway", state: "finished" }]);
  });

  it("can be told to stop", async () => {
    expect((await server.askAsPage("POST", `${path}/cancel`, {})).json()).toEqual({ isCancelled: true });
    expect(server.receiver.cancelled).toEqual([conversationId]);
  });
});

describe("a page that comes back", () => {
  it("names what it saw and is told the rest, without a snapshot", async () => {
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

  it("may ask for more of the history", async () => {
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
  it("is the same for the same place, and the page that opened it is told", async () => {
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

describe("what the page asks for", () => {
  it("is the state, the list and the models", async () => {
    server.receiver.summaries = [{ conversationId, title: "Otters", updatedAt: 5 }];
    expect((await server.askAsPage("GET", "/api/conversations")).json()).toEqual({
      conversations: [{ id, title: "Otters", updatedAt: 5 }],
    });
    expect((await server.askAsPage("GET", "/api/models?query=im")).json()).toEqual({
      models: ["sandbox/image"],
    });
    const state = (await server.askAsPage("GET", "/api/state")).json();
    expect(state).toMatchObject({ banner: { isSandbox: true }, limits: { maxFileBytes: 100_000 } });
    expect(JSON.stringify(state)).toContain("/imagine <prompt>");
  });

  it("is refused in words where there is nothing", async () => {
    expect((await server.askAsPage("GET", "/api/nothing")).status).toBe(404);
    expect((await server.askAsPage("GET", "/api/conversations/SHOUT/events")).status).toBe(404);
    const wrong = await server.askAsPage("DELETE", `${path}/messages`);
    expect([wrong.status, wrong.headers.allow]).toEqual([405, "POST"]);
    expect((await server.askAsPage("POST", `${path}/messages`, [])).status).toBe(422);
  });

  it("is refused while it starts and after it stopped", async () => {
    await server.platform.stop();
    expect((await server.askAsPage("GET", "/api/state")).status).toBe(503);
    expect(server.platform.health()).toEqual({ state: "ready" });
  });
});
