import type { IncomingMessage, ServerResponse } from "node:http";
import type { Asker } from "../../core/access.ts";
import type { Clock } from "../../core/clock.ts";
import { codeOf, isParleyError } from "../../core/errors.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { RequestTarget } from "../../core/platform-module.ts";
import { type Log, createRareLog } from "../../core/telemetry.ts";
import { drainRequest } from "../../support/http/body.ts";
import { createClientAddress } from "../../support/http/client-address.ts";
import { retryAfter } from "../../support/http/respond.ts";
import { isRead } from "../../support/http/router.ts";
import { negotiateLanguage } from "../../words/languages.ts";
import { inLanguage, translate } from "../../words/translate.ts";
import type { Accounts } from "./accounts/accounts.ts";
import type { ApiContext } from "./api-context.ts";
import { handleApi } from "./api.ts";
import { sendProblem, sendTooMany, statusOf } from "./http.ts";
import { createPageFiles } from "./page-files.ts";
import { createPageLogin, isForeign, type PageLoginMode } from "./page-login.ts";
import { asPerson } from "./page-person.ts";

/** How much of a refused file is read after the answer, as some proxies report an error otherwise. */
const uploadDrain = { maxBytes: 64 * 1024 * 1024, maxMs: 30_000 };
/** The same limits for other requests, which strangers send too. */
const otherDrain = { maxBytes: 256 * 1024, maxMs: 5000 };

/** Who may open the page. */
export interface PageAccess {
  /** Addresses and networks whose X-Forwarded-For names the client. Default: none. */
  readonly trustedProxies?: readonly string[];
  /** Opens the shared account. `bindProblem` says when there must be one. */
  readonly password?: string;
  /** Default `auto`. */
  readonly loginMode?: PageLoginMode;
}

interface RequestOptions extends PageAccess {
  readonly accounts: Accounts;
  readonly clock: Clock;
  readonly log: Log;
  /** Returns what the endpoints use, or `undefined` while the page is not served. */
  readonly context: () => ApiContext | undefined;
  /** While it is true, what is shown goes on and can be stopped, but nothing new may start. */
  readonly isPaused: () => boolean;
}

/** Serves the page's paths: its files, its documents and its API, to those who may open it. */
export function createPageRequests(options: RequestOptions) {
  const { accounts, clock, log, password, context, isPaused } = options;
  const warnRarely = createRareLog(log, () => clock.monotonic());
  const files = createPageFiles();
  const login = createPageLogin({
    accounts,
    password,
    mode: options.loginMode ?? "auto",
    clock,
    log,
    addressOf: createClientAddress(options.trustedProxies ?? []),
  });

  async function serveApi(
    request: IncomingMessage,
    response: ServerResponse,
    target: RequestTarget,
  ): Promise<void> {
    const { path } = target;
    if (path === "/api/login" && request.method === "POST") return await login.logIn(request, response);
    const loggedIn = await login.personOf(request);
    const served = context();
    if (loggedIn === undefined) return sendProblem(response, 401, "login-needed", translate("web.log-in"));
    const { person, boundsKey: session } = loggedIn;
    const waitMs = served?.bounds.takeRequest(session) ?? 0;
    if (waitMs > 0) return sendTooMany(response, waitMs, translate("web.too-many-requests"));
    if (path === "/api/logout" && request.method === "POST") return login.logOut(request, response);
    if (path === "/api/password" && request.method === "POST")
      return await login.changePassword(request, response, loggedIn);
    if (served === undefined || (isPaused() && !isRead(request) && !path.endsWith("/cancel")))
      return sendProblem(response, 503, "stopping", translate("web.starting"));
    const signal = AbortSignal.any([served.signal, loggedIn.signal]);
    await asPerson(person, () =>
      handleApi({ ...served, signal }, { request, response, target, session, loggedIn }),
    );
  }

  async function servePage(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    if (!isRead(request))
      return sendProblem(response, 405, "not-allowed", translate("web.not-allowed"), { Allow: "GET" });
    if (path !== "/" && !path.startsWith("/c/")) {
      if (!(await files.sendFile(response, path)))
        sendProblem(response, 404, "not-found", translate("web.not-found"));
      return;
    }
    if ((await login.personOf(request)) !== undefined)
      return await files.sendDocument(response, { name: "index", status: 200 });
    const form = await login.form();
    const label = translate(form === "password" ? "page.login.password" : "page.login.own-password");
    const values = { "login-form": form, "login-label": label };
    await files.sendDocument(response, { name: "login", status: 401, values });
  }

  async function serve(
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
      if (path.startsWith("/api/")) await serveApi(request, response, target);
      else await servePage(request, response, path);
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

  return {
    /**
     * Handles a request to one of the page's paths. Resolves to false, without a response, for other paths.
     * Contract: does not throw. While the page is not served the response is 503. The caller has checked the
     * Host header.
     */
    handle: (request: IncomingMessage, response: ServerResponse, target: RequestTarget): Promise<boolean> =>
      inLanguage(negotiateLanguage(request.headers["accept-language"]), () =>
        serve(request, response, target),
      ),

    /** Returns who asks. @see {@link CreatedPlatform.accountOf} */
    async accountOf(this: void, request: IncomingMessage): Promise<Asker | undefined> {
      const { person, account } = (await login.personOf(request)) ?? {};
      return person === undefined || account === undefined
        ? undefined
        : { platform: "web", origin: person.origin };
    },

    /** Ends sessions that nobody may use any more. @throws ParleyError `store-unavailable` */
    endInvalid: (): Promise<void> => login.endInvalid(),
  };
}
