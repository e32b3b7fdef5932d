import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createCompletionReader } from "../../../src/wire/completion-chunk.ts";
import type { Frame } from "../../../src/wire/frame.ts";
import { createFrameReader, inSlices } from "../../../src/wire/stream-frames.ts";
import { cpuMsOf, slowdown } from "../../support/cpu-time.ts";
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

  it.each([
    ["", "data:x\n"],
    ["", "data:{}\n"],
    ["event: error\n", "data:x\n"],
    [":\n", "{}\n"],
    ["{}\n", "x\n"],
    ["", "x\n"],
  ])("take no longer than a moment at the end of an event of many lines: %j %j", async (begin, line) => {
    const reader = createFrameReader(100_000_000);
    reader.push(Buffer.from(begin));
    const many = Buffer.from(line.repeat(Math.ceil(16_000 / line.length)));
    let longestMs = await cpuMsOf(() => reader.push(many), 1);
    for (let round = 0; round < 250; round += 1)
      longestMs = Math.max(longestMs, await cpuMsOf(() => reader.push(many), 1));
    longestMs = Math.max(longestMs, await cpuMsOf(() => reader.push(Buffer.from("\n\n")), 1));
    expect(longestMs).toBeLessThan(50 * (await slowdown()));
  });

  it("of a large packet are read with turns of the event loop in between", async () => {
    const completion = createCompletionReader();
    const reader = createFrameReader(1e6);
    let turns = 0;
    const count = (): void => {
      turns += 1;
      turn = setImmediate(count);
    };
    let turn = setImmediate(count);
    let slices = 0;
    for await (const slice of inSlices(Buffer.from("data:{}\n\n".repeat(110_000)))) {
      slices += 1;
      for (const frame of reader.push(slice)) if (frame.kind === "json") completion.read(frame.value);
    }
    clearImmediate(turn);
    expect(slices).toBeGreaterThan(50);
    expect(turns).toBeGreaterThan(2);
  });

  it("hold no more than a text that arrives in pieces of one byte", () => {
    const reader = createFrameReader(100_000_000);
    const byte = Buffer.from("x");
    reader.push(Buffer.from("data:"));
    const before = process.memoryUsage().heapUsed;
    for (let count = 0; count < 3_000_000; count += 1) reader.push(byte);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(60_000_000);
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
