/** Reads `length` bytes from `start` as Latin-1 text, or fewer at the end of the bytes. It never throws. */
export function latin1(bytes: Uint8Array, start: number, length: number): string {
  return String.fromCharCode(...bytes.subarray(start, start + length));
}

/** Whether the bytes at `offset` are exactly `expected`. It never throws. */
export function hasBytes(bytes: Uint8Array, offset: number, expected: readonly number[]): boolean {
  return expected.every((byte, index) => bytes[offset + index] === byte);
}

/** Reads a big-endian unsigned number of up to 6 bytes. Bytes past the end count as 0. */
export function bigEndian(bytes: Uint8Array, offset: number, length: number): number {
  let value = 0;
  for (let index = 0; index < length; index += 1) value = value * 256 + (bytes[offset + index] ?? 0);
  return value;
}

/** Reads a little-endian unsigned number of up to 6 bytes. Bytes past the end count as 0. */
export function littleEndian(bytes: Uint8Array, offset: number, length: number): number {
  let value = 0;
  for (let index = length - 1; index >= 0; index -= 1) value = value * 256 + (bytes[offset + index] ?? 0);
  return value;
}
