import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { ParleyError } from "../core/errors.ts";
import type { HttpHandler } from "../core/platform-module.ts";
import type { Log } from "../core/telemetry.ts";
import type { Metrics } from "./metrics.ts";

/** @see {@link startHttpServer} */
export interface HttpServerOptions {
  readonly host: string;
  /** 0 binds any free port. */
  readonly port: number;
  readonly metrics: Metrics;
  readonly log: Log;
  /** One line for each part that is not ready; empty when all are. */
  notReady(): Promise<readonly string[]>;
  /** Called in order for every path except the three operations endpoints. */
  readonly handlers: readonly HttpHandler[];
}

/** A listening server. */
export interface HttpServer {
  /** `http://127.0.0.1:3000`, with the port that was bound. */
  readonly url: string;
  /** Stops listening and closes every connection. */
  close(): Promise<void>;
}

/**
 * The HTTP server of the process: `/healthz` (liveness), `/readyz` (readiness: 200, or 503 with a line for each part
 * that is not ready), `/metrics` (Prometheus text format), then the handlers, then 404.
 * @throws ParleyError `config` when the address cannot be bound, naming HOST and PORT
 */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const server = createServer((request, response) => {
    void respond(request, response, options).catch((error: unknown) => {
      options.log.error({ err: error, method: request.method }, "request handler failed");
      if (!response.headersSent) response.writeHead(500, { "content-type": "text/plain" });
      response.end();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      reject(
        new ParleyError(
          "config",
          `HOST ${options.host} PORT ${options.port} cannot be used: ${toReason(error)}`,
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
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

function toReason(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case "EADDRINUSE":
      return "another program listens there; stop it, or set PORT to another number (0 binds any free port)";
    case "EACCES":
      return "the port needs more privileges; use one above 1023";
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return "this machine has no such address";
    default:
      return error.message;
  }
}

async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  options: HttpServerOptions,
): Promise<void> {
  const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
  if (path === "/healthz") {
    text(response, 200, "ok\n");
    return;
  }
  if (path === "/readyz") {
    const missing = await options.notReady();
    text(
      response,
      missing.length === 0 ? 200 : 503,
      missing.length === 0 ? "ready\n" : `${missing.join("\n")}\n`,
    );
    return;
  }
  if (path === "/metrics") {
    const { body, contentType } = await options.metrics.text();
    response.writeHead(200, { "content-type": contentType }).end(body);
    return;
  }
  for (const handler of options.handlers) if (await handler(request, response)) return;
  text(
    response,
    404,
    "There is nothing here. Parley serves /healthz, /readyz and /metrics, and its page when it is on.\n",
  );
}

function text(response: ServerResponse, status: number, body: string): void {
  response
    .writeHead(status, { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" })
    .end(body);
}
