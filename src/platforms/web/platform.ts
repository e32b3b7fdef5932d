import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import type { Command } from "../../core/command.ts";
import { isParleyError } from "../../core/errors.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Platform } from "../../core/platform.ts";
import { answerApi, messageLimits, type ApiRoom } from "./api.ts";
import { createConversationViews } from "./conversations.ts";
import { createFeeds } from "./feed.ts";
import { createGuard } from "./guard.ts";
import { readJson, sendJson, sendProblem, statusOf } from "./http.ts";
import { createPageFiles } from "./page-files.ts";
import { createWebReply, toWebAddress } from "./reply.ts";
import { createSessions } from "./sessions.ts";
import { createUploads } from "./uploads.ts";

const sweepMs = 3_600_000;

/** What the page needs to know. */
export interface WebPlatformOptions {
  readonly commands: ReadonlyMap<string, Command>;
  readonly log: Log;
  /** Absolute; uploads wait in `uploads/` below it. */
  readonly dataDir: string;
  /** The address that the HTTP server listens on: requests must name it (or loopback). Default `127.0.0.1`. */
  readonly host?: string;
  /** Further names the page is reached by (`chat.example.org`), for a proxy in front. */
  readonly publicHosts?: readonly string[];
  /** Asked for before anything is shown. See `checkBind` for when there must be one. */
  readonly password?: string;
  /** Largest uploaded file. Default 25 MB. */
  readonly maxFileBytes?: number;
  /** What answers; asked anew each time a page loads. */
  banner(): { readonly gateway: string; readonly isSandbox: boolean };
}

/** The local page. */
export interface WebPlatform extends Platform {
  /**
   * Answers a request if it is for one of the page's addresses; false: it is somebody else's. Contract: does not
   * throw, and is safe to call before `start` and after `stop` (503).
   */
  handle(request: IncomingMessage, response: ServerResponse): Promise<boolean>;
}

/**
 * The page in a browser: conversations, streamed answers, files and commands, over HTTP and server-sent events.
 * It brings no server of its own; `handle` goes into one. Nothing it serves names another host.
 */
