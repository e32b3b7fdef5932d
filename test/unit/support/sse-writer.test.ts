import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createSseWriter, type SseWriter } from "../../../src/support/http/event-stream.ts";

let close: (() => void) | undefined;
afterEach(() => close?.());

interface Connection {
  readonly writer: SseWriter;
  readonly server: ServerResponse;
  /** The response is paused until it is read. */
  readonly client: IncomingMessage;
}

async function open(options?: Parameters<typeof createSseWriter>[1]): Promise<Connection> {
  const accepted = Promise.withResolvers<{ writer: SseWriter; server: ServerResponse }>();
  const http = createServer((_, server) =>
    accepted.resolve({ writer: createSseWriter(server, options), server }),
  );
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const answered = Promise.withResolvers<IncomingMessage>();
  const outgoing = request({ port: (http.address() as AddressInfo).port }, answered.resolve);
  outgoing.end();
  close = () => {
    outgoing.destroy();
    http.closeAllConnections();
    http.close();
  };
  const client = await answered.promise;
  client.on("error", () => {});
  return { ...(await accepted.promise), client };
}

async function readAll(client: IncomingMessage): Promise<string> {
  client.setEncoding("utf8");
  let text = "";
  for await (const chunk of client) text += String(chunk);
  return text;
}

describe("SSE writer", () => {
  it("sends headers at once, then events with their fields, one data line each", async () => {
    const { writer, client } = await open({ headers: { "x-request-id": "r1" }, retryMs: 1000 });
    expect(client.headers).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "x-request-id": "r1",
    });
    void writer.send("one");
    writer.push("two\nlines", { id: "7", event: "change" });
    writer.end();
    expect(await readAll(client)).toBe(
      "retry: 1000\n\ndata: one\n\nid: 7\nevent: change\ndata: two\ndata: lines\n\n",
    );
  });

  it("sends a comment during silence", async () => {
    const { writer, client } = await open({ pingMs: 5 });
    const text = readAll(client);
    await new Promise((resolve) => client.once("data", resolve));
    writer.end();
    expect(await text).toMatch(/^(: ping\n\n)+$/);
  });

  it("returns a promise while the client reads too slowly, and resolves it when the client reads on", async () => {
    const { writer, client } = await open();
    let blocked: Promise<void> | undefined;
    while (blocked === undefined) blocked = writer.send("x".repeat(100_000));
    client.resume();
    await blocked;
  });

  it("rejects and disconnects when the client stops reading", async () => {
    const { writer, server } = await open({ stalledMs: 50 });
    let blocked: Promise<void> | undefined;
    while (blocked === undefined) blocked = writer.send("x".repeat(8_000_000));
    await expect(blocked).rejects.toThrow("client disconnected or stalled");
    expect(server.destroyed).toBe(true);
  });

  it("disconnects a client with too much unread that it is pushed", async () => {
    const { writer, server } = await open({ maxBufferedBytes: 1000 });
    await vi.waitFor(() => {
      writer.push("x".repeat(4_000_000));
      expect(server.destroyed).toBe(true);
    });
  });
});
