import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { checkMessageBlocks } from "./blocks.ts";
import { homeMethods } from "./home.ts";
import { chatMethods } from "./methods-chat.ts";
import { fileMethods } from "./methods-files.ts";
import { otherMethods } from "./methods-other.ts";
import type { Method, MethodContext } from "./methods.ts";
import { sessionMethods } from "./sessions.ts";
import { hasRateLimit, type RateLimits } from "./rate-limits.ts";
import type { OAuth } from "./oauth.ts";
import { botSees, checkToken, hasReplies, SlackApiError, type Fields, toText } from "./workspace.ts";

const methods: Readonly<Record<string, { readonly scope?: string; readonly run: Method }>> = {
  ...chatMethods,
  ...fileMethods,
  ...otherMethods,
  ...sessionMethods,
  ...homeMethods,
};

const unlimited = Object.keys(methods).filter((method) => !hasRateLimit(method));
if (unlimited.length > 0) throw new Error(`no rate limit is simulated for ${unlimited.join(", ")}`);

/** A Web API call by the app. `outcome` is `ok`, Slack's error code or an HTTP status. */
export interface ApiCall {
  readonly method: string;
  readonly args: Fields;
  /** The token that it was made with. */
  readonly token?: string | undefined;
  readonly outcome: string;
}

/** How a call fails: with an error code or with an HTTP status. */
export type Fault = { readonly error: string } | { readonly status: number; readonly afterEffect?: boolean };

/** The state of a `response_url`. */
export interface ResponseUrl {
  readonly channel: string;
  readonly user: string;
  readonly at: number;
  posts: number;
  /** The `ts` of the message whose button was pressed. */
  readonly original: string | undefined;
}

/** The options of {@link createSlackServer}. */
export interface ServerOptions {
  /** The contexts of all workspaces. The first workspace has the app-level token. */
  readonly contexts: readonly [MethodContext, ...MethodContext[]];
  readonly oauth: OAuth;
  readonly limits: RateLimits;
  readonly faults: Map<string, Fault[]>;
  readonly switchedOff: Set<string>;
  /** How long each method takes to respond, in milliseconds. */
  readonly delays: Map<string, number>;
  readonly calls: ApiCall[];
  readonly responseUrls: Map<string, ResponseUrl>;
}

const responseUrlLifeMs = 30 * 60_000;
const maxResponsePosts = 5;
const loginPage =
  "<!DOCTYPE html><html><head><title>Sign in | Slack</title></head><body>Sign in</body></html>";

