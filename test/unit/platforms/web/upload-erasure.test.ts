import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createSealer } from "../../../../src/conversations/encryption.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { IncomingMessage } from "../../../../src/core/events.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import { sharedPerson } from "../../../../src/platforms/web/address.ts";
import { storedMessage } from "./fake-receiver.ts";
import { startPageServer, type PageServer } from "./page-server.ts";

const marker = "the vault code is 7319";
const id = "c".repeat(24);
const conversationId = `web:${id}`;
const path = `/api/conversations/${id}`;
const replyId = "m".repeat(24);
const hooks = { saveAddress: () => Promise.resolve() };

let server: PageServer;
beforeEach(async () => {
  server = await startPageServer({ maxFileBytes: 5_000_000 });
});
afterEach(async () => {
  await server.close();
});

/** Returns the bytes of every file below the data folder, with their names. */
async function bytesOnDisk(): Promise<string> {
  const names = await readdir(server.directory, { recursive: true });
  const texts = await Promise.all(
    names.map(async (name) => {
      const file = join(server.directory, name);
      return (await stat(file)).isFile() ? `${name}\n${(await readFile(file)).toString("latin1")}` : name;
    }),
  );
  return texts.join("\n");
}

async function upload(
  bytes: string | Uint8Array = marker,
  name = "vault plan.txt",
  mediaType = "text/plain",
): Promise<string> {
  const answer = await server.ask(`/api/uploads?name=${encodeURIComponent(name)}`, {
    method: "POST",
    headers: { "x-parley": "1", "content-type": mediaType },
    body: bytes,
  });
  expect(answer.status).toBe(201);
  return String(answer.json()["id"]);
}

const send = (text: string, uploads: readonly string[], messageId = replyId) =>
  server.askAsPage("POST", `${path}/messages`, { id: messageId, text, uploads });

const download = (index = 0) =>
  server.platform.download((server.receiver.events[index] as IncomingMessage).attachments[0]!, {
    maxBytes: 10_000_000,
    signal: AbortSignal.timeout(5000),
  });

describe("an upload on disk, with keys", () => {
  const key = Buffer.alloc(32, 7).toString("base64");
  beforeEach(async () => {
    await server.close();
    server = await startPageServer({ maxFileBytes: 5_000_000, sealer: createSealer([key]) });
  });

  // Attack: Reading uploads on disk; exchanging or cutting them.
  it("is encrypted from its first byte, its name too, and read as it was", async () => {
    const bytes = Buffer.from(marker.repeat(150_000));
    const uploadId = await upload(bytes);
    const stored = await bytesOnDisk();
    expect(stored).not.toContain(marker);
    expect(stored).not.toContain("vault plan");
    await send("look", [uploadId]);
    expect(Buffer.from(await download()).equals(bytes)).toBe(true);
    expect(await bytesOnDisk()).not.toContain(conversationId);
    const shown = await server.askAsPage("GET", `/api/uploads/${uploadId}`);
    expect(shown.bytes.equals(bytes)).toBe(true);
  });

  it("does not open under another name, and not as plain text", () => {
    const sealer = createSealer([key]);
    const sealed = sealer.seal("upload/a/0", Buffer.from(marker));
    expect(Buffer.from(sealer.open("upload/a/0", sealed)).toString()).toBe(marker);
    expect(() => sealer.open("upload/a/1", sealed)).toThrow(/moved|changed/);
    expect(() => sealer.open("upload/a/0", Buffer.from(marker.repeat(3)))).toThrow(ParleyError);
  });
});

