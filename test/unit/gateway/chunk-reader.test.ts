import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { createChunkReader } from "../../../src/gateway/chunk-reader.ts";

const ticks = async (count: number) => {
  for (let tick = 0; tick < count; tick++) await new Promise((resolve) => setImmediate(resolve));
};

describe("a chunk reader", () => {
  it("makes a fast server wait for a slow reader, and lets it go on", async () => {
    let sent = 0;
    const body = new Readable({
      read() {
        sent += 65_536;
        // Without end, a reader that never pauses would never let go of this loop.
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

  it("gives what came before a break, and only then the break", async () => {
    const body = new Readable({ read() {} });
    const reader = createChunkReader(body);
    body.push("last words");
    await ticks(1);
    body.destroy(new Error("reset"));
    await ticks(3);
    expect(Buffer.from((await reader.next()) ?? []).toString()).toBe("last words");
    await expect(reader.next()).rejects.toThrow("reset");
  });

  it("never takes a body that was closed for one that ended", async () => {
    const body = new Readable({ read() {} });
    const reader = createChunkReader(body);
    body.destroy();
    await expect(reader.next()).rejects.toThrow("closed");
    const whole = createChunkReader(Readable.from([Buffer.from("a")]));
    expect(await whole.next()).toBeDefined();
    expect(await whole.next()).toBeUndefined();
  });
});
