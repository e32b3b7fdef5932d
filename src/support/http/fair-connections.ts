import type { RequestListener } from "node:http";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";

/**
 * How long all connections together may keep the event loop before other work has a turn. An answer on
 * Discord takes hundreds of turns, one after another.
 */
const turnMs = 1;
/** Where the bytes of a connection are expensive, such as chunks of one byte, it has this many at a time. */
const leastPieceBytes = 512;
/** Where they are cheap, such as those of a file, it has up to this many. */
const mostPieceBytes = 32 * 1024;
const cheapMs = 0.2;

/** Shares the event loop between connections: the one that has had the least of it comes first. */
function createTurns() {
  const waiting = new Set<Connection>();
  /** What the last connection had when it was chosen. An idle one does not save its share up. */
  let reachedMs = 0;
  let isScheduled = false;

  function next(): Connection | undefined {
    let least: Connection | undefined;
    for (const each of waiting) if (least === undefined || each.servedMs < least.servedMs) least = each;
    return least;
  }

  function run(): void {
    isScheduled = false;
    const startedAt = performance.now();
    let at = startedAt;
    for (let chosen = next(); chosen !== undefined && at - startedAt < turnMs; chosen = next()) {
      waiting.delete(chosen);
      reachedMs = chosen.servedMs;
      chosen.step();
      const endedAt = performance.now();
      chosen.servedMs += endedAt - at;
      at = endedAt;
    }
    if (waiting.size > 0) schedule();
  }

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(run);
  }

  return (connection: Connection): void => {
    if (waiting.has(connection)) return;
    connection.servedMs = Math.max(connection.servedMs, reachedMs);
    waiting.add(connection);
    schedule();
  };
}

/** All servers of the process share one event loop. */
const awaitTurn = createTurns();

/**
 * A client's connection as the HTTP server sees it. Node's server would parse all that has arrived at once,
 * and run every request in it: 64 kB of chunks of one byte, or of requests in a row, take 20 ms, on each
 * connection. Here the bytes arrive in pieces, when it is the connection's turn, and only while no request
 * waits for another one's answer.
 */
class Connection extends Duplex {
  /** How much of the event loop it has had, in milliseconds. */
  servedMs = 0;
  readonly #socket: Socket;
  readonly #requests: (() => void)[] = [];
  #pieceBytes = leastPieceBytes;
  #isWanted = false;
  #isAnswering = false;

  constructor(socket: Socket) {
    // More than one piece read ahead would be parsed at once.
    super({ readableHighWaterMark: 1 });
    this.#socket = socket;
    socket.on("readable", () => awaitTurn(this));
    socket.on("end", () => this.push(null));
    socket.on("error", (error) => this.destroy(error));
    socket.on("close", () => this.destroy());
    socket.on("timeout", () => this.emit("timeout"));
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  get localPort(): number | undefined {
    return this.#socket.localPort;
  }

  /** Runs a request when the answers to the ones before it are sent. */
  serve(run: () => void): void {
    if (!this.#isAnswering && this.#requests.length === 0) {
      this.#isAnswering = true;
      run();
    } else this.#requests.push(run);
  }

  /** An answer is sent. */
  answered(): void {
    this.#isAnswering = false;
    awaitTurn(this);
  }

  /** Runs the next request, or else reads a piece. */
  step(): void {
    if (this.destroyed) return;
    const [request] = this.#requests;
    if (request !== undefined) {
      if (this.#isAnswering) return;
      this.#requests.shift();
      this.#isAnswering = true;
      request();
      // Its body may have arrived already.
      awaitTurn(this);
    } else if (this.#isWanted) this.#readPiece();
  }

  #readPiece(): void {
    const available = this.#socket.readableLength;
    // At the end this is what makes the socket say so.
    const piece = this.#socket.read(
      available === 0 ? undefined : Math.min(this.#pieceBytes, available),
    ) as Buffer | null;
    if (piece === null) return;
    const startedAt = performance.now();
    this.#isWanted = false;
    if (this.push(piece)) this.#isWanted = true;
    const isCheap = performance.now() - startedAt < cheapMs;
    this.#pieceBytes = isCheap ? Math.min(this.#pieceBytes * 2, mostPieceBytes) : leastPieceBytes;
    awaitTurn(this);
  }

  override _read(): void {
    this.#isWanted = true;
    awaitTurn(this);
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(bytes, done);
  }

  override _writev(pieces: { readonly chunk: Buffer }[], done: (error?: Error | null) => void): void {
    const last = pieces.length - 1;
    this.#socket.cork();
    for (const [index, { chunk }] of pieces.entries())
      this.#socket.write(chunk, index === last ? done : undefined);
    this.#socket.uncork();
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }

  /** Closes the connection when all that was written is sent. Node's server calls it after a last answer. */
  destroySoon(): void {
    this.end(() => this.destroy());
  }

  setTimeout(ms: number): this {
    this.#socket.setTimeout(ms);
    return this;
  }
}

/** Wraps a new connection for Node's HTTP server, which takes any stream, whatever its types say. */
export function toFairConnection(socket: Socket): Socket {
  return new Connection(socket) as unknown as Socket;
}

/** Serves the requests of a connection one at a time, in order. The next one waits, with all behind it. */
export function oneAtATime(listener: RequestListener): RequestListener {
  return (request, response) => {
    const connection = request.socket as unknown as Connection;
    response.once("close", () => connection.answered());
    connection.serve(() => listener(request, response));
  };
}
