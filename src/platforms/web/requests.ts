import { readdirSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import type { Clock } from "../../core/clock.ts";
import type { Records } from "../../core/storage.ts";
import { toNotice } from "../../core/error-messages.ts";
import { codeOf, isParleyError } from "../../core/errors.ts";
import type { RequestTarget } from "../../core/platform-module.ts";
import { type Log, createRareLog } from "../../core/telemetry.ts";
import { drainRequest } from "../../support/http/body.ts";
import { createClientAddress } from "../../support/http/client-address.ts";
import { retryAfter, isRead } from "../../support/http/server.ts";
import { createStaticFiles, documentPolicy, type StaticFile } from "../../support/http/static-files.ts";
import { inLanguage, translate, compileMessage, currentLanguage } from "../../words/translate.ts";
import { negotiateLanguage } from "../../words/languages.ts";
import type { Accounts } from "./accounts/accounts.ts";
import type { ApiContext } from "./api-context.ts";
import { handleApi } from "./api.ts";
import { sendProblem, sendTooMany, statusOf } from "./http.ts";
import { createPageLogin, isForeign, type PageLoginMode } from "./page-login.ts";
import { asPerson } from "./address.ts";

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
  /** Holds the sessions. */
  readonly records: Records;
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
    records: options.records,
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
    if (path === "/api/logout" && request.method === "POST") return await login.logOut(request, response);
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
      const { host: expected = "", origin = "none" } = request.headers;
      warnRarely("origin", { path, expected, origin: origin.slice(0, 200) }, "request refused: wrong origin");
      sendProblem(response, 403, "wrong-origin", translate("web.foreign", { expected }), {
        Connection: "close",
      });
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

    /** Ends sessions that nobody may use any more. @throws ParleyError `store-unavailable` */
    endInvalid: (): Promise<void> => login.endInvalid(),
  };
}

const pageDirectory = new URL("./page/", import.meta.url);

/** The page's libraries, served unchanged from node_modules. */
const libraries: Readonly<Record<string, string>> = {
  preact: import.meta.resolve("preact"),
  "preact/hooks": import.meta.resolve("preact/hooks"),
  htm: import.meta.resolve("htm"),
  marked: import.meta.resolve("marked"),
  dompurify: import.meta.resolve("dompurify"),
  // The page loads these when there is a formula or code to show.
  katex: import.meta.resolve("katex"),
  highlight: import.meta.resolve("@highlightjs/cdn-assets/es/highlight.min.js"),
  "intl-messageformat": import.meta.resolve("intl-messageformat"),
  ...partsOf("intl-messageformat", { "@formatjs/fast-memoize": "@formatjs/fast-memoize" }),
  // The page gets its messages parsed.
  ...partsOf("intl-messageformat", {
    "@formatjs/icu-messageformat-parser": "@formatjs/icu-messageformat-parser/no-parser.js",
  }),
};

/** The scripts of the document in which diagrams are drawn. `sandbox` leaves it without an origin. */
const diagramScripts = {
  "/page/diagram-frame.js": new URL("diagram-frame.js", pageDirectory).href,
  "/vendor/mermaid.js": import.meta.resolve("@mermaid-js/tiny"),
};

/** Resolves what a library imports, by its name there, from where the library finds it. */
function partsOf(library: string, parts: Readonly<Record<string, string>>): Record<string, string> {
  const { resolve } = createRequire(import.meta.resolve(library));
  return Object.fromEntries(
    Object.entries(parts).map(([name, file]) => [name, pathToFileURL(resolve(file)).href]),
  );
}

/** An HTML document of the page. */
interface PageDocument {
  readonly name: "index" | "login";
  readonly status: number;
  readonly values?: Readonly<Record<string, string>>;
}

/** Serves the page's own files at `/page/…`, libraries at `/vendor/…`, and the HTML documents. */
function createPageFiles() {
  const paths = Object.fromEntries(
    Object.keys(libraries).map((name) => [name, `/vendor/${name.replaceAll("/", "-")}.js`]),
  );
  const importMap = JSON.stringify({ imports: paths });
  const files = new Map<string, StaticFile>(
    Object.entries(libraries).map(([name, url]) => [String(paths[name]), { url: new URL(url) }]),
  );
  for (const name of readdirSync(pageDirectory))
    if (/\.(?:js|css|svg)$/.test(name)) files.set(`/page/${name}`, { url: new URL(name, pageDirectory) });
  files.set("/favicon.ico", { url: new URL("icon.svg", pageDirectory) });
  for (const [path, url] of Object.entries(diagramScripts))
    // They are public, and a document without an origin counts as another origin.
    files.set(path, { url: new URL(url), headers: { "Cross-Origin-Resource-Policy": "cross-origin" } });
  const statics = createStaticFiles(files);
  const words = {
    importMap,
    uses: (key: string) => /^(?:page|button)\./.test(key),
    compile: (text: string) => compileMessage(currentLanguage(), text),
  };

  return {
    /** Resolves to false, without a response, when there is no such file. */
    async sendFile(response: ServerResponse, path: string): Promise<boolean> {
      if (path !== "/page/diagram") return await statics.sendFile(response, path);
      await statics.sendDocument(response, {
        url: new URL("diagram.html", pageDirectory),
        ...words,
        headers: { "Content-Security-Policy": framePolicy, "X-Frame-Options": "SAMEORIGIN" },
      });
      return true;
    },
    /** Sends an HTML document with its Content Security Policy. `values` are few, by name. */
    sendDocument: (response: ServerResponse, { name, ...document }: PageDocument): Promise<void> =>
      statics.sendDocument(response, {
        url: new URL(`${name}.html`, pageDirectory),
        ...words,
        ...document,
        headers: { "Content-Security-Policy": documentPolicy(importMap, furtherPolicy) },
      }),
  };
}

/** Pictures and recordings from memory, the frame of diagrams, and markup through DOMPurify alone. */
const furtherPolicy = {
  "img-src": "'self' blob: data:",
  "media-src": "'self' blob:",
  "manifest-src": "'self'",
  "frame-src": "'self'",
  "form-action": "'self'",
  "trusted-types": "dompurify",
};

/** Lets the drawing code run and write styles into the drawing. It can load, send and open nothing. */
const framePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'unsafe-inline'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'self'",
  "sandbox allow-scripts",
].join("; ");
