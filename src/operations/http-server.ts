import type { Server, IncomingMessage, ServerResponse } from "node:http";
import { type Socket, isIP, type AddressInfo } from "node:net";
import { hostname } from "node:os";
import { ParleyError } from "../core/errors.ts";
import type { RequestTarget, HttpHandler } from "../core/platform-module.ts";
import { type Log, createRareLog } from "../core/telemetry.ts";
import { isLoopback, listenFailure } from "../support/http/client-address.ts";
import { createSharedRun } from "../support/keyed-queue.ts";
import { createHttpServer } from "../support/http/body.ts";
import type { Metrics } from "./metrics.ts";

/** Limits what a slow client can hold, in milliseconds and bytes of a request's header section. */
const clientLimits = {
  headersTimeout: 10_000,
  /** The time of a whole request, such as an upload over a slow line. Small bodies have shorter deadlines. */
  requestTimeout: 300_000,
  keepAliveTimeout: 10_000,
  connectionsCheckingInterval: 1000,
  maxHeaderSize: 16 * 1024,
};
/** A connection on which nothing moves for this long is closed. Event streams send a comment more often. */
const idleTimeoutMs = 120_000;
const maxRequestsPerSocket = 10_000;
const defaultConnectionLimits: ConnectionLimits = { total: 512, perAddress: 256 };
const operationsPaths: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);
const plainHeaders = {
  "Cache-Control": "no-store",
  "X-Content-Type-Options": "nosniff",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
};

/** The options of {@link startHttpServer}. */
interface HttpServerOptions {
  readonly host: string;
  /** 0 binds any free port. */
  readonly port: number;
  /** Further Host values that are served, beside loopback, the bind and, on a public bind, IP addresses. */
  readonly allowedHosts: readonly string[];
  /** Paths that are served under every Host, since their handlers check a signature. Default: none. */
  readonly signedPaths?: readonly string[];
  /** The limits of connections. Default: 512 in all, 256 of one address. */
  readonly connections?: ConnectionLimits;
  /** The time for the header section of a request, in milliseconds. Default 10 s. */
  readonly headersTimeoutMs?: number;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Returns what `/readyz` says. */
  readonly readiness: () => Promise<Readiness>;
  /** These are called in order for every path except the three operations endpoints. */
  readonly handlers: readonly HttpHandler[];
}

/** A listening server. */
export interface HttpServer {
  /** The address with the port that was bound, such as `http://127.0.0.1:3000`. */
  readonly url: string;
  /** Returns the number of open connections. */
  connections(): number;
  /** Stops listening and closes every connection. */
  close(): Promise<void>;
}

