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
});
