import { createHash, randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import type { Command } from "../../core/command.ts";
import { codeOf, isParleyError } from "../../core/errors.ts";
import { toNotice } from "../../core/error-messages.ts";
import { type Log, createRareLog } from "../../core/telemetry.ts";
import type { CancelTimer, Clock } from "../../core/clock.ts";
import { maxFileBytes, maxRecordingBytes } from "../../core/events.ts";
import type { GatewayOutlook } from "../../core/gateway.ts";
import type { Platform } from "../../core/platform.ts";
import type { Asker } from "../../core/access.ts";
import type { FileErasure, RequestTarget, Sealer } from "../../core/platform-module.ts";
import type { Records } from "../../core/storage.ts";
import { eraseRemoved } from "./accounts/account-erasure.ts";
import { createAccounts } from "./accounts/accounts.ts";
import { toWebAddress, toEventKey, toSiblingId } from "./address.ts";
import { messageLimits, type ApiContext } from "./api-context.ts";
import { handleApi } from "./api.ts";
import { createConversationViews } from "./conversation-views.ts";
import { createFeeds, createListChanges } from "./feed.ts";
import { createClientAddress } from "../../support/http/client-address.ts";
import { systemClock } from "../../support/clock.ts";
import { drainRequest } from "../../support/http/body.ts";
import { retryAfter } from "../../support/http/respond.ts";
import { isRead } from "../../support/http/router.ts";
import { isForeign, type PageLoginMode, createPageLogin } from "./page-login.ts";
import { sendProblem, sendTooMany, statusOf } from "./http.ts";
import { createPageFiles } from "./page-files.ts";
import { accountAuthorId, asPerson, ownerOf, sharedPerson } from "./page-person.ts";
import { createWebReply } from "./reply.ts";
import { createSessionBounds, type SessionLimits } from "./session-limits.ts";
import { createUploads, shownMs } from "./uploads.ts";
import { negotiateLanguage } from "../../words/languages.ts";
import { inLanguage, translate } from "../../words/translate.ts";

const sweepIntervalMs = 10 * 60_000;
/** How often accounts that were closed or removed meanwhile are looked for. */
const accountsIntervalMs = 10_000;
/** How much of a refused file is read after the answer, as some proxies report an error otherwise. */
const uploadDrain = { maxBytes: 64 * 1024 * 1024, maxMs: 30_000 };
/** The same limits for other requests, which strangers send too. */
const otherDrain = { maxBytes: 256 * 1024, maxMs: 5000 };

const fineOutlook: GatewayOutlook = {
  trouble: () => undefined,
  onChange: () => () => undefined,
  look: () => undefined,
};

/** The options of {@link createWebPlatform}. */
interface WebPlatformOptions {
  readonly commands: ReadonlyMap<string, Command>;
  readonly log: Log;
  /** An absolute path. Uploads are in `uploads/` below it. */
  readonly dataDir: string;
  /** Encrypts uploads on disk. */
  readonly sealer: Sealer;
  /** Uploads are not kept for longer than this. By default there is no such limit. */
  readonly retentionMs?: number;
  /** Addresses and networks whose X-Forwarded-For names the client. Default: none. */
  readonly trustedProxies?: readonly string[];
  readonly limits?: SessionLimits;
  /** Holds the accounts. */
  readonly records: Records;
  /** Opens the shared account. `checkBind` says when there must be one. */
  readonly password?: string;
  /** Who may open the page. Default `auto`. */
  readonly loginMode?: PageLoginMode;
  /** Whether models make the titles of chats. Default false. */
  readonly hasTitles?: boolean;
  /** The default is the time of this process. */
  readonly clock?: Clock;
  /** The largest upload. Default 25 MB, and 75 MB for recordings. */
  readonly maxFileBytes?: number;
  /** Whether the gateway answers. By default it does. */
  readonly outlook?: GatewayOutlook;
  /** Describes the gateway. It is called each time a page loads. */
  banner(): { readonly gateway: string; readonly isSandbox: boolean };
}

/** The local page as a platform. */
export interface WebPlatform extends Platform {
  /**
   * Handles a request to one of the page's paths. Resolves to false, without a response, for other paths.
   * Contract: does not throw. Before `start` and after `stop` the response is 503. The caller has checked the
   * Host header.
   */
  handle(request: IncomingMessage, response: ServerResponse, target: RequestTarget): Promise<boolean>;
  /** Erases uploads. */
  readonly erasure: FileErasure;
  /** Returns who asks. @see {@link CreatedPlatform.accountOf} */
  accountOf(request: IncomingMessage): Promise<Asker | undefined>;
}

/**
 * Creates the page in a browser: conversations, streamed answers, files and commands, over HTTP and
 * server-sent events. It has no HTTP server of its own, so `handle` must be passed to one. The page loads
 * nothing from other hosts.
 */
export function createWebPlatform(options: WebPlatformOptions): WebPlatform {
  const { log, clock = systemClock } = options;
  const warnRarely = createRareLog(log, () => clock.monotonic());
  const accounts = createAccounts(options.records, clock);
  const pageLogin = createPageLogin({
    accounts,
    password: options.password,
    mode: options.loginMode ?? "auto",
    clock,
    log,
    addressOf: createClientAddress(options.trustedProxies ?? []),
  });
  const bounds = createSessionBounds(options.limits);
  const files = createPageFiles();
  const list = createListChanges();
  const feeds = createFeeds(undefined, (...changed) => list.follow(...changed));
  const limits = {
    maxFileBytes: options.maxFileBytes ?? maxFileBytes,
    maxRecordingBytes: options.maxFileBytes ?? maxRecordingBytes,
  };
  const uploads = createUploads(join(options.dataDir, "uploads"), {
    maxBytes: limits.maxFileBytes,
    maxRecordingBytes: limits.maxRecordingBytes,
    maxTotalBytes: limits.maxFileBytes * messageLimits.maxFiles * 10,
    sealer: options.sealer,
    retentionMs: options.retentionMs,
    now: () => clock.now(),
  });
  const stopped = new AbortController();
  let isPaused = false;
  let context: ApiContext | undefined;
  let stopSweeping: CancelTimer = () => undefined;
  let stopWatching: CancelTimer = () => undefined;

  async function handleApiRequest(
    request: IncomingMessage,
    response: ServerResponse,
    target: RequestTarget,
  ): Promise<void> {
    const { path } = target;
    if (path === "/api/login" && request.method === "POST") return await pageLogin.logIn(request, response);
    const loggedIn = await pageLogin.personOf(request);
    if (loggedIn === undefined) {
      sendProblem(response, 401, "login-needed", translate("web.log-in"));
      return;
    }
    const { person, account, boundsKey: session, canLogOut } = loggedIn;
    const waitMs = bounds.takeRequest(session);
    if (waitMs > 0) {
      sendTooMany(response, waitMs, translate("web.too-many-requests"));
      return;
    }
    if (path === "/api/logout" && request.method === "POST") return pageLogin.logOut(request, response);
    if (path === "/api/password" && request.method === "POST")
      return await pageLogin.changePassword(request, response, loggedIn);
    // While paused, what is shown goes on and can be stopped, but nothing new may start.
    const isTaken = !isPaused || isRead(request) || path.endsWith("/cancel");
    if (context === undefined || stopped.signal.aborted || !isTaken) {
      sendProblem(response, 503, "stopping", translate("web.starting"));
      return;
    }
    const signal = AbortSignal.any([stopped.signal, loggedIn.signal]);
    const own = { ...context, signal, hasPassword: canLogOut, accountName: account?.name };
    await asPerson(person, () => handleApi(own, { request, response, target, session }));
  }

  /** Contract: does not throw. The sweep removes what stays. */
  async function expireUploadsOf(messageKeys: ReadonlySet<string>): Promise<void> {
    try {
      if (await uploads.markStored(messageKeys)) clock.after(shownMs, sweepUploads, { keepsAlive: false });
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

  async function watchAccounts(): Promise<void> {
    if (context === undefined || stopped.signal.aborted) return;
    const { receiver, history } = context;
    try {
      await pageLogin.endInvalid();
      const erased = await eraseRemoved({
        accounts,
        receiver,
        history,
        removeUploadsOf: (authorId) => uploads.removeOf(authorId),
        removeFeed: (conversationId) => feeds.of(conversationId).clear(),
      });
      if (erased > 0) log.info({ accounts: erased }, "removed accounts erased with their chats");
    } catch (error) {
      log.warn({ err: error }, "accounts could not be read; tried again soon");
    } finally {
      if (!stopped.signal.aborted)
        stopWatching = clock.after(accountsIntervalMs, () => void watchAccounts(), { keepsAlive: false });
    }
  }

  async function sendPage(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    if (!isRead(request)) {
      sendProblem(response, 405, "not-allowed", translate("web.not-allowed"), { Allow: "GET" });
      return;
    }
    if (path === "/" || path.startsWith("/c/")) {
      const isLoggedIn = (await pageLogin.personOf(request)) !== undefined;
      if (isLoggedIn) await files.sendDocument(response, { name: "index", status: 200 });
      else {
        const form = await pageLogin.form();
        const label = translate(form === "password" ? "page.login.password" : "page.login.own-password");
        const values = { "login-form": form, "login-label": label };
        await files.sendDocument(response, { name: "login", status: 401, values });
      }
      return;
    }
    if (!(await files.sendFile(response, path)))
      sendProblem(response, 404, "not-found", translate("web.not-found"));
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
        list,
        views: createConversationViews(history, feeds, options.commands, log),
        uploads,
        bounds,
        ...limits,
        hasPassword: false,
        accountName: undefined,
        signal: stopped.signal,
        outlook: options.outlook ?? fineOutlook,
        banner: () => options.banner(),
      };
      void watchAccounts();
      sweepUploads();
      stopSweeping = clock.every(sweepIntervalMs, sweepUploads);
    },

    ...(options.hasTitles === true ? { titled: (conversationId) => list.touch(conversationId) } : {}),

    openReply(address, hooks) {
      const webAddress = toWebAddress(address);
      const settle = async () => {
        const storedKeys = await context?.views.settle(webAddress.conversationId);
        list.touch(webAddress.conversationId);
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
      exportsAs: "archive",
      hasLocalNames: false,
      get speaking() {
        return (["conversations", "commands", "files"] as const).map((part) =>
          translate(`web.guide.${part}`),
        );
      },
    },

    // Nobody else writes in a chat of the page.
    readRoom: () => Promise.resolve("alone"),
    // Everything that is summed up stands on the page already.
    linksTo: () => Promise.resolve(new Map()),

    async nameOf(id) {
      if (id === sharedPerson.author.id || id === "web") return translate("web.page");
      return id.startsWith(accountAuthorId(""))
        ? await accounts.nameOf(id.slice(accountAuthorId("").length))
        : undefined;
    },

    // People delete whole conversations on the page, never single messages.
    shownMessageKeys: () => [],

    toPrivateAddress: (address) => ({ ...address, isPrivate: true }),

    async tellAlone(address, _authorId, text) {
      const { conversationId } = toWebAddress(address);
      const reply = createWebReply({
        address: { conversationId, replyId: randomBytes(12).toString("hex"), isPrivate: true },
        feed: feeds.of(conversationId),
        hooks: { saveAddress: () => Promise.resolve() },
        firstText: () => undefined,
        ended: () => Promise.resolve(),
      });
      await reply.show();
      reply.write({ text });
      await reply.finish();
    },

    openThread(address, { title }) {
      const from = toWebAddress(address);
      // The id is derived from the address: the same call opens the same conversation after a restart.
      const id = createHash("sha256").update(`thread ${from.conversationId} ${from.replyId}`).digest("hex");
      const conversationId = toSiblingId(from.conversationId, id.slice(0, 24));
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
      stopSweeping();
      stopWatching();
      try {
        await uploads.removeStored();
      } catch (error) {
        log.warn({ err: error }, "uploads of stored messages could not be removed");
      }
    },

    erasure: {
      async forgetAuthor(conversationId, authorId) {
        if (conversationId === undefined) await uploads.removeOf(authorId);
        else if (ownerOf(conversationId) === authorId) await uploads.removeFrom(conversationId);
        for (const [id, feed] of feeds.all())
          if ((conversationId ?? id) === id && ownerOf(id) === authorId) feed.forget();
      },
      async deleteConversation(conversationId) {
        await uploads.removeFrom(conversationId);
        list.touch(conversationId);
      },
    },

    async accountOf(request) {
      const { person, account } = (await pageLogin.personOf(request)) ?? {};
      return person === undefined || account === undefined
        ? undefined
        : { platform: "web", origin: person.origin };
    },

    handle: (request, response, target) =>
      inLanguage(negotiateLanguage(request.headers["accept-language"]), () =>
        handle(request, response, target),
      ),
  };

  async function handle(
    request: IncomingMessage,
    response: ServerResponse,
    target: RequestTarget,
  ): Promise<boolean> {
    const { path } = target;
    const isOwnPath = path === "/" || path === "/favicon.ico" || /^\/(?:c|page|vendor|api)\//.test(path);
    if (!isOwnPath) return false;
    if (isForeign(request, path)) {
      warnRarely("origin", { path }, "request refused: wrong origin");
      sendProblem(response, 403, "wrong-origin", translate("web.foreign"), { Connection: "close" });
      return true;
    }
    try {
      if (path.startsWith("/api/")) await handleApiRequest(request, response, target);
      else await sendPage(request, response, path);
    } catch (error) {
      // A client that disconnects is no failure.
      if (response.headersSent || response.closed) {
        response.destroy();
        return true;
      }
      if (!isParleyError(error)) log.error({ err: error, path }, "request handler failed");
      sendProblem(response, statusOf(error), codeOf(error), toNotice(error), {
        ...(isParleyError(error) && error.retryAfterMs !== undefined ? retryAfter(error.retryAfterMs) : {}),
      });
      drainRequest(request, path === "/api/uploads" ? uploadDrain : otherDrain);
    }
    return true;
  }
}
