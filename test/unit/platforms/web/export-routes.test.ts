import { unzipSync } from "fflate";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ExportedFile } from "../../../../src/core/storage.ts";
import { startPageServer, type PageServer } from "./page-server.ts";

const id = "c".repeat(24);
const conversationId = `web:${id}`;
const path = `/api/conversations/${id}/export`;

const fileOf = (name: string, mediaType: string, text: string): ExportedFile => ({
  name,
  mediaType,
  async *read() {
    if (text !== "") yield Buffer.from(text);
  },
});

let server: PageServer;
beforeEach(async () => {
  server = await startPageServer();
  server.receiver.stored.set(conversationId, []);
  server.receiver.exports.set(conversationId, {
    title: 'Ships: "old" / new\r\n😀',
    files: [
      fileOf("conversation.md", "text/markdown", "# Ships\n"),
      fileOf("conversation.json", "application/json", "{}\n"),
      fileOf("image-1.png", "image/png", "picture"),
      fileOf("image-2.png", "image/png", ""),
    ],
  });
});
afterEach(async () => {
  await server.close();
});

describe("a chat is downloaded", () => {
  it("as one archive with every file that is still stored", async () => {
    const answer = await server.ask(`${path}.zip`);
    expect(answer.status).toBe(200);
    expect(answer.headers["content-type"]).toBe("application/zip");
    expect(answer.headers["content-disposition"]).toBe("attachment; filename*=UTF-8''Ships%20old%20new.zip");
    expect(answer.headers["content-security-policy"]).toContain("sandbox");
    const files = unzipSync(answer.bytes);
    expect(Object.keys(files)).toEqual(["conversation.md", "conversation.json", "image-1.png"]);
    expect(Buffer.from(files["image-1.png"] ?? []).toString()).toBe("picture");
  });

  it("as Markdown", async () => {
    const answer = await server.ask(`${path}.md`);
    expect(answer.headers["content-type"]).toBe("text/markdown; charset=utf-8");
    expect(answer.headers["content-disposition"]).toContain("attachment");
    expect(answer.bytes.toString()).toBe("# Ships\n");
    const head = await server.ask(`${path}.md`, { method: "HEAD" });
    expect(head.status).toBe(200);
    expect(head.bytes.byteLength).toBe(0);
  });

  it("only where there is one, and only by the page", async () => {
    expect((await server.ask(`/api/conversations/${"d".repeat(24)}/export.zip`)).status).toBe(404);
    const foreign = await server.ask(`${path}.zip`, { headers: { "sec-fetch-site": "cross-site" } });
    expect(foreign.status).toBe(403);
  });

  it("not to the end when a file cannot be read", async () => {
    server.receiver.exports.set(conversationId, {
      title: "",
      files: [
        {
          name: "conversation.md",
          mediaType: "text/markdown",
          async *read() {
            yield Buffer.from("begin");
            throw new Error("the disk is gone");
          },
        },
      ],
    });
    await expect(server.ask(`${path}.zip`)).rejects.toThrow(/aborted|hang up/);
    server.receiver.isBroken = true;
    expect((await server.ask(`${path}.zip`)).status).toBe(503);
  });
});
