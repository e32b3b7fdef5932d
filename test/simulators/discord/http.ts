import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { ApiError } from "./api-error.ts";
import { limits, type Form } from "./message-form.ts";
import { checkShape, requireOperation } from "./openapi.ts";
import {
  createInvalidRequests,
  createRateLimiter,
  type RateLimitOptions,
  type RateVerdict,
} from "./rate-limits.ts";

/** A parsed request to a route. */
export interface RouteContext {
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly form: Form;
  /** The host name by which the client knows this server. */
  readonly host: string;
  /** When it arrived, in Unix milliseconds. The simulator's own checks do not count against a deadline. */
  readonly arrivedAt: number;
}

/** A response. It is an empty 204 if `body` is `undefined`. */
export interface Answer {
  readonly status: number;
  readonly body?: unknown;
}

/** A route of the REST API. */
export interface Route {
  readonly method: string;
  /** The path as in the OpenAPI document, which has its schemas. */
  readonly template: string;
  /** Whether the token is in the path, so that no `Authorization` header is needed. */
  readonly isOpen?: boolean;
  readonly handle: (context: RouteContext) => Answer;
}

/** A request and the status of its response. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly template: string;
  readonly json: Readonly<Record<string, unknown>>;
  readonly status: number;
  readonly code: number | undefined;
  readonly at: number;
}

/** A failure of the next matching requests. */
export interface Fault {
  readonly method?: string;
  /** A part of the route's template. */
  readonly route?: string;
  readonly status: number;
  readonly code?: number;
  readonly retryAfterMs?: number;
  /** Makes a 429 that lacks the header and Discord's body, like Cloudflare's, or has an empty header. */
  readonly retryAfter?: "absent" | "empty";
  /** Whether a 429 is that of the global limit. */
  readonly isGlobal?: boolean;
  /** Whether the request takes effect and only its response is lost. */
  readonly afterEffect?: boolean;
  /** Called when the request arrives. The response is sent when its promise resolves. */
  readonly until?: () => Promise<void>;
  times: number;
}

/** The HTTP server of the REST API and CDN. */
export interface ApiServer {
  readonly server: Server;
  readonly requests: SeenRequest[];
  /** Defects of the simulator: responses that do not match Discord's schema. */
  readonly defects: string[];
  /** Returns the number of 401, 403 and 429 in the last ten minutes. */
  invalidRequests(): number;
  fail(fault: Fault): void;
}

