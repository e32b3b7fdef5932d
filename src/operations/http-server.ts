import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { ParleyError } from "../core/errors.ts";
import { listenFailure } from "../support/listen-failure.ts";
import { createHttpServer } from "../support/node-http.ts";
import { createRareLog } from "../support/rare-log.ts";
import { createSharedRun } from "../support/shared-run.ts";
import type { HttpHandler } from "../core/platform-module.ts";
import type { Log } from "../core/telemetry.ts";
import { limitConnections, type ConnectionLimits } from "./connection-limits.ts";
import { createHostGuard, type HostGuard } from "./host-guard.ts";
import type { Metrics } from "./metrics.ts";
import type { Readiness } from "./readiness.ts";
import { parseRequestTarget } from "./request-target.ts";

/** Milliseconds, and bytes of a request's header section. Bounds what a client that is slow on purpose can hold. */
const clientLimits = {
  headersTimeout: 10_000,
  /** For a whole request: an upload over a slow line. Handlers of small bodies have shorter deadlines. */
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

/** @see {@link startHttpServer} */
export interface HttpServerOptions {
  readonly host: string;
  /** 0 binds any free port. */
  readonly port: number;
  /** Further Host values that are served, beside loopback, the bind and, on a public bind, IP addresses. */
  readonly allowedHosts: readonly string[];
  /** Paths that are served under every Host: their handlers check a signature. Default: none. */
  readonly signedPaths?: readonly string[];
  /** Default: 512 in all, 256 of one address. */
  readonly connections?: ConnectionLimits;
  /** Time for the header section of a request, in milliseconds. Default 10 s. */
  readonly headersTimeoutMs?: number;
  readonly metrics: Metrics;
  readonly log: Log;
  /** What `/readyz` says. */
  readonly readiness: () => Promise<Readiness>;
  /** Called in order for every path except the three operations endpoints. */
  readonly handlers: readonly HttpHandler[];
}

/** A listening server. */
export interface HttpServer {
  /** `http://127.0.0.1:3000`, with the port that was bound. */
  readonly url: string;
  /** Open connections. */
  connections(): number;
  /** Stops listening and closes every connection. */
  close(): Promise<void>;
}

/**
 * The HTTP server of the process: `/healthz` (liveness), `/readyz` (readiness as JSON: 200, or 503 when a part that
 * Parley cannot do without is not ready), `/metrics` (Prometheus text format), then the handlers, then 404. Host and
 * request target are checked once, before all of them: 421 for another server's name, 400 for a target that is not a
 * plain path.
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
  // No bound on their number besides their size: surplus headers would be left out, and checks would not see them.
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
  // Node serves bodies with an unknown encoding; a proxy may see another end of them.
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
