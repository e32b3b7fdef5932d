import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import type { Command } from "../../core/command.ts";
import { isParleyError } from "../../core/errors.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Platform } from "../../core/platform.ts";
import type { FileErasure, RequestTarget, Sealer } from "../../core/platform-module.ts";
import { toWebAddress } from "./address.ts";
import { messageLimits, type ApiContext } from "./api-context.ts";
import { handleApi } from "./api.ts";
import { createConversationViews } from "./conversation-views.ts";
import { createFeeds } from "./feed.ts";
import { createClientAddress } from "./client-address.ts";
import { isForeign } from "./guard.ts";
import { readJson, retryAfter, sendJson, sendProblem, sendTooMany, statusOf } from "./http.ts";
import { toConversationId, toEventKey } from "./ids.ts";
import { localAuthor } from "./messages.ts";
import { createPageFiles } from "./page-files.ts";
import { createWebReply } from "./reply.ts";
import { createSessionBounds, type SessionLimits } from "./session-limits.ts";
import { createSessions } from "./sessions.ts";
import { createUploads, shownMs } from "./uploads.ts";

const sweepIntervalMs = 10 * 60_000;
/** Of a login: a stranger may send one. */
const maxLoginBytes = 4096;

/** @see {@link createWebPlatform} */
export interface WebPlatformOptions {
  readonly commands: ReadonlyMap<string, Command>;
  readonly log: Log;
  /** Absolute path. Uploads are in `uploads/` below it. */
  readonly dataDir: string;
  /** Encrypts uploads on disk. */
  readonly sealer: Sealer;
  /** Uploads are not kept for longer than this. Default: no such bound. */
  readonly retentionMs?: number;
  /** Addresses and networks whose X-Forwarded-For names the client. Default: none. */
  readonly trustedProxies?: readonly string[];
  readonly limits?: SessionLimits;
  /** Required before anything is shown. `checkBind` says when there must be one. */
  readonly password?: string;
  /** Largest upload. Default 25 MB. */
  readonly maxFileBytes?: number;
  /** Describes the gateway. Called each time a page loads. */
  banner(): { readonly gateway: string; readonly isSandbox: boolean };
}

/** The local page as a platform. */
export interface WebPlatform extends Platform {
  /**
   * Handles a request to one of the page's paths. Resolves to false, without a response, for other paths. Contract:
   * does not throw. Before `start` and after `stop` the response is 503. The caller has checked the Host header.
   */
  handle(request: IncomingMessage, response: ServerResponse, target: RequestTarget): Promise<boolean>;
  /** Erases uploads. */
  readonly erasure: FileErasure;
}

/**
 * The page in a browser: conversations, streamed answers, files and commands, over HTTP and server-sent events. It has
 * no HTTP server of its own: pass `handle` to one. The page loads nothing from other hosts.
 */
