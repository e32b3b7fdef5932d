import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { Readable } from "node:stream";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Log } from "../../../src/core/telemetry.ts";
import { createChunkReader } from "../../../src/wire/stream-frames.ts";
import { createTransport } from "../../../src/wire/transport.ts";

const ticks = async (count: number) => {
  for (let tick = 0; tick < count; tick++) await new Promise((resolve) => setImmediate(resolve));
};

describe("a chunk reader", () => {
  it("applies backpressure to a fast server, and resumes", async () => {
    let sent = 0;
    const body = new Readable({
      read() {
        sent += 65_536;
        // It is limited, since without backpressure this loop would not end.
        this.push(sent > 64 * 1024 * 1024 ? null : Buffer.alloc(65_536));
      },
    });
    const reader = createChunkReader(body);
    await ticks(200);
    const waiting = sent;
    expect(waiting).toBeLessThan(3 * 1024 * 1024);
    expect((await reader.next())?.length).toBeGreaterThan(0);
    await ticks(200);
    expect(sent).toBeGreaterThan(waiting);
    expect(sent).toBeLessThan(6 * 1024 * 1024);
    reader.cancel();
    expect(body.destroyed).toBe(true);
  });

  it("returns all packets before a stream error", async () => {
    const body = new Readable({ read() {} });
    const reader = createChunkReader(body);
    body.push("last words");
    await ticks(1);
    body.destroy(new Error("reset"));
    await ticks(3);
    expect(Buffer.from((await reader.next()) ?? []).toString()).toBe("last words");
    await expect(reader.next()).rejects.toThrow("reset");
  });

  it("treats a closed body as an error, not as an end", async () => {
    const body = new Readable({ read() {} });
    const reader = createChunkReader(body);
    body.destroy();
    await expect(reader.next()).rejects.toThrow("closed");
    const whole = createChunkReader(Readable.from([Buffer.from("a")]));
    expect(await whole.next()).toBeDefined();
    expect(await whole.next()).toBeUndefined();
  });

  describe("that gathers packets", () => {
    const start = (gatherMs: number) => {
      const body = new Readable({ read() {} });
      const reader = createChunkReader(body);
      const next = async () => {
        const chunk = await reader.next(gatherMs);
        return chunk === undefined ? undefined : Buffer.from(chunk).toString();
      };
      return { body, next };
    };

    it("returns the first at once, and what follows it together", async () => {
      const { body, next } = start(200);
      body.push("a");
      expect(await next()).toBe("a");
      const startedAt = performance.now();
      const gathered = next();
      for (const packet of ["b", "c", "d"]) {
        body.push(packet);
        await ticks(2);
      }
      expect(await gathered).toBe("bcd");
      expect(performance.now() - startedAt).toBeGreaterThan(150);
    });

    it("does not wait for more after a pause", async () => {
      const { body, next } = start(50);
      body.push("a");
      await next();
      await new Promise((resolve) => setTimeout(resolve, 60));
      const late = next();
      body.push("b");
      await ticks(2);
      body.push("c");
      expect(await late).toBe("b");
      expect(await next()).toBe("c");
    });

    it("reads nothing meanwhile", async () => {
      const { body, next } = start(100);
      body.push("a");
      await next();
      const gathered = next();
      body.push("b");
      await ticks(5);
      expect(body.readableLength).toBe(1);
      expect(await gathered).toBe("b");
    });

    it("notices an end when the time is over", async () => {
      const { body, next } = start(100);
      body.push("a");
      await next();
      const gathered = next();
      body.push("last words");
      body.push(null);
      expect(await gathered).toBe("last words");
      expect(await next()).toBeUndefined();
    });

    it("waits no longer at an error, and returns what the paused body held", async () => {
      const { body, next } = start(60_000);
      body.push("a");
      await next();
      const gathered = next();
      body.push("last words");
      await ticks(2);
      body.destroy(new Error("reset"));
      expect(await gathered).toBe("last words");
      await expect(next()).rejects.toThrow("reset");
    });

    it("does not wait while a picture arrives", async () => {
      const { body, next } = start(60_000);
      for (const bytes of [8 * 1024, 8 * 1024]) body.push(Buffer.alloc(bytes, "m"));
      await ticks(2);
      expect((await next())?.length).toBe(16 * 1024);
      for (const packet of ["n", "o"]) {
        const following = next();
        body.push(packet);
        expect(await following).toBe(packet);
      }
    });
  });

  describe("on a connection", () => {
    /** Begins an answer whose first packet has been read. */
    const begin = async () => {
      const connected = new Promise<Socket>((resolve) => {
        subscribe("undici:client:connected", function note(message) {
          unsubscribe("undici:client:connected", note);
          resolve((message as { readonly socket: Socket }).socket);
        });
      });
      const responding = Promise.withResolvers<ServerResponse>();
      const server = createServer((_, response) => responding.resolve(response));
      await once(server.listen(0, "127.0.0.1"), "listening");
      const transport = createTransport({
        baseUrl: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
        apiKey: undefined,
        connectMs: 1000,
        scrub: (text) => text,
        log: { debug: () => {} } as unknown as Log,
      });
      onTestFinished(async () => {
        server.closeAllConnections();
        server.close();
        await transport.close();
      });
      const { signal } = new AbortController();
      const timeouts = { signal, progress: () => {}, alive: () => {} };
      const sent = transport.send({
        operation: "chat",
        model: "m",
        timeouts,
        callerSignal: signal,
        path: "/v1/chat",
      });
      const response = await responding.promise;
      const write = (packet: string) => new Promise<unknown>((resolve) => response.write(packet, resolve));
      await write("packet 0\n");
      const reader = createChunkReader((await sent).body);
      const next = async (gatherMs: number) => Buffer.from((await reader.next(gatherMs)) ?? []).toString();
      expect(await next(0)).toBe("packet 0\n");
      return { next, write, response, socket: await connected };
    };
    const packets = Array.from({ length: 30 }, (_, at) => `packet ${at + 1}\n`);

    it("leaves packets unread while it gathers, and then reads all", async () => {
      const { next, write, socket } = await begin();
      const before = socket.bytesRead;
      const gathered = next(500);
      for (const packet of packets) {
        await write(packet);
        await ticks(3);
      }
      const read = socket.bytesRead - before;
      expect(read).toBeGreaterThan(0);
      expect(read).toBeLessThan(packets.join("").length / 5);
      expect(await gathered).toBe(packets.join(""));
    });

    it.each([
      ["one", 1],
      ["many", packets.length],
    ])("loses nothing when the connection is reset with %s unread", async (_, count) => {
      const { next, write, response } = await begin();
      const gathered = next(200);
      for (const packet of packets.slice(0, count)) {
        await write(packet);
        await ticks(3);
      }
      response.socket?.resetAndDestroy();
      expect(await gathered).toBe(packets.slice(0, count).join(""));
      await expect(next(200)).rejects.toMatchObject({ code: "ECONNRESET" });
    });
  });
});
