import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createFrameReader, type Frame } from "../../../src/wire/stream-frames.ts";
import { cpuMsOf } from "../../support/cpu-time.ts";
import { corpus } from "../../simulators/gateway/corpus.ts";

function readAll(packets: readonly Uint8Array[], maxChars = 10_000_000): Frame[] {
  const reader = createFrameReader(maxChars);
  return [...packets.flatMap((packet) => reader.push(packet)), ...reader.end()];
}

const bodies = corpus.map(({ answer }) => Buffer.from(answer.body ?? ""));

describe("frames of a body", () => {
  it("are the same for every single split", () => {
    for (const body of bodies) {
      const expected = readAll([body]);
      // A long body is mostly one picture. A prime number as the step meets every place of its lines.
      const step = body.length > 2000 ? 31 : 1;
      for (let at = 1; at < body.length; at += step) {
        const actual = readAll([body.subarray(0, at), body.subarray(at)]);
        // Vitest's own comparison is far slower.
        if (!isDeepStrictEqual(actual, expected)) expect(actual).toEqual(expected);
      }
    }
    expect(bodies.length).toBeGreaterThan(100);
  });

  it("are the same however the body is split", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...bodies),
        fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 60 }),
        (body, sizes) => {
          const packets: Uint8Array[] = [];
          let at = 0;
          for (const size of sizes) {
            packets.push(body.subarray(at, at + size));
            at += size;
          }
          packets.push(body.subarray(at));
          expect(readAll(packets)).toEqual(readAll([body]));
        },
      ),
    );
  });

  it("never throw, whatever the bytes", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 10 }), (packets) => {
        readAll(packets);
      }),
    );
  });

  it.each(["data: ", "{", '{"a":"'])(
    "ends at the limit when one frame that begins %j never does",
    (start) => {
      const packets = [Buffer.from(start), ...Array.from({ length: 100 }, () => Buffer.alloc(1000, "x"))];
      expect(readAll(packets, 10_000)).toEqual([{ kind: "too-large" }]);
    },
  );

  it("take linear time, also when one event arrives in many packets", async () => {
    const read = (packets: number) => () => {
      const body = [
        Buffer.from('data: {"x":"'),
        ...Array.from({ length: packets }, () => Buffer.alloc(64, "A")),
        Buffer.from('"}\n\n'),
      ];
      expect(readAll(body, 1e9)).toHaveLength(1);
    };
    read(2000)();
    let growth = Infinity;
    // Another process may take the processor for a while. Quadratic time would be 64 in all of them.
    for (let round = 0; round < 5 && growth >= 24; round++)
      growth = (await cpuMsOf(read(64_000), 3)) / (await cpuMsOf(read(8000), 5));
    expect(growth).toBeLessThan(24);
  });

  it("distinguish a large incomplete frame from pings", () => {
    const reader = createFrameReader(1e6);
    reader.push(Buffer.from(": keep-alive\n\n"));
    expect(reader.hasGrown()).toBe(false);
    reader.push(Buffer.from(`data: "${"A".repeat(2000)}`));
    expect(reader.hasGrown()).toBe(true);
    expect(reader.hasGrown()).toBe(false);
  });
});