/**
 * Starts the HTTP server of the process. It serves `/healthz` (liveness), `/readyz` (readiness as JSON: 200,
 * or 503 when a necessary part is not ready), `/metrics` (Prometheus text format), then the handlers, then
 * 404. Host and request target are checked once, before all of them: 421 for another server's name, 400 for a
 * target that is not a plain path.
 * @throws ParleyError `config` when the address cannot be bound, naming HOST and PORT
 */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const guard = createHostGuard(options.host, options.allowedHosts);
  const warnRarely = createRareLog(options.log);
  const readiness = createSharedRun(() => options.readiness());
  const { headersTimeoutMs = clientLimits.headersTimeout } = options;
  const server = createHttpServer(
    { ...clientLimits, headersTimeout: headersTimeoutMs },
    (request, response) => {
      void respond(request, response, { ...options, guard, warnRarely, readiness }).catch(
        (error: unknown) => {
          options.log.error({ err: error, method: request.method }, "request handler failed");
          if (!response.headersSent) response.writeHead(500, { "content-type": "text/plain" });
          response.end();
        },
      );
    },
  );
  server.setTimeout(idleTimeoutMs);
  server.maxRequestsPerSocket = maxRequestsPerSocket;
  // Only their size is limited. With a number, surplus headers would be left out and escape the checks.
  server.maxHeadersCount = 0;
  const open = limitConnections(server, options.connections ?? defaultConnectionLimits);
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      reject(
        new ParleyError(
          "config",
          `HOST ${options.host} PORT ${options.port} cannot be used: ${listenFailure(error, "PORT")}`,
          {
            cause: error,
          },
        ),
      );
    });
    server.listen(options.port, options.host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${options.host.includes(":") ? `[${options.host}]` : options.host}:${port}`,
    connections: () => open.count(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

interface Serving extends HttpServerOptions {
  readonly guard: HostGuard;
  readonly warnRarely: ReturnType<typeof createRareLog>;
}

async function respond(request: IncomingMessage, response: ServerResponse, serving: Serving): Promise<void> {
  const { guard, warnRarely, readiness, metrics, handlers, signedPaths = [] } = serving;
  const target = parseRequestTarget(request.url ?? "");
  const isSigned = target !== undefined && signedPaths.includes(target.path);
  if (!isSigned && !guard.isAllowed(request)) {
    warnRarely("host", {}, "request refused: wrong host");
    sendText(
      response,
      421,
      "Parley is served under its own address only. HTTP_HOSTS and PAGE_HOSTS allow further names.\n",
      { Connection: "close" },
    );
    return;
  }
  const encoding = request.headers["transfer-encoding"];
  // Node serves bodies with an unknown encoding, but a proxy may see another end of them.
  if (target === undefined || (encoding !== undefined && encoding.toLowerCase() !== "chunked")) {
    sendText(response, 400, "The request has two readings: its address must be a plain path.\n", {
      Connection: "close",
    });
    return;
  }
  const isRead = request.method === "GET" || request.method === "HEAD";
  if (!isRead && operationsPaths.has(target.path)) {
    sendText(response, 405, "This method is not allowed here.\n", { Allow: "GET" });
    return;
  }
  switch (target.path) {
    case "/healthz":
      sendText(response, 200, "ok\n");
      return;
    case "/readyz": {
      const found = await readiness();
      const body = `${JSON.stringify(found, null, 2)}\n`;
      sendText(response, found.status === "not-ready" ? 503 : 200, body, {
        "Content-Type": "application/json; charset=utf-8",
      });
      return;
    }
    case "/metrics": {
      const { body, contentType } = await metrics.text();
      sendText(response, 200, body, { "Content-Type": contentType });
      return;
    }
  }
  for (const handler of handlers) if (await handler(request, response, target)) return;
  sendText(
    response,
    404,
    "There is nothing here. Parley serves /healthz, /readyz and /metrics, and its page when it is on.\n",
  );
}

function sendText(
  response: ServerResponse,
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { "Content-Type": "text/plain; charset=utf-8", ...plainHeaders, ...headers });
  response.end(body);
}

/** Matches a name or address, and a port without leading zeros. */
const hostPattern = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([1-9]\d{0,4}))?$/;

/** Decides whether a request names this server. */
interface HostGuard {
  /** Returns false for a missing, repeated or foreign Host header. */
  isAllowed(request: IncomingMessage): boolean;
}

/**
 * Protects every endpoint against DNS rebinding: a page of another site can reach this server under its own
 * name, but not under one of these. A server bound to loopback has loopback names with the bound port. Others
 * have loopback names, the bind, the machine's name and IP addresses, each with any port, since there may be
 * a port mapping.
 * @param allowedHosts further Host values, with port unless it is the scheme's default
 */
function createHostGuard(bind: string, allowedHosts: readonly string[]): HostGuard {
  const further = new Set(allowedHosts.map((host) => host.toLowerCase()));
  const bound = bind.includes(":") && !bind.startsWith("[") ? `[${bind}]` : bind;
  const own = new Set(["localhost", "127.0.0.1", "[::1]", bound.toLowerCase()]);
  const isLocal = isLoopback(bind);

  return {
    isAllowed(request) {
      const [header, ...others] = request.headersDistinct["host"] ?? [];
      if (header === undefined || others.length > 0) return false;
      const host = header.toLowerCase();
      if (further.has(host)) return true;
      const [, name, port = "80"] = hostPattern.exec(host) ?? [];
      if (name === undefined) return false;
      if (isLocal) return own.has(name) && Number(port) === request.socket.localPort;
      return own.has(name) || isIP(name.replace(/^\[|\]$/g, "")) !== 0 || name === hostname().toLowerCase();
    },
  };
}

/** The limits of {@link limitConnections}. */
interface ConnectionLimits {
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
function limitConnections(server: Server, limits: ConnectionLimits): { readonly count: () => number } {
  const byAddress = new Map<string, number>();
  let total = 0;
  server.maxConnections = limits.total * 2;
  server.on("connection", (socket: Socket) => {
    const address = socket.remoteAddress ?? "";
    const own = byAddress.get(address) ?? 0;
    if (total >= limits.total || own >= limits.perAddress) {
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
 * this server needs these.
 */
export function parseRequestTarget(raw: string): RequestTarget | undefined {
  const mark = raw.indexOf("?");
  const path = mark === -1 ? raw : raw.slice(0, mark);
  const query = mark === -1 ? "" : raw.slice(mark + 1);
  if (!pathPattern.test(path) || !queryPattern.test(query)) return undefined;
  if (path.split("/").some((segment) => segment === "." || segment === "..")) return undefined;
  return { path, query: new URLSearchParams(query) };
}

/** One part of a running Parley. A `degraded` part fails and people are told so, but the rest is of use. */
export interface PartReadiness {
  readonly status: "ready" | "degraded" | "not-ready";
  /** The state of a connection: `ready`, `connecting`, `failed`, `unreachable`, … */
  readonly state?: string;
  /** Why it is not ready, in words without credentials. */
  readonly problems?: readonly string[];
  /** What operators should know although it is ready. */
  readonly warnings?: readonly string[];
}

/** What `/readyz` says, as JSON. */
export interface Readiness {
  /** The worst of the parts. `not-ready` is served with 503, the others with 200. */
  readonly status: PartReadiness["status"];
  readonly version: string;
  readonly parts: Readonly<Record<string, PartReadiness>>;
}

/** Sums the parts up. */
export function toReadiness(version: string, parts: Readiness["parts"]): Readiness {
  const states = Object.values(parts).map(({ status }) => status);
  const status = (["not-ready", "degraded"] as const).find((one) => states.includes(one)) ?? "ready";
  return { status, version, parts };
}
