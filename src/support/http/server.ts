import type { RequestListener, Server, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { ParleyError } from "../../core/errors.ts";
import type { RequestTarget } from "../../core/platform-module.ts";
import { oneAtATime, toFairConnection } from "./fair-connections.ts";

// An import from `node:http` would make Node.js load its own `fetch` at the start, in order to name the
// module's exports.
const http = process.getBuiltinModule("node:http");

/** The options of {@link createHttpServer}. Deadlines are in milliseconds. */
interface HttpServerOptions {
  /** A client that has not sent all its headers in this time is disconnected. Default 10 s. */
  readonly headersMs?: number | undefined;
  /** The same for a whole request, such as an upload over a slow line. Default 300 s. */
  readonly requestMs?: number | undefined;
  /** An idle connection is kept for this long. Default 10 s. */
  readonly keepAliveMs?: number | undefined;
  /**
   * Whether the listener itself says that a client may send its body. By default the server does, at once.
   */
  readonly decidesContinue?: boolean;
}

/**
 * Creates a server that limits what a slow client can hold and what a busy one can take: connections share
 * the event loop, and each has one request at a time.
 */
export function createHttpServer(listener: RequestListener, options: HttpServerOptions = {}): Server {
  const { headersMs = 10_000, requestMs = 300_000, keepAliveMs = 10_000 } = options;
  const serve = oneAtATime(listener);
  const server = http.createServer(
    {
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: 1000,
      maxHeaderSize: 16 * 1024,
    },
    serve,
  );
  if (options.decidesContinue === true) server.on("checkContinue", serve);
  const [attach] = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (socket) => {
    // One that is past a limit has been refused.
    if (socket.writable) attach?.call(server, toFairConnection(socket));
  });
  // Only their size is limited. With a number, surplus headers would be left out and escape the checks.
  server.maxHeadersCount = 0;
  return server;
}

/**
 * Binds a server. `settings` names the two settings in the error.
 * @returns the address with the port that was bound, such as `http://127.0.0.1:3000`
 * @throws ParleyError `config` when the address cannot be bound
 */
export async function listen(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
  settings: { readonly host: string; readonly port: string },
): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => {
      const where = `${settings.host} ${host} ${settings.port} ${port}`;
      const why = listenFailure(cause, settings.port);
      reject(new ParleyError("config", `${where} cannot be used: ${why}`, { cause }));
    });
    server.listen(port, host, resolve);
  });
  // Not every system can connect to the address that stands for all.
  const name = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${name.includes(":") ? `[${name}]` : name}:${(server.address() as AddressInfo).port}`;
}

/** Says why a server cannot listen and what to do. `variable` names the setting of the port. */
export function listenFailure(error: unknown, variable: string): string {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case "EADDRINUSE":
      return `another program listens there; stop it, or set ${variable} to another number (0 binds any free port)`;
    case "EACCES":
      return "the port needs more privileges; use one above 1023";
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return "this machine has no such address";
    default:
      return message;
  }
}

/** The limits of {@link limitConnections}. */
export interface ConnectionLimits {
  /** The most open connections in all. */
  readonly total: number;
  /** The most open connections of one address. A reverse proxy has one address for everybody. */
  readonly perAddress: number;
}

const body = '{"error":{"code":"busy","message":"Too many connections. Try again in a moment."}}';
const refusal = [
  "HTTP/1.1 503 Service Unavailable",
  "Content-Type: application/json; charset=utf-8",
  `Content-Length: ${body.length}`,
  "Cache-Control: no-store",
  "Retry-After: 5",
  "Connection: close",
  "",
  body,
].join("\r\n");

/**
 * Closes connections past the limits with a 503. Past twice the total they are dropped without one.
 * @returns how many are open
 */
export function limitConnections(server: Server, limits: ConnectionLimits): { readonly count: () => number } {
  const byAddress = new Map<string, number>();
  let total = 0;
  server.maxConnections = limits.total * 2;
  server.prependListener("connection", (socket: Socket) => {
    const address = socket.remoteAddress ?? "";
    const own = byAddress.get(address) ?? 0;
    if (total >= limits.total || own >= limits.perAddress) {
      // What the client has sent is not read, and closing the connection on it would discard the answer.
      socket.resume();
      // `end` alone would wait for the client to close its side.
      socket.end(refusal, () => socket.destroySoon());
      return;
    }
    total += 1;
    byAddress.set(address, own + 1);
    socket.once("close", () => {
      total -= 1;
      const left = (byAddress.get(address) ?? 1) - 1;
      if (left === 0) byAddress.delete(address);
      else byAddress.set(address, left);
    });
  });
  return { count: () => total };
}

/** Matches one or more non-empty segments of characters that need no encoding, or `/` alone. */
const pathPattern = /^\/(?:[\w.~!$&'()*+,;=:@-]+(?:\/[\w.~!$&'()*+,;=:@-]+)*\/?)?$/;
/** Matches the characters of a query: printable ASCII without `"`, `#`, `<`, `>` and `\`. */
const queryPattern = /^[!$-;=?-[\]-~]*$/;