/** Creates the HTTP and WebSocket server of the simulator. */
export function createSlackServer(options: ServerOptions): Server {
  const { contexts, oauth, limits, faults, switchedOff, delays, calls, responseUrls } = options;
  const [{ workspace: firstWorkspace, clock, hub }] = contexts;
  const tickets = new Set<string>();
  const sockets = new WebSocketServer({ noServer: true });

  /** Returns the workspace of a token. For an organisation's it is the one with the channel or person. */
  function contextOf(token: string, args: Fields): MethodContext {
    const known = contexts.filter(({ workspace }) => checkToken(workspace, token, clock.now()) !== undefined);
    const ids = ["channel", "channel_id", "user", "file"].map((name) => toText(args[name]));
    const has = ({ workspace: { channels, users, files } }: MethodContext): boolean =>
      ids.some((id) => channels.has(id) || users.has(id) || files.has(id));
    const found = known.find(has) ?? known[0];
    if (found === undefined) throw new SlackApiError("invalid_auth");
    if (checkToken(found.workspace, token, clock.now()) === "expired")
      throw new SlackApiError("token_expired");
    return found;
  }

  /** Runs a method. @param host the host name by which the app knows this server */
  function call(method: string, token: string | undefined, args: Fields, host: string): Fields {
    if (method === "oauth.v2.access") return oauth.exchange(args);
    if (method === "apps.connections.open") {
      if (token !== firstWorkspace.appToken)
        throw new SlackApiError(
          token === undefined
            ? "not_authed"
            : token.startsWith("xoxb-")
              ? "not_allowed_token_type"
              : "invalid_auth",
        );
      const ticket = randomBytes(8).toString("hex");
      tickets.add(ticket);
      return { url: `ws://${host}/link/?ticket=${ticket}` };
    }
    const known = methods[method];
    if (known === undefined || switchedOff.has(method))
      throw new SlackApiError("unknown_method", { req_method: method });
    if (token === undefined) throw new SlackApiError("not_authed");
    const context = contextOf(token, args);
    const { workspace } = context;
    if (known.scope !== undefined && !workspace.scopes.has(known.scope)) {
      throw new SlackApiError("missing_scope", {
        needed: known.scope,
        provided: [...workspace.scopes].join(","),
      });
    }
    return known.run(args, context);
  }

  /** Returns the workspace of a token, or the first one for an unknown token. */
  function knownContext(token = ""): MethodContext {
    const known = contexts.find(({ workspace }) => checkToken(workspace, token, clock.now()) !== undefined);
    return known ?? contexts[0];
  }

  async function handleApi(
    method: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const body = (await read(request)).toString("utf8");
    const type = request.headers["content-type"] ?? "";
    const args: Fields = Object.fromEntries(new URLSearchParams(body));
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    const answer = (status: number, json: Fields, headers: Record<string, string> = {}) => {
      calls.push({
        method,
        args,
        token,
        outcome: status === 200 ? (json["ok"] === true ? "ok" : toText(json["error"])) : toText(status),
      });
      response.writeHead(status, {
        "content-type": "application/json; charset=utf-8",
        "x-oauth-scopes": [...knownContext(token).workspace.scopes].join(","),
        ...headers,
      });
      response.end(JSON.stringify(json));
    };
    if (request.method !== "POST" || !type.startsWith("application/x-www-form-urlencoded"))
      return answer(200, { ok: false, error: "invalid_post_type" });
    const delayMs = delays.get(method);
    if (delayMs !== undefined) await new Promise((resolve) => setTimeout(resolve, delayMs).unref());
    const channel = args["channel"] === undefined ? undefined : toText(args["channel"]);
    const waitSeconds = limits.take(method, channel, knownContext(token).workspace.teamId);
    if (waitSeconds !== undefined)
      return answer(429, { ok: false, error: "ratelimited" }, { "retry-after": toText(waitSeconds) });
    const fault = faults.get(method)?.shift();
    if (fault !== undefined && "error" in fault) return answer(200, { ok: false, error: fault.error });
    if (fault !== undefined && fault.afterEffect !== true) return answer(fault.status, { ok: false });
    try {
      const result = call(method, token, args, request.headers.host ?? "");
      if (fault !== undefined) return answer(fault.status, { ok: false });
      answer(200, { ok: true, ...result });
    } catch (error) {
      if (!(error instanceof SlackApiError)) throw error;
      answer(200, { ok: false, error: error.error, ...error.extra });
    }
  }

  async function handleResponseUrl(
    id: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const raw = (await read(request)).toString("utf8");
    const fault = faults.get("response_url")?.shift();
    const broken = fault !== undefined && "status" in fault ? fault : undefined;
    const succeed = () => {
      response.writeHead(broken?.status ?? 200, { "content-type": "text/plain" });
      response.end(broken === undefined ? "ok" : "");
    };
    const refuse = (status: number, error: string) => {
      calls.push({ method: "response_url", args: {}, outcome: error });
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify({ ok: false, error }));
    };
    if (broken !== undefined && broken.afterEffect !== true) return succeed();
    const target = responseUrls.get(id);
    if (target === undefined || clock.now() - target.at > responseUrlLifeMs)
      return refuse(404, "expired_url");
    if (!(request.headers["content-type"] ?? "").startsWith("application/json"))
      return refuse(400, "invalid_payload");
    const args = JSON.parse(raw) as Fields;
    const blocks = (args["blocks"] ?? []) as Fields[];
    const text = toText(args["text"]);
    if (text === "" && blocks.length === 0) return refuse(500, "no_text");
    if (target.posts >= maxResponsePosts) return refuse(404, "used_url");
    try {
      checkMessageBlocks(blocks, contexts[0].refusedMarkdown);
    } catch (error) {
      return refuse(400, error instanceof SlackApiError ? error.error : "invalid_blocks");
    }
    target.posts += 1;
    const { workspace } = contexts.find((one) => one.workspace.channels.has(target.channel)) ?? contexts[0];
    calls.push({ method: "response_url", args, outcome: "ok" });
    const original =
      args["replace_original"] === true
        ? workspace.channels.get(target.channel)?.messages.find(({ ts }) => ts === target.original)
        : undefined;
    if (original !== undefined) {
      Object.assign(original, { text, blocks, edits: original.edits + 1 });
      return succeed();
    }
    const ephemeralTo = args["response_type"] === "in_channel" ? undefined : target.user;
    const threadTs = args["thread_ts"] === undefined ? undefined : toText(args["thread_ts"]);
    // A thread without replies does not show the message, as with chat.postEphemeral.
    if (
      ephemeralTo !== undefined &&
      threadTs !== undefined &&
      !hasReplies(workspace, target.channel, threadTs)
    )
      return succeed();
    workspace.addMessage({
      channel: target.channel,
      user: workspace.botUserId,
      ephemeralTo,
      threadTs,
      text,
      blocks,
      previewsLinks: args["unfurl_media"] !== false || args["unfurl_links"] === true,
    });
    succeed();
  }

  async function handleUpload(
    id: string,
    secret: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const body = await read(request);
    const file = contexts.map(({ workspace }) => workspace.files.get(id)).find((one) => one !== undefined);
    const type = request.headers["content-type"] ?? "";
    if (
      file === undefined ||
      file.uploadSecret !== secret ||
      type.startsWith("application/x-www-form-urlencoded")
    ) {
      response.writeHead(400).end("invalid");
      return;
    }
    const bytes = type.startsWith("multipart/form-data")
      ? new Uint8Array(await firstFile(body, type))
      : new Uint8Array(body);
    if (bytes.length !== file.expectedBytes) {
      response.writeHead(400).end("length mismatch");
      return;
    }
    file.bytes = bytes;
    response.writeHead(200).end(`OK - ${bytes.length}`);
  }

  function handleDownload(id: string, request: IncomingMessage, response: ServerResponse): void {
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1] ?? "";
    const { workspace } = contexts.find((one) => one.workspace.files.has(id)) ?? contexts[0];
    const authorized =
      checkToken(workspace, token, clock.now()) === "valid" && workspace.scopes.has("files:read");
    if (!authorized) {
      response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(loginPage);
      return;
    }
    const file = workspace.files.get(id);
    if (file !== undefined && !botSees(workspace, file)) {
      response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(loginPage);
      return;
    }
    if (file?.bytes === undefined || file.isDeleted) {
      response.writeHead(404, { "content-type": "text/html" }).end("not found");
      return;
    }
    // Canvases and lists are no files. They come as pages.
    if (["quip", "canvas", "list"].includes(toText(file.extra["mode"]))) {
      response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
      response.end(`<!DOCTYPE html><html><body>${Buffer.from(file.bytes).toString("utf8")}</body></html>`);
      return;
    }
    response.writeHead(200, { "content-type": file.mediaType, "content-length": toText(file.bytes.length) });
    response.end(file.bytes);
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    const [, first, second, third] = pathname.split("/").map(decodeURIComponent);
    if (first === "api") return handleApi(second ?? "", request, response);
    if (first === "commands") return handleResponseUrl(second ?? "", request, response);
    if (first === "upload") return handleUpload(third ?? "", pathname.split("/")[4] ?? "", request, response);
    if (first === "files-pri") return handleDownload((second ?? "").split("-")[1] ?? "", request, response);
    response.writeHead(404).end();
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      response.writeHead(500).end(toText(error));
    });
  });
  server.on("upgrade", (request, socket, head) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    if (url.pathname !== "/link/" || !tickets.delete(url.searchParams.get("ticket") ?? "")) {
      socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
      return;
    }
    lingerAfterClose(socket);
    sockets.handleUpgrade(request, socket, head, (connected) => hub.connect(connected));
  });
  return server;
}

/** How long Slack leaves TCP open after the close handshake of a WebSocket. */
const lingerMs = 8000;

function lingerAfterClose(socket: Duplex): void {
  // The socket is closed earlier if the other side has closed it.
  socket.once("end", () => socket.destroy());
  socket.end = () => {
    setTimeout(() => socket.destroy(), lingerMs).unref();
    return socket;
  };
}

async function read(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

async function firstFile(body: Buffer, contentType: string): Promise<ArrayBuffer> {
  const form = await new Response(new Uint8Array(body), {
    headers: { "content-type": contentType },
  }).formData();
  for (const value of form.values()) if (typeof value !== "string") return value.arrayBuffer();
  return new ArrayBuffer(0);
}
