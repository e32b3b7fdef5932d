/** For how long work on much text may use one turn of the event loop, in milliseconds. */
const shareMs = 8;
/** How many items of a list are a piece. Each may take some microseconds. */
const itemsOfPiece = 200;

/** Who waits for a turn, in their order. */
const waiting: (() => void)[] = [];
/** When the current turn began, while there is such work. */
let turnBeganAt: number | undefined;
/** Whether a piece was allowed that has not begun. */
let isTaken = false;

/**
 * Stands before each piece of work on much text: `await nextPiece()`. It goes on at once while such work has
 * used less than 8 ms of this turn of the event loop, and otherwise in a later one. All such work of the
 * process shares these 8 ms, so a turn lasts at most so long and one piece more, however much there is.
 */
export function nextPiece(): Promise<void> | undefined {
  if (isTaken || isShareUsed()) return new Promise((resolve) => waiting.push(resolve));
  // Whoever asks before this piece has begun would see a turn that is hardly used.
  isTaken = true;
  queueMicrotask(freeTurn);
  return undefined;
}

/** Gives a list some items at a time, each of them a piece of work: {@link nextPiece} stands before it. */
export async function* inPieces<T>(list: readonly T[]): AsyncGenerator<readonly T[]> {
  for (let from = 0; from < list.length; from += itemsOfPiece) {
    await nextPiece();
    yield list.slice(from, from + itemsOfPiece);
  }
}

/** Whether such work has used its share of this turn, for loops that cannot wait. */
export function isShareUsed(): boolean {
  const now = performance.now();
  if (turnBeganAt === undefined) {
    turnBeganAt = now;
    setImmediate(serveOne);
  }
  return now - turnBeganAt >= shareMs;
}

function freeTurn(): void {
  isTaken = false;
}

/** Begins a turn for the one who has waited longest. */
function serveOne(): void {
  const first = waiting.shift();
  turnBeganAt = first === undefined ? undefined : performance.now();
  if (first === undefined) return;
  setImmediate(serveOne);
  first();
}
