import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../core/clock.ts";
import { ParleyError } from "../core/errors.ts";
import type { Log } from "../core/telemetry.ts";
import { systemClock } from "../support/clock.ts";
import { announcesMoreThan, drainRequest } from "../support/http/body.ts";
import { isFromThisMachine, isLoopback, isOfOtherSite } from "../support/http/client-address.ts";
import {
  type ConnectionLimits,
  createRouter,
  createHttpServer,
  limitConnections,
  listen,
} from "../support/http/server.ts";
import { ApiError, clip, createExchange, type Exchange } from "./api-error.ts";
import { createBodyMemory, readJson, readUpload } from "./upload.ts";
import { defaultGatewayConfig, type GatewayConfig } from "./gateway-config.ts";
import {
  createPictureShelf,
  picturePath,
  type ShelvedPicture,
  createImageDownloader,
  createImageLoader,
  type LoadImage,
  type PictureShelf,
} from "./load-image.ts";
import { parseChatBody, parseImageBody, parseTranscriptionFields } from "./requests.ts";
import { createModelRouter } from "./router.ts";
import { createSandbox } from "./sandbox/sandbox.ts";
import { createForwarder } from "./upstreams/forwarder.ts";

type Operations = ReturnType<typeof createOperations>;

interface EmbeddedGatewayOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Without any, requests need none, but only from this machine. */
  readonly apiKeys?: readonly string[];
  /** The settings from {@link parseGatewayConfig}. The default is the sandbox alone. */
  readonly config?: GatewayConfig;
  readonly log: Log;
  /** The largest JSON body. Default 32 MiB. */
  readonly maxJsonBytes?: number;
  /** The largest audio upload. Default 25 MiB. */
  readonly maxUploadBytes?: number;
  /** The default is the system's clock. */
  readonly clock?: Clock;
  /** The silence in a stream after which a comment is sent. Default 10 s. */
  readonly pingMs?: number;
  /** A client that reads nothing of its answer for this long is disconnected. Default 60 s. */
  readonly stalledClientMs?: number;
  /** The pause between two words of a sandbox answer. Default 10 ms, at most 5 s an answer. */
  readonly sandboxWordDelayMs?: number;
  /** Further connections are closed. Default 4096, of which one address has 2048. */
  readonly connections?: ConnectionLimits;
  /** A client that has not sent all its headers in this time is disconnected. Default 10 s. */
  readonly headersTimeoutMs?: number;
  /** The same limit for the whole request with its body. Default 300 s. */
  readonly requestTimeoutMs?: number;
  /** How long {@link EmbeddedGateway.close} waits for running requests. Default 10 s. */
  readonly drainMs?: number;
}

/** An HTTP server of the gateway API. */
interface EmbeddedGateway {
  /**
   * Starts to serve. `url` is the base URL without `/v1`, as for `GATEWAY_BASE_URL`.
   * @throws ParleyError `config` when the address is in use, or public without any key
   */
  listen(): Promise<{ url: string }>;
  /** Refuses new requests, waits up to `drainMs` for the running ones, then disconnects them. */
  close(): Promise<void>;
}

/** The most JSON bodies in memory at once. Parsing and forwarding one takes several times its size. */
const maxJsonMemoryBytes = 48 * 1024 * 1024;
/** The most recordings in memory at once, each until it is answered. */
const maxFormMemoryBytes = 96 * 1024 * 1024;

/** How much of a refused request's body is discarded: much for callers with a key, little for strangers. */
const maxDrainBytes = 128 * 1024 * 1024;
const maxDrainMs = 60_000;
const strangerDrain = { maxBytes: 256 * 1024, maxMs: 5000 };

/**
 * Creates Parley's own gateway, with sandbox models and the upstreams of the settings. Every answer has
 * `x-request-id`, and every error the usual envelope.
 */
