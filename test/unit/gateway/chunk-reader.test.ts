import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { createChunkReader } from "../../../src/gateway/chunk-reader.ts";

const ticks = async (count: number) => {
  for (let tick = 0; tick < count; tick++) await new Promise((resolve) => setImmediate(resolve));
};

describe("a chunk reader", () => {
  it("applies backpressure to a fast server, and resumes", async () => {
    let sent = 0;
    const body = new Readable({
      read() {
        sent += 65_536;
        // Bounded, since without backpressure this loop would not end.
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

    it.each([
      ["the end", (body: Readable) => body.push(null)],
      ["an error", (body: Readable) => body.destroy(new Error("reset"))],
      ["many bytes", (body: Readable) => body.push(Buffer.alloc(64 * 1024, "m"))],
    ])("waits no longer at %s", async (_, happens) => {
      const { body, next } = start(60_000);
      body.push("a");
      await next();
      const gathered = next();
      body.push("last words");
      await ticks(2);
      happens(body);
      expect((await gathered)?.slice(0, 10)).toBe("last words");
    });
  });
});
