import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Clock } from "../core/clock.ts";
import { isParleyError, ParleyError } from "../core/errors.ts";
import type { Log } from "../core/telemetry.ts";
import { systemClock } from "../support/clock.ts";
import { listenFailure } from "../support/listen-failure.ts";
import { isLoopback } from "../support/loopback.ts";
import { createHttpServer } from "../support/node-http.ts";
import { createAdmission, type Admission } from "./admission.ts";
import { ApiError, clip } from "./api-error.ts";
import { hashKey } from "./authorize.ts";
import { defaultGatewayConfig, type GatewayConfig } from "./settings.ts";
import { createBodyMemory } from "./body-memory.ts";
import { createExchange, type Exchange } from "./exchange.ts";
import { flushResponse } from "./flush-response.ts";
import type { KeyRing } from "./keys/key-ring.ts";
import type { KeyValue } from "./keys/key-value.ts";
import { createOperations, type Operations } from "./operations.ts";
import { refuseForeignOrigin } from "./origin-guard.ts";
import { createPictureShelf, picturePath, type ShelvedPicture } from "./picture-shelf.ts";
import { drainRequest } from "../support/drain-request.ts";

/** Settings of {@link createEmbeddedGateway}. */
export interface EmbeddedGatewayOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Keys without restriction. Until a first key exists no request needs one, and only this machine is served. */
  readonly apiKeys?: readonly string[];
  /** From {@link parseGatewayConfig}. Default: the sandbox alone. */
  readonly config?: GatewayConfig;
  /** Store of issued keys and their usage. See {@link createKeyRing}. */
  readonly keyStore?: KeyValue;
  readonly log: Log;
  /** Largest JSON body. Default 32 MiB. */
  readonly maxJsonBytes?: number;
  /** Largest audio upload. Default 25 MiB. */
  readonly maxUploadBytes?: number;
  /** Default: the system's. */
  readonly clock?: Clock;
  /** Silence in a stream after which a comment is sent. Default 10 s. */
  readonly pingMs?: number;
  /** A client that reads nothing of its answer for so long is disconnected. Default 60 s. */
  readonly stalledClientMs?: number;
  /** Pause between two words of a sandbox answer. Default 10 ms, at most 5 s an answer. */
  readonly sandboxWordDelayMs?: number;
  /** Open connections; past it new ones are closed. Default 4096. */
  readonly maxConnections?: number;
  /** A client that has not sent all its headers after so long is disconnected. Default 10 s. */
  readonly headersTimeoutMs?: number;
  /** Likewise for the whole request with its body. Default 300 s. */
  readonly requestTimeoutMs?: number;
  /** How long {@link EmbeddedGateway.close} waits for running requests. Default 10 s. */
  readonly drainMs?: number;
}

/** An HTTP server of the gateway API. */
export interface EmbeddedGateway {
  /**
   * Starts to serve. `url` is the base URL without `/v1`, as for `GATEWAY_BASE_URL`.
   * @throws ParleyError `config` when the address is in use, or public without any key
   */
  listen(): Promise<{ url: string }>;
  /** Refuses new requests, waits up to `drainMs` for the running ones, then disconnects them. */
  close(): Promise<void>;
}

/** JSON bodies in memory at once. Parsing and forwarding one takes several times its size. */
const maxBodyMemoryBytes = 48 * 1024 * 1024;

/** What is discarded of a refused request's body: much for callers with a key, little for strangers. */
const maxDrainBytes = 128 * 1024 * 1024;
const maxDrainMs = 60_000;
const strangerDrain = { maxBytes: 256 * 1024, maxMs: 5000 };

/**
 * Parley's own gateway: sandbox models, and the upstreams of the settings. Every answer has `x-request-id`, every error
 * the usual envelope. Modules are loaded with their first use.
 */