export function createWebPlatform(options: WebPlatformOptions): WebPlatform {
  const { log } = options;
  const guard = createGuard(options.host ?? "127.0.0.1", options.publicHosts ?? []);
  const sessions = createSessions(options.password);
  const files = createPageFiles();
  const feeds = createFeeds();
  const maxFileBytes = options.maxFileBytes ?? 25_000_000;
  const uploads = createUploads(join(options.dataDir, "uploads"), {
    maxBytes: maxFileBytes,
    maxTotalBytes: maxFileBytes * messageLimits.maxFiles * 10,
  });
  const stopped = new AbortController();
  let room: ApiRoom | undefined;
  let sweeper: NodeJS.Timeout | undefined;

  async function answer(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    if (url.pathname === "/api/login" && request.method === "POST") return await logIn(request, response);
    if (!sessions.isIn(request)) {
      sendProblem(response, 401, "login-needed", "The password is needed first.");
      return;
    }
    if (url.pathname === "/api/logout" && request.method === "POST") {
      sendJson(response, 200, {}, { "Set-Cookie": sessions.logOut(request) });
      return;
    }
    if (room === undefined || stopped.signal.aborted) {
      sendProblem(response, 503, "stopping", "Parley is starting or stopping. Try again in a moment.");
      return;
    }
    await answerApi(room, request, response, url);
  }

  async function logIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { password } = await readJson(request);
    const login = sessions.logIn(request, typeof password === "string" ? password : "");
    switch (login.kind) {
      case "in":
        sendJson(response, 200, {}, { "Set-Cookie": login.cookie });
        return;
      case "wrong":
        log.warn({}, "a wrong password was tried on the page");
        sendProblem(response, 403, "wrong-password", "That is not the password.");
        return;
      case "limited": {
        const seconds = Math.max(1, Math.ceil(login.retryAfterMs / 1000));
        sendProblem(
          response,
          429,
          "too-many-tries",
          `Too many wrong passwords. Try again in ${seconds} seconds.`,
          { "Retry-After": `${seconds}` },
        );
      }
    }
  }

  function sendPage(request: IncomingMessage, response: ServerResponse, path: string): void {
    if (request.method !== "GET" && request.method !== "HEAD") {
      sendProblem(response, 405, "not-allowed", "That cannot be done here.", { Allow: "GET" });
      return;
    }
    if (path === "/" || path.startsWith("/c/")) {
      const isIn = sessions.isIn(request);
      files.sendDocument(request, response, isIn ? "index" : "login", isIn ? 200 : 401);
      return;
    }
    if (!files.sendFile(request, response, path))
      sendProblem(response, 404, "not-found", "There is nothing at this address.");
  }

  return {
    id: "web",

    async start(receiver, history) {
      room = {
        receiver,
        history,
        commands: options.commands,
        feeds,
        views: createConversationViews(history, feeds, log),
        uploads,
        maxFileBytes,
        hasPassword: options.password !== undefined,
        signal: stopped.signal,
        banner: () => options.banner(),
      };
      const sweep = () => {
        uploads.sweep().then(
          (removed) => {
            if (removed > 0) log.info({ removed }, "old uploads were removed");
          },
          (error: unknown) => {
            log.warn({ err: error }, "old uploads could not be removed");
          },
        );
      };
      sweep();
      sweeper = setInterval(sweep, sweepMs).unref();
    },

    openReply(address, hooks) {
      const webAddress = toWebAddress(address);
      const settle = async () => {
        await room?.views.settle(webAddress.conversationId);
      };
      return createWebReply({
        address: webAddress,
        feed: feeds.of(webAddress.conversationId),
        hooks,
        firstText: () => void settle(),
        ended: settle,
      });
    },

    // The page removes whole conversations only.
    shownMessageKeys: () => [],

    toPrivateAddress: (address) => address,

    openThread(address, { title }) {
      const from = toWebAddress(address);
      // Made from the address, so that the same call opens the same conversation, also after a restart.
      const id = createHash("sha256").update(`thread ${from.conversationId} ${from.replyId}`).digest("hex");
      const conversationId = `web:${id.slice(0, 24)}`;
      feeds
        .of(from.conversationId)
        .opened({ kind: "opened", replyId: from.replyId, conversationId: id.slice(0, 24), title });
      return Promise.resolve({ conversationId, address: { conversationId, replyId: id.slice(24, 48) } });
    },

    download: (attachment, downloadOptions) => uploads.read(attachment, downloadOptions),

    health: () => (room === undefined ? { state: "connecting" } : { state: "ready" }),

    stop() {
      stopped.abort();
      clearInterval(sweeper);
      return Promise.resolve();
    },

    async handle(request, response) {
      const base = "http://localhost";
      if (!URL.canParse(request.url ?? "/", base)) return false;
      const url = new URL(request.url ?? "/", base);
      const path = url.pathname;
      const isOwn = path === "/" || path === "/favicon.ico" || /^\/(?:c|page|vendor|api)\//.test(path);
      if (!isOwn) return false;
      const refusal = guard.refusal(request);
      if (refusal !== undefined) {
        log.warn({ code: refusal.code, path }, "a request that was not the page's own was refused");
        sendProblem(response, refusal.status, refusal.code, refusal.message, { Connection: "close" });
        return true;
      }
      try {
        if (path.startsWith("/api/")) await answer(request, response, url);
        else sendPage(request, response, path);
      } catch (error) {
        if (response.headersSent) {
          response.destroy();
          return true;
        }
        if (!isParleyError(error)) log.error({ err: error, path }, "the page's server failed");
        sendProblem(
          response,
          statusOf(error),
          isParleyError(error) ? error.code : "internal",
          toNotice(error),
          request.complete ? {} : { Connection: "close" },
        );
      }
      return true;
    },
  };
}