/**
 * Parses the target of a request line. Returns `undefined` where it is not in origin form, or its path could
 * be read in two ways: empty and dot segments, percent-encoding, backslashes, control characters. No path of
 * Parley's needs these.
 */
export function parseRequestTarget(raw: string): RequestTarget | undefined {
  const mark = raw.indexOf("?");
  const path = mark === -1 ? raw : raw.slice(0, mark);
  const query = mark === -1 ? "" : raw.slice(mark + 1);
  if (!pathPattern.test(path) || !queryPattern.test(query)) return undefined;
  if (path.split("/").some((segment) => segment === "." || segment === "..")) return undefined;
  return { path, query: new URLSearchParams(query) };
}

/** A path, a method, and what serves them. */
export interface Route<T> {
  readonly method: "GET" | "POST" | "DELETE";
  /** A whole path, or a pattern of whole paths whose groups the handler gets. */
  readonly path: string | RegExp;
  readonly run: T;
}

/** What a router says to a request. */
type Found<T> =
  | { readonly kind: "route"; readonly run: T; readonly groups: readonly string[] }
  /** `allow` is the value of the header that a 405 must have. */
  | { readonly kind: "wrong-method"; readonly allow: string }
  | { readonly kind: "nothing" };

/** Creates a router, which finds the first route that fits. HEAD is served as GET. */
export function createRouter<T>(routes: readonly Route<T>[]) {
  return (method: string | undefined, path: string): Found<T> => {
    const matching = routes.flatMap((route) => {
      const groups = groupsOf(route.path, path);
      return groups === undefined ? [] : [{ route, groups }];
    });
    const found = matching.find(({ route }) => route.method === (method === "HEAD" ? "GET" : method));
    if (found !== undefined) return { kind: "route", run: found.route.run, groups: found.groups };
    if (matching.length === 0) return { kind: "nothing" };
    return { kind: "wrong-method", allow: matching.map(({ route }) => route.method).join(", ") };
  };
}

function groupsOf(wanted: string | RegExp, path: string): readonly string[] | undefined {
  if (typeof wanted === "string") return wanted === path ? [] : undefined;
  return wanted.exec(path)?.slice(1);
}

/** Whether a request only reads. */
export function isRead({ method }: { readonly method?: string | undefined }): boolean {
  return method === "GET" || method === "HEAD";
}

/** The headers of responses to browsers: no sniffing, no referrer, no use by other origins, no framing. */
export const safeHeaders: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "X-Frame-Options": "DENY",
};

/** The Content Security Policy of all but documents. Opened as one, they can load and run nothing. */
const inertPolicy = "default-src 'none'; frame-ancestors 'none'; sandbox";

/** The headers of responses that are no documents and are never cached. */
export const inertHeaders: Readonly<Record<string, string>> = {
  ...safeHeaders,
  "Content-Security-Policy": inertPolicy,
  "Cache-Control": "no-store",
};

export const plainText = { "Content-Type": "text/plain; charset=utf-8" } as const;
export const jsonType = { "Content-Type": "application/json; charset=utf-8" } as const;

/** Sends a whole response with its length, to a HEAD request without the body. */
export function send(
  response: ServerResponse,
  status: number,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>>,
): void {
  response.writeHead(status, { ...headers, "Content-Length": Buffer.byteLength(body) });
  response.end(response.req.method === "HEAD" ? undefined : body);
}

/** Returns the header that asks a client to wait, in whole seconds, at least one. */
export function retryAfter(waitMs: number): { readonly "Retry-After": string } {
  return { "Retry-After": `${Math.max(1, Math.ceil(waitMs / 1000))}` };
}

/** Makes a Content-Disposition header. `name` may be anything. */
export function toDisposition(kind: "inline" | "attachment", name: string): string {
  const plain = name.replace(/[\p{Cc}/\\]/gu, "_").slice(0, 150) || "file";
  const encoded = encodeURIComponent(plain.toWellFormed()).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16)}`,
  );
  return `${kind}; filename*=UTF-8''${encoded}`;
}

/** Aborts when the client disconnects, or has the whole response. */
export function whenClosed(response: ServerResponse): AbortSignal {
  const closed = new AbortController();
  response.once("close", () => closed.abort(new Error("client disconnected")));
  return closed.signal;
}
