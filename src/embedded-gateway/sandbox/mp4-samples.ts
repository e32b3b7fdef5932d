const containers = new Set(["moov", "trak", "mdia", "minf", "stbl", "moof", "traf"]);
/** Real files have some hundred boxes, fragmented ones some thousand. */
const maxBoxes = 20_000;
const maxDepth = 8;

/**
 * The most samples that an MP4 file's tables (`stsz`, `stz2`, `trun`) claim, over all tracks. Unlike the duration in
 * its headers this bounds what a decoder produces. `Infinity` for a file of too many boxes.
 * @see https://developer.apple.com/documentation/quicktime-file-format/sample_size_atom
 */
export function countMp4Samples(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let samples = 0;
  let boxes = 0;

  function walk(from: number, to: number, depth: number): void {
    let at = from;
    while (at + 8 <= to) {
      boxes += 1;
      if (boxes > maxBoxes) {
        samples = Number.POSITIVE_INFINITY;
        return;
      }
      const short = view.getUint32(at);
      const isLong = short === 1 && at + 16 <= to;
      const header = isLong ? 16 : 8;
      const size = isLong ? Number(view.getBigUint64(at + 8)) : short === 0 ? to - at : short;
      if (size < header) return;
      const id = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
      const end = Math.min(at + size, to);
      // The decoder reads the content of every container from its eighth byte on.
      if (containers.has(id) && depth < maxDepth) walk(at + 8, end, depth + 1);
      if ((id === "stsz" || id === "stz2") && at + 20 <= to) samples += view.getUint32(at + 16);
      if (id === "trun" && at + 16 <= to) samples += view.getUint32(at + 12);
      at += size;
    }
  }

  walk(0, bytes.length, 0);
  return samples;
}