export function createEmbeddedGateway(options: EmbeddedGatewayOptions): EmbeddedGateway {
  const { log } = options;
  const maxJsonBytes = options.maxJsonBytes ?? 32 * 1024 * 1024;
  const maxUploadBytes = options.maxUploadBytes ?? 25 * 1024 * 1024;
  const times = { pingMs: options.pingMs ?? 10_000, stalledMs: options.stalledClientMs ?? 60_000 };
  const keyHashes = (options.apiKeys ?? []).filter((key) => key !== "").map((key) => hashKey(key));
  const shelf = createPictureShelf({ ttlMs: 60 * 60 * 1000, maxBytes: 128 * 1024 * 1024 });
  const clock = options.clock ?? systemClock;
  const json = { memory: createBodyMemory(maxJsonMemoryBytes, clock), maxBodyBytes: maxJsonBytes };
  const form = { memory: createBodyMemory(maxFormMemoryBytes, clock), maxBodyBytes: maxUploadBytes };
  const admit = createAdmission(keyHashes, options.host);
  const operations = createOperations({
    config: options.config ?? defaultGatewayConfig,
    log,
    shelf,
    maxJsonBytes,
    maxUploadBytes,
    pingMs: times.pingMs,
    sandboxWordDelayMs: options.sandboxWordDelayMs ?? 10,
  });
  const running = new Set<Promise<void>>();
  let isClosing = false;

  const find = createRouter<keyof Omit<Operations, "close">>([
    { method: "GET", path: "/v1/models", run: "models" },
    { method: "POST", path: "/v1/chat/completions", run: "chat" },
    { method: "POST", path: "/v1/images/generations", run: "images" },
    { method: "POST", path: "/v1/audio/transcriptions", run: "transcribe" },
  ]);

  const route = async (exchange: Exchange, onAdmitted: () => void): Promise<void> => {
    const { request } = exchange;
    const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
    if (isClosing) throw stopping();
    // Such a request needs no preflight when it is a form, so every site could use a gateway without keys.
    // There are no CORS headers, so no site may read an answer.
    if (isOfOtherSite(request)) throw foreignOrigin();
    if (path.startsWith(picturePath) && request.method === "GET")
      return sendPicture(exchange, shelf.get(path));
    if (path === "/healthz" && request.method === "GET") return exchange.sendJson(200, { status: "ok" });
    const key = admit(request);
    onAdmitted();
    const found = find(request.method, path);
    if (found.kind === "nothing") throw unknownPath(request);
    if (found.kind === "wrong-method") throw wrongMethod(request, path, found.allow);
    const { memory, maxBodyBytes } = found.run === "transcribe" ? form : json;
    const release =
      found.run === "models"
        ? undefined
        : await memory.admit(request, {
            key,
            maxBodyBytes,
            signal: exchange.signal,
            giveUp: () => exchange.refuseRest(slowBody()),
          });
    try {
      await operations[found.run](exchange);
    } finally {
      release?.();
    }
  };

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const startedAt = performance.now();
    const exchange = createExchange(request, response, times);
    let drainLimits = strangerDrain;
    try {
      await route(exchange, () => {
        drainLimits = { maxBytes: maxDrainBytes, maxMs: maxDrainMs };
        const isWelcome = !announcesMoreThan(request, Math.max(maxJsonBytes, maxUploadBytes));
        if (awaitsContinue(request) && isWelcome) response.writeContinue();
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
  const server = createHttpServer(accept, {
    headersMs: options.headersTimeoutMs,
    requestMs: options.requestTimeoutMs,
    keepAliveMs: 65_000,
    decidesContinue: true,
  });
  limitConnections(server, options.connections ?? { total: 4096, perAddress: 2048 });

  return {
    listen: async () => {
      if (!isLoopback(options.host) && keyHashes.length === 0) {
        throw new ParleyError("config", "A gateway on a public address needs a key: set GATEWAY_API_KEY.");
      }
      const names = { host: "GATEWAY_HOST", port: "GATEWAY_PORT" };
      return { url: await listen(server, options, names) };
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
      await operations.close();
      clearTimeout(deadline);
    },
  };
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

/**
 * Decides who may use the gateway.
 * @param keyHashes the SHA-256 of each key
 * @param host the bind address
 * @returns a function that names the key of a request, by which memory is shared. It reads only headers, and
 *   throws ApiError 401 (no key, or an unknown one) or 403 (no keys, and a request that is not from here)
 */
function createAdmission(keyHashes: readonly Buffer[], host: string): (request: IncomingMessage) => string {
  return (request) => {
    const token = bearerToken(request.headers.authorization);
    const key = token === undefined ? -1 : indexOfKey(token, keyHashes);
    if (key !== -1) return String(key);
    if (keyHashes.length > 0) throw unauthorized(token !== undefined);
    if (isLoopback(host) && isFromThisMachine(request)) return "";
    throw new ApiError(403, "permission_error", "Without keys only this machine is served.", {
      code: "host_not_allowed",
    });
  };
}

/** Returns the bearer token of an Authorization header, or `undefined` without one. */
function bearerToken(header: string | undefined): string | undefined {
  return /^bearer +(\S+) *$/i.exec(header ?? "")?.[1];
}

/** The position of the key that `token` is, or -1. All are compared, each in constant time. */
function indexOfKey(token: string, hashes: readonly Buffer[]): number {
  const hash = hashKey(token);
  return hashes.reduce((found, known, at) => (timingSafeEqual(hash, known) ? at : found), -1);
}

function hashKey(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

/** Makes a 401 for a missing or unknown key. The key is not part of the message. */
function unauthorized(hasToken: boolean): ApiError {
  const message = hasToken
    ? "The API key is not valid."
    : "There is no API key. Send it as 'Authorization: Bearer <API_KEY>'.";
  return new ApiError(401, "authentication_error", message, {
    code: hasToken ? "invalid_api_key" : "missing_api_key",
    headers: { "www-authenticate": 'Bearer realm="gateway"' },
  });
}

/**
 * Resolves when the whole answer has reached the socket or the client has disconnected. A client that reads
 * nothing for `stalledMs` is disconnected, because it would keep the connection open and block a graceful
 * stop.
 */
async function flushResponse(response: ServerResponse, stalledMs: number): Promise<void> {
  if (response.writableFinished || response.destroyed) return;
  let unreadBytes = response.socket?.writableLength ?? 0;
  const timer = setInterval(() => {
    const bytes = response.socket?.writableLength ?? 0;
    if (bytes >= unreadBytes) response.destroy();
    unreadBytes = bytes;
  }, stalledMs);
  await new Promise((resolve) => response.once("close", resolve));
  clearInterval(timer);
}

function foreignOrigin(): ApiError {
  return new ApiError(403, "permission_error", "Requests of other web sites are refused.", {
    code: "origin_not_allowed",
  });
}

interface OperationsOptions {
  readonly config: GatewayConfig;
  readonly log: Log;
  readonly shelf: PictureShelf;
  readonly maxJsonBytes: number;
  readonly maxUploadBytes: number;
  readonly pingMs: number;
  readonly sandboxWordDelayMs: number;
}

type Operate = (exchange: Exchange) => Promise<void>;

/**
 * The four operations of the gateway API. They route each request by its model to the sandbox or to an
 * upstream, and send its response. Failures are thrown as ApiErrors.
 */
export function createOperations(options: OperationsOptions) {
  const { config, log, shelf, maxJsonBytes, maxUploadBytes, pingMs } = options;
  const findOwn = ({ origin }: Exchange, url: string): Buffer | undefined =>
    url.startsWith(`${origin}${picturePath}`) ? shelf.get(url.slice(origin.length))?.bytes : undefined;
  const downloader = createImageDownloader();
  const imageLoaderFor = (exchange: Exchange): LoadImage =>
    createImageLoader({
      signal: exchange.signal,
      downloader,
      findOwn: (url) => findOwn(exchange, url),
    });
  const isOwnPicture = (exchange: Exchange, url: string): boolean => findOwn(exchange, url) !== undefined;
  const forwarder = createForwarder({ config, log, shelf, pingMs, imageLoaderFor, isOwnPicture });
  const sandbox = createSandbox({ wordDelayMs: options.sandboxWordDelayMs, shelf, imageLoaderFor });
  const router = createModelRouter(config, () => forwarder.knownIds());

  const operations: Record<"models" | "chat" | "images" | "transcribe", Operate> = {
    models: async (exchange) => {
      exchange.sendJson(200, { object: "list", data: await forwarder.models(exchange.requestId) });
    },

    chat: async (exchange) => {
      const json = await readJson(exchange.request, maxJsonBytes);
      const body = parseChatBody(json, (url) => isOwnPicture(exchange, url));
      const route = router.route(body.model, "chat");
      await (route.kind === "upstream"
        ? forwarder.chat({ exchange, targets: route.targets }, body)
        : sandbox.chat(exchange, { ...body, model: route.model }));
    },

    images: async (exchange) => {
      const body = parseImageBody(await readJson(exchange.request, maxJsonBytes));
      const route = router.route(body.model, "image");
      await (route.kind === "upstream"
        ? forwarder.images({ exchange, targets: route.targets }, body)
        : sandbox.images(exchange, { ...body, model: route.model }));
    },

    transcribe: async (exchange) => {
      const { fields: given, ...file } = await readUpload(exchange.request, maxUploadBytes);
      const fields = parseTranscriptionFields(given);
      const route = router.route(fields.model, "transcription");
      await (route.kind === "upstream"
        ? forwarder.transcribe({ exchange, targets: route.targets }, file, fields)
        : sandbox.transcribe(exchange, { ...fields, model: route.model }, file.bytes));
    },
  };
  return {
    ...operations,
    close: async () => {
      await Promise.all([forwarder.close(), downloader.close()]);
    },
  };
}