export function createWebPlatform(options: WebPlatformOptions): WebPlatform {
  const { log } = options;
  const sessions = createSessions(options.password, createClientAddress(options.trustedProxies ?? []));
  const bounds = createSessionBounds(options.limits);
  const files = createPageFiles();
  const feeds = createFeeds();
  const maxFileBytes = options.maxFileBytes ?? 25_000_000;
  const uploads = createUploads(join(options.dataDir, "uploads"), {
    maxBytes: maxFileBytes,
    maxTotalBytes: maxFileBytes * messageLimits.maxFiles * 10,
    sealer: options.sealer,
    retentionMs: options.retentionMs,
  });
  const stopped = new AbortController();
  let isPaused = false;
  let context: ApiContext | undefined;
  let sweeper: NodeJS.Timeout | undefined;

  async function handleApiRequest(
    request: IncomingMessage,
    response: ServerResponse,
    target: RequestTarget,
  ): Promise<void> {
    const { path } = target;
    if (path === "/api/login" && request.method === "POST") return await logIn(request, response);
    const session = sessions.sessionOf(request);
    if (session === undefined) {
      sendProblem(response, 401, "login-needed", "Log in first.");
      return;
    }
    const waitMs = bounds.takeRequest(session);
    if (waitMs > 0) {
      sendTooMany(response, waitMs, "Too many requests.");
      return;
    }
    if (path === "/api/logout" && request.method === "POST") {
      sendJson(response, 200, {}, { "Set-Cookie": sessions.logOut(request) });
      return;
    }
    // While paused, what is shown goes on and can be stopped; what would start something is refused.
    const isTaken = !isPaused || /^(?:GET|HEAD)$/.test(request.method ?? "") || path.endsWith("/cancel");
    if (context === undefined || stopped.signal.aborted || !isTaken) {
      sendProblem(response, 503, "stopping", "Parley is starting or stopping. Try again in a moment.");
      return;
    }
    await handleApi(context, { request, response, target, session });
  }

  async function logIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { password } = await readJson(request, { maxBytes: maxLoginBytes });
    const login = sessions.logIn(request, typeof password === "string" ? password : "");
    switch (login.kind) {
      case "logged-in":
        sendJson(response, 200, {}, { "Set-Cookie": login.cookie });
        return;
      case "wrong":
        log.warn({}, "login failed: wrong password");
        sendProblem(response, 403, "wrong-password", "That is not the password.");
        return;
      case "limited":
        sendTooMany(response, login.retryAfterMs, "Too many wrong passwords.");
    }
  }

  /** Contract: does not throw. What stays is removed by the sweep. */
  async function expireUploadsOf(messageKeys: ReadonlySet<string>): Promise<void> {
    try {
      if (await uploads.markStored(messageKeys)) setTimeout(sweepUploads, shownMs).unref();
    } catch (error) {
      log.warn({ err: error }, "uploads of stored messages could not be marked");
    }
  }

  function sweepUploads(): void {
    if (stopped.signal.aborted) return;
    uploads.sweep().then(
      (removed) => {
        if (removed > 0) log.info({ removed }, "expired uploads removed");
      },
      (error: unknown) => {
        log.warn({ err: error }, "expired uploads could not be removed");
      },
    );
  }

  function sendPage(request: IncomingMessage, response: ServerResponse, path: string): void {
    if (request.method !== "GET" && request.method !== "HEAD") {
      sendProblem(response, 405, "not-allowed", "This method is not allowed here.", { Allow: "GET" });
      return;
    }
    if (path === "/" || path.startsWith("/c/")) {
      const isLoggedIn = sessions.sessionOf(request) !== undefined;
      files.sendDocument(request, response, isLoggedIn ? "index" : "login", isLoggedIn ? 200 : 401);
      return;
    }
    if (!files.sendFile(request, response, path))
      sendProblem(response, 404, "not-found", "There is nothing at this address.");
  }

  return {
    id: "web",
    deliversInOrder: true,

    async start(receiver, history) {
      context = {
        receiver,
        history,
        commands: options.commands,
        feeds,
        views: createConversationViews(history, feeds, log),
        uploads,
        bounds,
        maxFileBytes,
        hasPassword: options.password !== undefined,
        signal: stopped.signal,
        banner: () => options.banner(),
      };
      sweepUploads();
      sweeper = setInterval(sweepUploads, sweepIntervalMs).unref();
    },

    openReply(address, hooks) {
      const webAddress = toWebAddress(address);
      const settle = async () => {
        const storedKeys = await context?.views.settle(webAddress.conversationId);
        if (storedKeys !== undefined) await expireUploadsOf(storedKeys);
      };
      return createWebReply({
        address: webAddress,
        feed: feeds.of(webAddress.conversationId),
        hooks,
        firstText: () => void settle(),
        async ended({ isFinal }) {
          if (isFinal) uploads.expireOf(toEventKey(webAddress));
          await settle();
        },
      });
    },

    guide: {
      commandPrefix: "",
      hasMessageMenus: false,
      speaking: [
        "Every message is answered. Each conversation on the left is one of its own.",
        "Write `/` at the beginning for a command; Tab completes it.",
        "Pictures, recordings and text files can be attached, pasted and dropped; the microphone records a voice note.",
      ],
    },

    nameOf: (id) => Promise.resolve(id === localAuthor.id ? "The page" : undefined),

    // People delete whole conversations on the page, never single messages.
    shownMessageKeys: () => [],

    toPrivateAddress: (address) => ({ ...address, isPrivate: true }),

    openThread(address, { title }) {
      const from = toWebAddress(address);
      // Derived from the address, so that the same call opens the same conversation after a restart too.
      const id = createHash("sha256").update(`thread ${from.conversationId} ${from.replyId}`).digest("hex");
      const conversationId = toConversationId(id.slice(0, 24));
      feeds
        .of(from.conversationId)
        .opened({ kind: "opened", replyId: from.replyId, conversationId: id.slice(0, 24), title });
      return Promise.resolve({ conversationId, address: { conversationId, replyId: id.slice(24, 48) } });
    },

    download: (attachment, downloadOptions) => uploads.read(attachment, downloadOptions),

    health: () => (context === undefined ? { state: "connecting" } : { state: "ready" }),

    async pause() {
      isPaused = true;
    },

    async stop() {
      stopped.abort();
      clearInterval(sweeper);
      try {
        await uploads.removeStored();
      } catch (error) {
        log.warn({ err: error }, "uploads of stored messages could not be removed");
      }
    },

    erasure: {
      async forgetAuthor(conversationId, authorId) {
        if (authorId === localAuthor.id) await uploads.forget(conversationId);
      },
      async deleteConversation(conversationId) {
        await uploads.removeFrom(conversationId);
      },
    },

    async handle(request, response, target) {
      const { path } = target;
      const isOwnPath = path === "/" || path === "/favicon.ico" || /^\/(?:c|page|vendor|api)\//.test(path);
      if (!isOwnPath) return false;
      if (isForeign(request, path)) {
        log.warn({ path }, "request refused: wrong origin");
        sendProblem(
          response,
          403,
          "wrong-origin",
          "Only the page itself may do this. The request came from another origin.",
          { Connection: "close" },
        );
        return true;
      }
      try {
        if (path.startsWith("/api/")) await handleApiRequest(request, response, target);
        else sendPage(request, response, path);
      } catch (error) {
        // A client that disconnects is no failure.
        if (response.headersSent || response.closed) {
          response.destroy();
          return true;
        }
        if (!isParleyError(error)) log.error({ err: error, path }, "request handler failed");
        sendProblem(
          response,
          statusOf(error),
          isParleyError(error) ? error.code : "internal",
          toNotice(error),
          {
            ...(request.complete ? {} : { Connection: "close" }),
            ...(isParleyError(error) && error.retryAfterMs !== undefined
              ? retryAfter(error.retryAfterMs)
              : {}),
          },
        );
      }
      return true;
    },
  };
}