export function createEmbeddedGateway(options: EmbeddedGatewayOptions): EmbeddedGateway {
  const { log } = options;
  const maxJsonBytes = options.maxJsonBytes ?? 32 * 1024 * 1024;
  const maxUploadBytes = options.maxUploadBytes ?? 25 * 1024 * 1024;
  const times = { pingMs: options.pingMs ?? 10_000, stalledMs: options.stalledClientMs ?? 60_000 };
  const keyHashes = (options.apiKeys ?? []).filter((key) => key !== "").map((key) => hashKey(key));
  const shelf = createPictureShelf({ ttlMs: 60 * 60 * 1000, maxBytes: 128 * 1024 * 1024 });
  const bodies = createBodyMemory(maxBodyMemoryBytes, options.clock ?? systemClock);
  let operations: Operations | undefined;
  let admission: Admission | undefined;
  const running = new Set<Promise<void>>();
  let isClosing = false;

  const routes: Readonly<
    Record<string, { method: "GET" | "POST"; handle: keyof Omit<Operations, "close"> }>
  > = {
    "/v1/models": { method: "GET", handle: "models" },
    "/v1/chat/completions": { method: "POST", handle: "chat" },
    "/v1/images/generations": { method: "POST", handle: "images" },
    "/v1/audio/transcriptions": { method: "POST", handle: "transcribe" },
  };

  const route = async (exchange: Exchange, onAdmitted: () => void): Promise<void> => {
    const { request } = exchange;
    const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
    if (isClosing || admission === undefined) throw stopping();
    refuseForeignOrigin(request);
    if (path.startsWith(picturePath) && request.method === "GET")
      return sendPicture(exchange, shelf.get(path));
    if (path === "/healthz" && request.method === "GET") return exchange.sendJson(200, { status: "ok" });
    const access = await admission.admit(request);
    try {
      onAdmitted();
      const found = Object.hasOwn(routes, path) ? routes[path] : undefined;
      if (found === undefined) throw unknownPath(request);
      if (request.method !== found.method) throw wrongMethod(request, path, found.method);
      // Recordings are streamed to their upstream, all other bodies are parsed as a whole.
      const isParsed = found.method === "POST" && found.handle !== "transcribe";
      const release = isParsed
        ? await bodies.admit(request, {
            key: access.keyId,
            maxBodyBytes: maxJsonBytes,
            signal: exchange.signal,
            giveUp: () => exchange.refuseRest(slowBody()),
          })
        : undefined;
      try {
        await operations?.[found.handle](exchange, access);
      } finally {
        release?.();
      }
    } finally {
      access.release();
    }
  };

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const startedAt = performance.now();
    const exchange = createExchange(request, response, times);
    let drainLimits = strangerDrain;
    try {
      await route(exchange, () => {
        drainLimits = { maxBytes: maxDrainBytes, maxMs: maxDrainMs };
        if (awaitsContinue(request) && !announcesTooMuch(request)) response.writeContinue();
      });
    } catch (error) {
      if (exchange.signal.aborted)
        log.debug({ requestId: exchange.requestId }, "gateway client disconnected");
      else exchange.sendError(toApiError(error, exchange, log));
    }
    drainRequest(request, drainLimits);
    await flushResponse(response, times.stalledMs);
    const durationMs = Math.round(performance.now() - startedAt);
    const { requestId } = exchange;
    log.debug(
      { requestId, method: request.method, status: response.statusCode, durationMs },
      "gateway request",
    );
  };
  const announcesTooMuch = (request: IncomingMessage): boolean =>
    Number(request.headers["content-length"] ?? 0) > Math.max(maxJsonBytes, maxUploadBytes);

  const accept = (request: IncomingMessage, response: ServerResponse): void => {
    request.on("error", (error) => log.debug({ error }, "gateway request interrupted"));
    response.on("error", (error) => log.debug({ error }, "gateway response interrupted"));
    const work = answer(request, response)
      .catch((error: unknown) => {
        log.error({ error }, "answering a gateway request failed");
        response.destroy();
      })
      .finally(() => running.delete(work));
    running.add(work);
  };
  const server = createHttpServer(
    {
      keepAliveTimeout: 65_000,
      headersTimeout: options.headersTimeoutMs ?? 10_000,
      requestTimeout: options.requestTimeoutMs ?? 300_000,
      connectionsCheckingInterval: 1000,
      maxHeaderSize: 16 * 1024,
    },
    accept,
  );
  server.maxConnections = options.maxConnections ?? 4096;
  server.on("checkContinue", accept);

  return {
    listen: async () => {
      const ring = options.keyStore === undefined ? undefined : await openKeyRing(options.keyStore, log);
      admission = createAdmission({ keyHashes, ring, host: options.host });
      operations = await createOperations({
        config: options.config ?? defaultGatewayConfig,
        log,
        shelf,
        maxJsonBytes,
        maxUploadBytes,
        pingMs: times.pingMs,
        sandboxWordDelayMs: options.sandboxWordDelayMs ?? 10,
      });
      if (!isLoopback(options.host) && !(await admission.needsKey())) {
        throw new ParleyError("config", "A gateway on a public address needs a key: set GATEWAY_API_KEY.");
      }
      await new Promise<void>((resolve, reject) => {
        server.once("error", (cause) => {
          const where = `GATEWAY_HOST ${options.host} GATEWAY_PORT ${options.port}`;
          const why = listenFailure(cause, "GATEWAY_PORT");
          reject(new ParleyError("config", `${where} cannot be used: ${why}`, { cause }));
        });
        server.listen(options.port, options.host, resolve);
      });
      return { url: toUrl(server.address() as AddressInfo, options.host) };
    },
    close: async () => {
      isClosing = true;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      const deadline = setTimeout(() => server.closeAllConnections(), options.drainMs ?? 10_000);
      await Promise.all(running);
      // Connections that were opened and never used do not count as idle.
      server.closeAllConnections();
      await closed;
      await operations?.close();
      clearTimeout(deadline);
    },
  };
}

