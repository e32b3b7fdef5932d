/** So many pieces are joined to one. */
const maxPieces = 1024;

/** Collects a text that arrives in pieces. Its memory is that of the text, however small the pieces are. */
export function createOpenText() {
  let joined: string[] = [];
  let pieces: string[] = [];
  let chars = 0;
  return {
    add(piece: string): void {
      if (piece === "") return;
      pieces.push(piece);
      chars += piece.length;
      if (pieces.length < maxPieces) return;
      joined.push(pieces.join(""));
      pieces = [];
    },
    chars: () => chars,
    /** Returns the text and begins an empty one. */
    take(): string {
      const text = joined.length === 0 && pieces.length === 1 ? pieces[0] : [...joined, ...pieces].join("");
      joined = [];
      pieces = [];
      chars = 0;
      return text ?? "";
    },
  };
}
