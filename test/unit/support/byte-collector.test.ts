import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createByteCollector } from "../../../src/support/byte-collector.ts";
import { retainedBytes } from "../../support/retained.ts";

// Attack: A million HTTP chunks of one byte to any address, which took 1.5 GB and a second at a
// time. What holds: what arrives is copied into one buffer; a piece counts for 64 bytes at least;
// past a limit nothing is listened to.
describe("createByteCollector", () => {
  it("returns what was added, however it is cut, and is empty afterwards", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 9000 }), { maxLength: 20 }), (pieces) => {
        const whole = Buffer.concat(pieces);
        const collector = createByteCollector(whole.length);
        for (const piece of pieces) expect(collector.add(piece)).toBe(true);
        expect(collector.bytes()).toBe(whole.length);
        expect(collector.take().equals(whole)).toBe(true);
        expect(collector.take()).toHaveLength(0);
      }),
    );
  });

  it("keeps its own copy", () => {
    const collector = createByteCollector(10);
    const piece = Buffer.from("a");
    collector.add(piece);
    piece.fill("b");
    expect(collector.take().toString()).toBe("a");
  });

  it("keeps nothing from the first byte past its limit on", () => {
    const collector = createByteCollector(3);
    expect(collector.add(Buffer.from("abc"))).toBe(true);
    expect(collector.add(Buffer.from("d"))).toBe(false);
    expect(collector.add(Buffer.alloc(0))).toBe(false);
    expect(collector.take()).toHaveLength(0);
  });

  it("counts a tiny piece as 64 bytes, past a thousand of them", () => {
    const add = (maxBytes: number) => {
      const collector = createByteCollector(maxBytes);
      let pieces = 0;
      while (collector.add(Buffer.from("a"))) pieces += 1;
      return pieces;
    };
    expect(add(64_000)).toBe(2000);
    expect(add(640)).toBe(640);
  });

  it("leaves nothing of a piece but its bytes", () => {
    const before = retainedBytes();
    const collector = createByteCollector(25_000_000);
    // Each is a part of what came from the network at once, as with chunks of one byte.
    for (let slab = 0; slab < 10; slab += 1) {
      const arrived = Buffer.alloc(64 * 1024);
      for (let at = 0; at < 30_000; at += 1) collector.add(arrived.subarray(at, at + 1));
    }
    expect(collector.bytes()).toBe(300_000);
    expect(retainedBytes() - before).toBeLessThan(2_000_000);
    expect(collector.take()).toHaveLength(300_000);
  });
});