async function openKeyRing(store: KeyValue, log: Log): Promise<KeyRing> {
  const { createKeyRing } = await import("./keys/key-ring.ts");
  return createKeyRing({ store, log });
}

function sendPicture(exchange: Exchange, picture: ShelvedPicture | undefined): void {
  if (picture === undefined) throw unknownPath(exchange.request);
  exchange.sendBytes(200, picture.bytes, {
    "content-type": picture.mediaType,
    "cache-control": "private, max-age=3600",
    "x-content-type-options": "nosniff",
  });
}

function toApiError(error: unknown, exchange: Exchange, log: Log): ApiError {
  if (error instanceof ApiError) return error;
  if (isParleyError(error, "store-unavailable")) {
    log.error({ requestId: exchange.requestId, error }, "key store failed");
    return new ApiError(503, "server_error", "The store of keys is not available.", {
      code: "store_unavailable",
      headers: { "retry-after": "5" },
    });
  }
  log.error({ requestId: exchange.requestId, error }, "gateway request failed");
  return new ApiError(500, "server_error", "Internal error; see the log of the gateway.", {
    code: "internal_error",
  });
}

function unknownPath(request: IncomingMessage): ApiError {
  const message = `There is no ${request.method ?? "GET"} ${clip((request.url ?? "/").split("?", 1)[0] ?? "/")} here.`;
  return new ApiError(404, "invalid_request_error", message, { code: "unknown_url" });
}

function wrongMethod(request: IncomingMessage, path: string, allowed: string): ApiError {
  const message = `${path} takes ${allowed}, not ${request.method ?? "another method"}.`;
  return new ApiError(405, "invalid_request_error", message, {
    code: "method_not_allowed",
    headers: { allow: allowed },
  });
}

function stopping(): ApiError {
  return new ApiError(503, "server_error", "The gateway is stopping.", {
    code: "stopping",
    headers: { "retry-after": "5", connection: "close" },
  });
}

function slowBody(): ApiError {
  const message =
    "The body did not arrive within ten seconds, and other requests were waiting for its memory.";
  return new ApiError(408, "invalid_request_error", message, {
    code: "slow_body",
    headers: { "retry-after": "5", connection: "close" },
  });
}

function awaitsContinue({ headers }: IncomingMessage): boolean {
  return headers.expect?.toLowerCase() === "100-continue";
}

function toUrl(address: AddressInfo, host: string): string {
  const name = address.family === "IPv6" ? `[${address.address}]` : address.address;
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : name;
  return `http://${reachable}:${address.port}`;
}