/** Serves the REST API like `https://discord.com/api/v10`, with its rate limits and schema checks. */
export function createApiServer(options: {
  readonly token: string;
  readonly routes: readonly Route[];
  readonly rateLimits: RateLimitOptions;
  /** The time that rate limits are counted in. The default is real time. */
  readonly monotonic?: () => number;
  /** Discord's clock, in Unix milliseconds. */
  readonly now: () => number;
  readonly serveFile: (url: URL, response: ServerResponse) => boolean;
}): ApiServer {
  const limiter = createRateLimiter(options.rateLimits, options.monotonic);
  const invalid = createInvalidRequests(options.rateLimits.invalidRequests, options.now);
  const faults: Fault[] = [];
  const requests: SeenRequest[] = [];
  const defects: string[] = [];
  for (const { template, method } of options.routes) requireOperation(template, method);
  const compiled = options.routes.map((route) => ({ route, pattern: toPattern(route.template) }));

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    response.setHeader("date", new Date(options.now()).toUTCString());
    if (request.method === "GET" && options.serveFile(url, response)) return;
    answer(request, url, response).catch((error: unknown) => {
      defects.push(`${request.method} ${url.pathname}: ${String(error)}`);
      sendJson(response, 500, { message: "500: Internal Server Error", code: 0 }, {});
    });
  });

  async function answer(request: IncomingMessage, url: URL, response: ServerResponse): Promise<void> {
    const method = request.method ?? "GET";
    const arrivedAt = options.now();
    const body = await readBody(request);
    if (invalid.isBanned()) {
      sendCloudflareLimit(response, {});
      return;
    }
    const path = /^\/api\/v10(\/.*)$/.exec(url.pathname)?.[1];
    const found = path === undefined ? undefined : match(method, path);
    if (path === undefined || found === undefined) {
      sendJson(response, 404, { message: "404: Not Found", code: 0 }, {});
      return;
    }
    const { route, parameters } = found;
    let json: Readonly<Record<string, unknown>> = {};
    const note = (status: number, code?: number, scope?: string): void => {
      invalid.note(status, scope);
      requests.push({ method, path, template: route.template, json, status, code, at: Date.now() });
    };
    let headers: Readonly<Record<string, string>> = {};
    try {
      checkClient(request, route);
      const verdict = limiter.take({
        method,
        template: route.template,
        major: parameters["channel_id"] ?? parameters["guild_id"] ?? parameters["webhook_token"] ?? "",
        isExempt: route.isOpen === true,
        isOldEdit: method === "PATCH" && isOlderThanAnHour(parameters["message_id"]),
      });
      headers = verdict.headers;
      if (verdict.retryAfterMs !== undefined) {
        note(429, verdict.code, verdict.scope);
        sendRateLimited(response, { ...verdict, retryAfterMs: verdict.retryAfterMs });
        return;
      }
      if (method === "POST" && route.template === "/users/@me/channels" && !limiter.mayOpenDirectMessages())
        throw new ApiError(403, 40003, "You are opening direct messages too fast");
      const form = await readForm(request, body);
      json = form.json;
      const fault = takeFault(method, route);
      if (fault !== undefined && fault.afterEffect !== true) {
        await fault.until?.();
        note(fault.status, fault.code);
        sendFault(response, fault, headers);
        return;
      }
      const problem = checkShape(route.template, method, "request", form.json);
      if (problem !== undefined && hasBody(method))
        throw new ApiError(400, 50035, "Invalid Form Body", { _shape: problem });
      const result = route.handle({
        parameters,
        query: url.searchParams,
        form,
        host: request.headers.host ?? "",
        arrivedAt,
      });
      if (fault !== undefined) {
        await fault.until?.();
        note(fault.status, fault.code);
        sendFault(response, fault, headers);
        return;
      }
      note(result.status);
      if (result.body === undefined) {
        response.writeHead(result.status, headers).end();
        return;
      }
      const defect = checkShape(route.template, method, result.status, result.body);
      if (defect !== undefined) defects.push(`answer: ${defect}`);
      sendJson(response, result.status, result.body, headers);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      note(error.status, error.code);
      const errors = error.errors === undefined ? {} : { errors: error.errors };
      sendJson(response, error.status, { message: error.message, code: error.code, ...errors }, headers);
    }
  }

  function checkClient(request: IncomingMessage, route: Route): void {
    if (!/^DiscordBot \(\S+, \S+\)/.test(request.headers["user-agent"] ?? ""))
      throw new ApiError(403, 40333, "internal network error");
    if (route.isOpen === true) return;
    if (request.headers.authorization !== `Bot ${options.token}`)
      throw new ApiError(401, 0, "401: Unauthorized");
  }

  function match(method: string, path: string) {
    for (const { route, pattern } of compiled) {
      if (route.method !== method) continue;
      const matched = pattern.exec(path);
      if (matched === null) continue;
      const parameters = Object.fromEntries(
        Object.entries(matched.groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value)]),
      );
      return { route, parameters };
    }
    return undefined;
  }

  function isOlderThanAnHour(messageId: string | undefined): boolean {
    if (messageId === undefined || !/^\d+$/.test(messageId)) return false;
    return options.now() - Number(BigInt(messageId) >> 22n) - 1_420_070_400_000 > 3_600_000;
  }

  function takeFault(method: string, route: Route): Fault | undefined {
    const fault = faults.find(
      (one) =>
        one.times > 0 &&
        (one.method === undefined || one.method === method) &&
        (one.route === undefined || route.template.includes(one.route)),
    );
    if (fault !== undefined) fault.times -= 1;
    return fault;
  }

  return {
    server,
    requests,
    defects,
    invalidRequests: invalid.count,
    fail: (fault) => void faults.push(fault),
  };
}