// Attack: Uploads that stay after `/forget`, deletion, retention.
describe("an upload is removed from the disk", () => {
  beforeEach(async () => {
    const uploadId = await upload();
    expect(await bytesOnDisk()).toContain(marker);
    await send("look", [uploadId]);
  });

  const isGone = async () => {
    const stored = await bytesOnDisk();
    return !stored.includes(marker) && !stored.includes("vault plan");
  };

  it("when its author forgets the conversation", async () => {
    await server.platform.erasure.forgetAuthor("web:other", sharedPerson.author.id);
    await server.platform.erasure.forgetAuthor(conversationId, "discord:1");
    expect(await isGone()).toBe(false);
    await server.platform.erasure.forgetAuthor(conversationId, sharedPerson.author.id);
    expect(await isGone()).toBe(true);
  });

  it("when its author forgets everything, also where it is not sent yet", async () => {
    await upload(marker, "vault plan 2.txt");
    await server.platform.erasure.forgetAuthor(undefined, sharedPerson.author.id);
    expect(await isGone()).toBe(true);
  });

  it("when its conversation is deleted, on the page or by the store", async () => {
    expect((await server.askAsPage("DELETE", path)).status).toBe(200);
    expect(await isGone()).toBe(true);
    await send("look", [await upload()], "n".repeat(24));
    await server.platform.erasure.deleteConversation(conversationId);
    expect(await isGone()).toBe(true);
  });

  it("when its message is stored, and sending the message again is still a duplicate", async () => {
    const address = { conversationId, replyId };
    const reply = server.platform.openReply(address, hooks);
    await reply.show();
    await download();
    reply.write({ text: "Let me see" });
    await reply.fail({ text: "The model failed.", retryKey: "key" });
    expect(await isGone()).toBe(false);
    const stored = storedMessage(`${conversationId}:${replyId}/user`, "user", "look");
    server.receiver.stored.set(conversationId, [stored]);
    const again = server.platform.openReply(address, hooks);
    await again.show();
    await again.finish();
    expect(await isGone()).toBe(true);
    const uploads = ["0".repeat(32)];
    expect((await send("look", uploads)).json()).toEqual({ outcome: "duplicate" });
    expect((await send("look", uploads, "n".repeat(24))).status).toBe(410);
  });

  it("when its message is stored; a picture later, since pages may still be loading it", async () => {
    const picture = await upload(await fixture("picture.png"), "plan.png", "image/png");
    const other = { conversationId, replyId: "n".repeat(24) };
    await send("look", [picture], other.replyId);
    server.receiver.stored.set(conversationId, [
      storedMessage(`${conversationId}:${other.replyId}/user`, "user", "look"),
    ]);
    const reply = server.platform.openReply(other, hooks);
    await reply.show();
    await reply.finish();
    expect((await server.askAsPage("GET", `/api/uploads/${picture}`)).status).toBe(200);
    await server.platform.stop();
    expect(await bytesOnDisk()).not.toContain(picture);
  });
});

describe("an upload stays", () => {
  it("for the next try when its message is refused as busy, which the page says", async () => {
    const uploadId = await upload();
    server.receiver.refusal = new ParleyError("busy", "too many", { detail: { waiting: 50 } });
    const refused = await send("look", [uploadId]);
    expect(refused.status).toBe(429);
    expect(JSON.stringify(refused.json())).toContain("You have 50 requests that are not answered yet");
    server.receiver.refusal = undefined;
    expect((await send("look", [uploadId])).json()).toEqual({ outcome: "accepted" });
    expect(Buffer.from(await download()).toString()).toBe(marker);
  });

  it("while a call can be run again", async () => {
    const bytes = await upload();
    await send("/imagine a cat", [bytes]);
    expect(server.receiver.events).toHaveLength(0);
    const picture = await server.ask("/api/uploads?name=a.png", {
      method: "POST",
      headers: { "x-parley": "1", "content-type": "image/png" },
      body: marker,
    });
    await send("/imagine a cat", [String(picture.json()["id"])]);
    server.receiver.stored.set(conversationId, [
      storedMessage(`${conversationId}:${replyId}/user`, "user", "/imagine a cat"),
    ]);
    const reply = server.platform.openReply({ conversationId, replyId }, hooks);
    await reply.show();
    await reply.fail({ text: "The model failed.", retryKey: "key" });
    expect((await server.askAsPage("GET", `/api/uploads/${String(picture.json()["id"])}`)).status).toBe(200);
  });
});

describe("uploads in parallel", () => {
  // Attack: Filling the disk by parallel uploads without a length.
  it("that announce no length stay within the total", async () => {
    await server.close();
    server = await startPageServer({ maxFileBytes: 100_000 });
    // The total is 100 files of the largest size.
    for (let index = 0; index < 95; index++) await upload(new Uint8Array(100_000), `${index}`);
    const answers = await Promise.all(
      Array.from({ length: 14 }, () =>
        server.ask("/api/uploads?name=a", {
          method: "POST",
          headers: { "x-parley": "1", "transfer-encoding": "chunked" },
          body: new Uint8Array(100_000),
        }),
      ),
    );
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 201).length).toBeLessThanOrEqual(5);
    expect(statuses.every((status) => status === 201 || status === 413)).toBe(true);
    const folder = join(server.directory, "uploads");
    const sizes = await Promise.all(
      (await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size),
    );
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(100 * 100_000 + 100 * 1000);
  });
});
