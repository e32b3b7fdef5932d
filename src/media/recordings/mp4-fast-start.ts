import { bigEndian, latin1 } from "../bytes.ts";

const containers = new Set(["moov", "trak", "mdia", "minf", "stbl"]);
const maxBoxes = 20_000;

interface Box {
  readonly id: string;
  readonly start: number;
  /** First byte of the content. */
  readonly content: number;
  readonly end: number;
}

/**
 * An MP4 file with its index first, so that a decoder can read it from the front to the end without holding all of it.
 * `headBytes`: what the decoder must get at once. A file without an index is returned as it is.
 */
export function withIndexFirst(bytes: Uint8Array<ArrayBuffer>): {
  readonly pieces: readonly Uint8Array[];
  readonly headBytes: number;
} {
  const top = boxesIn(bytes, 0, bytes.length);
  const index = top.find(({ id }) => id === "moov");
  const data = top.find(({ id }) => id === "mdat" || id === "moof");
  if (index === undefined || data === undefined || index.start < data.start)
    return { pieces: [bytes], headBytes: data?.content ?? bytes.length };
  const moved = bytes.slice(index.start, index.end);
  shiftOffsets(moved, moved.length, index.start);
  return {
    pieces: [
      bytes.subarray(0, data.start),
      moved,
      bytes.subarray(data.start, index.start),
      bytes.subarray(index.end),
    ],
    headBytes: data.content + moved.length,
  };
}

/** The sample tables hold places in the file: what lies before the index moves back by its length. */
function shiftOffsets(index: Uint8Array, by: number, before: number): void {
  const view = new DataView(index.buffer, index.byteOffset, index.byteLength);
  const walk = (from: number, to: number): void => {
    for (const { id, content, end } of boxesIn(index, from, to)) {
      if (containers.has(id)) walk(content, end);
      const width = id === "stco" ? 4 : id === "co64" ? 8 : 0;
      if (width === 0 || content + 8 > end) continue;
      const count = view.getUint32(content + 4);
      for (let at = content + 8, left = count; left > 0 && at + width <= end; at += width, left -= 1) {
        const offset = bigEndian(index, at + width - Math.min(width, 6), Math.min(width, 6));
        if (offset >= before) continue;
        if (width === 4) view.setUint32(at, offset + by);
        else view.setBigUint64(at, BigInt(offset + by));
      }
    }
  };
  walk(0, index.length);
}

function boxesIn(bytes: Uint8Array, from: number, to: number): Box[] {
  const boxes: Box[] = [];
  let at = from;
  while (at + 8 <= to && boxes.length < maxBoxes) {
    const short = bigEndian(bytes, at, 4);
    const header = short === 1 ? 16 : 8;
    const size = short === 1 ? bigEndian(bytes, at + 10, 6) : short === 0 ? to - at : short;
    if (size < header) break;
    boxes.push({
      id: latin1(bytes, at + 4, 4),
      start: at,
      content: at + header,
      end: Math.min(at + size, to),
    });
    at += size;
  }
  return boxes;
}