function toPattern(template: string): RegExp {
  const escaped = template.replaceAll(/[.*+?^$()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(
    `^${escaped.replaceAll(/\{(\w+)\}/g, "(?<$1>[^/]+)").replace("@original", "(?:@|%40)original")}$`,
  );
}

function hasBody(method: string): boolean {
  return method === "POST" || method === "PATCH" || method === "PUT";
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

async function readForm(request: IncomingMessage, body: Buffer): Promise<Form> {
  if (body.length > limits.requestBytes) throw new ApiError(413, 40005, "Request entity too large");
  if (body.length === 0) return { json: {}, files: [] };
  const type = request.headers["content-type"] ?? "";
  if (type.startsWith("application/json")) return { json: parseJson(body.toString()), files: [] };
  if (!type.startsWith("multipart/form-data")) throw new ApiError(400, 50035, "Unsupported content type");
  const data = await new Response(new Uint8Array(body), { headers: { "content-type": type } }).formData();
  const files: Form["files"][number][] = [];
  let json: Readonly<Record<string, unknown>> = {};
  for (const [field, value] of data) {
    if (typeof value === "string") {
      if (field === "payload_json") json = parseJson(value);
    } else {
      const bytes = new Uint8Array(await value.arrayBuffer());
      files.push({ field, name: value.name, mediaType: value.type, bytes });
    }
  }
  return { json, files };
}

function parseJson(text: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    throw new ApiError(400, 50109, "The request body contains invalid JSON.");
  }
}

function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>>,
): void {
  response.writeHead(status, { ...headers, "content-type": "application/json" }).end(JSON.stringify(body));
}

function sendRateLimited(
  response: ServerResponse,
  verdict: RateVerdict & { readonly retryAfterMs: number; readonly retryAfter?: "empty" | undefined },
): void {
  const { retryAfterMs, scope = "user", code, headers, retryAfter } = verdict;
  const seconds = Math.max(0.001, retryAfterMs / 1000);
  const message =
    code === 30046
      ? "Maximum number of edits to messages older than 1 hour reached. Try again later"
      : "You are being rate limited.";
  const body = { message, retry_after: seconds, global: scope === "global" };
  sendJson(response, 429, code === undefined ? body : { ...body, code }, {
    ...headers,
    "retry-after": retryAfter === "empty" ? "" : seconds.toFixed(3),
    "x-ratelimit-scope": scope,
    ...(scope === "global" ? { "x-ratelimit-global": "true" } : {}),
  });
}

/** Sends what Cloudflare answers in front of Discord. */
function sendCloudflareLimit(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
  response
    .writeHead(429, { ...headers, "content-type": "text/plain; charset=UTF-8", server: "cloudflare" })
    .end("error code: 1015");
}

function sendFault(response: ServerResponse, fault: Fault, headers: Readonly<Record<string, string>>): void {
  if (fault.status === 429) {
    const global: Readonly<Record<string, string>> =
      fault.isGlobal === true ? { "x-ratelimit-global": "true" } : {};
    if (fault.retryAfter === "absent") return sendCloudflareLimit(response, global);
    const scope = fault.isGlobal === true ? "global" : "user";
    const { retryAfterMs = 1000, retryAfter } = fault;
    return sendRateLimited(response, { headers, scope, retryAfterMs, retryAfter });
  }
  sendJson(response, fault.status, { message: `${fault.status}: fault`, code: fault.code ?? 0 }, headers);
}
