/** How many bytes a piece counts for at least, so that many tiny ones are no cheaper than their bytes. */
const leastBytesOfPiece = 64;
/** So many pieces may be tiny, however small the limit is. */
const freePieces = 1000;

/** A limit of bytes that arrive in pieces. */
export interface ByteLimit {
  /** Counts a piece. Returns whether all so far are within the limit. */
  take(piece: Uint8Array): boolean;
  /** The sum of all pieces in bytes. */
  bytes(): number;
}

/**
 * Counts pieces against `maxBytes`. A piece of one byte costs as much memory and time as one of many, so past
 * a thousand pieces each counts for at least 64 bytes.
 */
export function createByteLimit(maxBytes: number): ByteLimit {
  const maxCost = maxBytes + freePieces * leastBytesOfPiece;
  let bytes = 0;
  let cost = 0;
  return {
    take(piece) {
      bytes += piece.length;
      cost += Math.max(piece.length, leastBytesOfPiece);
      return bytes <= maxBytes && cost <= maxCost;
    },
    bytes: () => bytes,
  };
}

/**
 * Copies pieces into one growing buffer, so that a piece leaves nothing behind but its bytes. Whatever reads
 * bytes of others to their end keeps them in one.
 */
export interface ByteCollector {
  /** Adds a piece. Returns false, and keeps nothing, once the pieces are over the limit. */
  add(piece: Uint8Array): boolean;
  /** How many bytes are kept. */
  bytes(): number;
  /** Returns what has been added, and is empty afterwards. */
  take(): Buffer<ArrayBuffer>;
}

const leastCapacity = 4096;

/** Creates a {@link ByteCollector} for at most `maxBytes`, counted as {@link createByteLimit} does. */
export function createByteCollector(maxBytes: number): ByteCollector {
  const limit = createByteLimit(maxBytes);
  let buffer = Buffer.alloc(0);
  let size = 0;
  let isOver = false;

  function makeRoom(needed: number): void {
    if (needed <= buffer.length) return;
    const capacity = Math.max(needed, Math.min(maxBytes, Math.max(leastCapacity, buffer.length * 2)));
    // It is not of the shared pool, whose slabs would be kept by what is left of a small buffer.
    const larger = Buffer.allocUnsafeSlow(capacity);
    buffer.copy(larger, 0, 0, size);
    buffer = larger;
  }

  return {
    add(piece) {
      isOver ||= !limit.take(piece);
      if (isOver) {
        buffer = Buffer.alloc(0);
        size = 0;
        return false;
      }
      makeRoom(size + piece.length);
      buffer.set(piece, size);
      size += piece.length;
      return true;
    },
    bytes: () => size,
    take() {
      const taken = buffer.subarray(0, size);
      buffer = Buffer.alloc(0);
      size = 0;
      return taken;
    },
  };
}
