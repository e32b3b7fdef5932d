import type { IncomingMessage, ServerResponse } from "node:http";
import { isIP } from "node:net";
import { hostname } from "node:os";
import type { Clock } from "../core/clock.ts";
import type { HttpHandler } from "../core/platform-module.ts";
import { type Log, createRareLog } from "../core/telemetry.ts";
import { isLoopback } from "../support/http/client-address.ts";
import {
  inertHeaders,
  jsonType,
  plainText,
  send,
  createRouter,
  createHttpServer,
  limitConnections,
  listen,
  parseRequestTarget,
  type ConnectionLimits,
} from "../support/http/server.ts";
import { createSharedRun } from "../support/queues.ts";
import type { Metrics } from "./metrics.ts";

/** A connection on which nothing moves for this long is closed. Event streams send a comment more often. */
const idleTimeoutMs = 120_000;
const maxRequestsPerSocket = 10_000;
/** The text of the metrics takes more than a millisecond, and anybody may ask for it. */
const metricsEveryMs = 1000;
const defaultConnectionLimits: ConnectionLimits = { total: 512, perAddress: 256 };
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
  readonly clock: Pick<Clock, "monotonic">;
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
  const { host, port, metrics, log, signedPaths = [] } = options;
  const isOwnHost = createHostGuard(host, options.allowedHosts);
  const warnRarely = createRareLog(log);
  const readiness = createSharedRun(() => options.readiness());
  const metricsText = createMetricsText(metrics, options.clock);
  const route = createRouter<(response: ServerResponse) => Promise<void> | void>([
    { method: "GET", path: "/healthz", run: (response) => sendText(response, 200, "ok\n") },
    {
      method: "GET",
      path: "/readyz",
      async run(response) {
        const found = await readiness();
        const body = `${JSON.stringify(found, null, 2)}\n`;
        send(response, found.status === "not-ready" ? 503 : 200, body, { ...inertHeaders, ...jsonType });
      },
    },
    {
      method: "GET",
      path: "/metrics",
      async run(response) {
        const { body, contentType } = await metricsText();
        send(response, 200, body, { ...inertHeaders, "Content-Type": contentType });
      },
    },
  ]);

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = parseRequestTarget(request.url ?? "");
    const isSigned = target !== undefined && signedPaths.includes(target.path);
    if (!isSigned && !isOwnHost(request)) {
      warnRarely("host", {}, "request refused: wrong host");
      const text =
        "Parley is served under its own address only. HTTP_HOSTS and PAGE_HOSTS allow further names.\n";
      return sendText(response, 421, text, { Connection: "close" });
    }
    const encoding = request.headers["transfer-encoding"];
    // Node serves bodies with an unknown encoding, but a proxy may see another end of them.
    if (target === undefined || (encoding !== undefined && encoding.toLowerCase() !== "chunked")) {
      const text = "The request has two readings: its address must be a plain path.\n";
      return sendText(response, 400, text, { Connection: "close" });
    }
    const found = route(request.method, target.path);
    if (found.kind === "route") return await found.run(response);
    if (found.kind === "wrong-method")
      return sendText(response, 405, "This method is not allowed here.\n", { Allow: found.allow });
    for (const handler of options.handlers) if (await handler(request, response, target)) return;
    sendText(
      response,
      404,
      "There is nothing here. Parley serves /healthz, /readyz and /metrics, and its page when it is on.\n",
    );
  }

  const server = createHttpServer(
    (request, response) => {
      void respond(request, response).catch((error: unknown) => {
        log.error({ err: error, method: request.method }, "request handler failed");
        if (!response.headersSent) response.writeHead(500, plainText);
        response.end();
      });
    },
    { headersMs: options.headersTimeoutMs },
  );
  server.setTimeout(idleTimeoutMs);
  server.maxRequestsPerSocket = maxRequestsPerSocket;
  const open = limitConnections(server, options.connections ?? defaultConnectionLimits);
  return {
    url: await listen(server, { host, port }, { host: "HOST", port: "PORT" }),
    connections: () => open.count(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Returns the metrics as they were at most a second ago. */
function createMetricsText(metrics: Metrics, clock: Pick<Clock, "monotonic">): Metrics["text"] {
  let text: ReturnType<Metrics["text"]> | undefined;
  let readAt = 0;
  return () => {
    if (text !== undefined && clock.monotonic() - readAt < metricsEveryMs) return text;
    readAt = clock.monotonic();
    const reading = metrics.text();
    reading.catch(() => (text = undefined));
    return (text = reading);
  };
}

function sendText(
  response: ServerResponse,
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  send(response, status, body, { ...inertHeaders, ...plainText, ...headers });
}

/** Matches a name or address, and a port without leading zeros. */
const hostPattern = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([1-9]\d{0,4}))?$/;

/**
 * Decides whether a request names this server. It does not with a missing, repeated or foreign Host header.
 * This protects every endpoint against DNS rebinding: a page of another site can reach this server under its
 * own name, but not under one of these. A server bound to loopback has loopback names with the bound port.
 * Others have loopback names, the bind, the machine's name and IP addresses, each with any port, since there
 * may be a port mapping.
 * @param allowedHosts further Host values, with port unless it is the scheme's default
 */
function createHostGuard(bind: string, allowedHosts: readonly string[]) {
  const further = new Set(allowedHosts.map((host) => host.toLowerCase()));
  const bound = bind.includes(":") && !bind.startsWith("[") ? `[${bind}]` : bind;
  const own = new Set(["localhost", "127.0.0.1", "[::1]", bound.toLowerCase()]);
  const isLocal = isLoopback(bind);

  return (request: IncomingMessage): boolean => {
    const [header, ...others] = request.headersDistinct["host"] ?? [];
    if (header === undefined || others.length > 0) return false;
    const host = header.toLowerCase();
    if (further.has(host)) return true;
    const [, name, port = "80"] = hostPattern.exec(host) ?? [];
    if (name === undefined) return false;
    if (isLocal) return own.has(name) && Number(port) === request.socket.localPort;
    return own.has(name) || isIP(name.replace(/^\[|\]$/g, "")) !== 0 || name === hostname().toLowerCase();
  };
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
