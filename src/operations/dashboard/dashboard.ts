import { createHash, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { HttpHandler } from "../../core/platform-module.ts";
import { isLoopback } from "../../support/http/client-address.ts";
import { createLoginDelays } from "../../support/http/login-delays.ts";
import { negotiateLanguage, type Language } from "../../words/languages.ts";
import { inLanguage, messagesOf } from "../../words/translate.ts";
import type { DashboardData } from "./dashboard-data.ts";

interface DashboardOptions extends DashboardAccessOptions {
  readonly read: () => Promise<DashboardData>;
}

const pageFolder = new URL("./page/", import.meta.url);

/** Maps a path to file and media type. uPlot draws, and is served from its package unchanged. */
const files: Readonly<Record<string, { readonly url: () => URL; readonly type: string }>> = {
  "/admin/dashboard.js": {
    url: () => new URL("dashboard.js", pageFolder),
    type: "text/javascript; charset=utf-8",
  },
  "/admin/theme.js": { url: () => new URL("theme.js", pageFolder), type: "text/javascript; charset=utf-8" },
  "/admin/words.js": { url: () => new URL("words.js", pageFolder), type: "text/javascript; charset=utf-8" },
  "/admin/dom.js": { url: () => new URL("dom.js", pageFolder), type: "text/javascript; charset=utf-8" },
  "/admin/dashboard.css": {
    url: () => new URL("dashboard.css", pageFolder),
    type: "text/css; charset=utf-8",
  },
  "/admin/uplot.js": {
    url: () => new URL("uPlot.esm.js", import.meta.resolve("uplot")),
    type: "text/javascript; charset=utf-8",
  },
  "/admin/uplot.css": {
    url: () => new URL("uPlot.min.css", import.meta.resolve("uplot")),
    type: "text/css; charset=utf-8",
  },
};

const importMap = JSON.stringify({ imports: { uplot: "/admin/uplot.js" } });
const importMapHash = createHash("sha256").update(importMap).digest("base64");

const headers = {
  "Cache-Control": "no-store",
  Vary: "Accept-Language",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Content-Security-Policy": [
    "default-src 'none'",
    `script-src 'self' 'sha256-${importMapHash}'`,
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join("; "),
};

const refusals: Readonly<
  Record<Exclude<Admission["kind"], "admitted">, { readonly status: number; readonly text: string }>
> = {
  closed: {
    status: 403,
    text: "The dashboard is open on this machine only. To open it elsewhere, set ADMIN_PASSWORD, or log in to the page with an account that ADMINS lists (docs/operations.md).\n",
  },
  "password-needed": { status: 401, text: "The dashboard needs the password that ADMIN_PASSWORD sets.\n" },
  limited: { status: 429, text: "Too many wrong passwords. Wait a moment, then try again.\n" },
};

/**
 * Creates the dashboard for operators: `/admin` (a page) and `/admin/data` (the same as JSON, {@link
 * DashboardData}). It only reads.
 */
export function createDashboard({ read, ...access }: DashboardOptions): HttpHandler {
  const admit = createDashboardAccess(access);
  const cache = new Map<string, Promise<Buffer>>();
  const load = (path: string, url: URL): Promise<Buffer> => {
    const loading = cache.get(path) ?? readFile(url);
    cache.set(path, loading);
    return loading;
  };

  return async (request, response, { path }) => {
    if (path !== "/admin" && !path.startsWith("/admin/")) return false;
    if (request.method !== "GET" && request.method !== "HEAD") {
      send(request, response, { status: 405, type: plain, body: "This method is not allowed here.\n" });
      return true;
    }
    const admission = await admit(request);
    if (admission.kind !== "admitted") {
      refuse(request, response, admission);
      return true;
    }
    const language = negotiateLanguage(request.headers["accept-language"]);
    if (path === "/admin/data") {
      // Another site could make an operator's browser ask, but it cannot read the answer and learns nothing.
      const body = `${JSON.stringify(await inLanguage(language, read), null, 2)}\n`;
      send(request, response, { status: 200, type: "application/json; charset=utf-8", body });
      return true;
    }
    if (path === "/admin") {
      const body = toDocument(await load(path, new URL("index.html", pageFolder)), language);
      send(request, response, { status: 200, type: "text/html; charset=utf-8", body });
      return true;
    }
    const file = files[path];
    if (file === undefined) {
      send(request, response, { status: 404, type: plain, body: "There is nothing here: see /admin.\n" });
      return true;
    }
    send(request, response, { status: 200, type: file.type, body: await load(path, file.url()) });
    return true;
  };
}

/** Fills the document in a language, with the import map and the messages of the dashboard. */
function toDocument(template: Buffer, language: Language): string {
  const messages = Object.fromEntries(
    Object.entries({ ...messagesOf("en"), ...messagesOf(language) }).filter(([key]) =>
      key.startsWith("dashboard."),
    ),
  );
  // A data block is never run, and an escaped "<" keeps it from ending early.
  const words = JSON.stringify({ language, messages }).replaceAll("<", "\\u003c");
  const values: Readonly<Record<string, string>> = { ...messages, language, words };
  return template
    .toString("utf8")
    .replace(/(?<!\s)\s*\{\{import-map\}\}\s*/, () => importMap)
    .replaceAll(/\{\{([\w.-]+)\}\}/g, (_, key: string) => values[key] ?? "");
}

const plain = "text/plain; charset=utf-8";

function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  admission: Exclude<Admission, { kind: "admitted" }>,
): void {
  const { status, text } = refusals[admission.kind];
  if (admission.kind === "password-needed")
    response.setHeader("WWW-Authenticate", 'Basic realm="Parley dashboard", charset="UTF-8"');
  if (admission.kind === "limited")
    response.setHeader("Retry-After", String(Math.ceil(admission.retryAfterMs / 1000)));
  send(request, response, { status, type: plain, body: text });
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  { status, type, body }: { readonly status: number; readonly type: string; readonly body: string | Buffer },
): void {
  response.writeHead(status, {
    ...headers,
    ...(status === 405 ? { Allow: "GET" } : {}),
    "Content-Type": type,
    "Content-Length": Buffer.byteLength(body),
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

/** Whether a request may see the dashboard. */
type Admission =
  | { readonly kind: "admitted" }
  /** There is a password, and the request has none or another one. */
  | { readonly kind: "password-needed" }
  /** No password is set, and the request is not from this machine. */
  | { readonly kind: "closed" }
  | { readonly kind: "limited"; readonly retryAfterMs: number };

interface DashboardAccessOptions {
  /** The setting ADMIN_PASSWORD. By default only this machine is admitted. */
  readonly password: string | undefined;
  /** Returns the address that wrong passwords count for. */
  readonly addressOf: (request: IncomingMessage) => string;
  /** Whether the request is from an admin who is logged in elsewhere. By default nobody is. */
  readonly isAdmin?: (request: IncomingMessage) => Promise<boolean>;
  /** Milliseconds on a steady clock. Default `performance.now`. */
  readonly now?: () => number;
}

/**
 * Admits admins, and those with the password, by HTTP Basic authentication with any name. Where no password
 * is set, it admits requests from this machine. Where one is set, they need it too, since a proxy on this
 * machine need not say whom it serves. Wrong passwords are delayed by address, as on the page.
 */
export function createDashboardAccess({ password, addressOf, isAdmin, now }: DashboardAccessOptions) {
  const delays = createLoginDelays(now);
  return async (request: IncomingMessage): Promise<Admission> => {
    if ((await isAdmin?.(request)) === true) return { kind: "admitted" };
    if (password === undefined) return { kind: isFromThisMachine(request) ? "admitted" : "closed" };
    const given = passwordOf(request);
    if (given === undefined) return { kind: "password-needed" };
    const address = addressOf(request);
    const retryAfterMs = delays.waitMs(address);
    if (retryAfterMs > 0) return { kind: "limited", retryAfterMs };
    // Hashes have the same length, so the comparison takes constant time.
    if (!timingSafeEqual(digest(given), digest(password))) {
      delays.failed(address);
      return { kind: "password-needed" };
    }
    return { kind: "admitted" };
  };
}

const forwardedHeaders = ["x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via"];

/**
 * Whether the request is from this machine and not passed on by a proxy on it, which names another host or
 * says for whom. The HTTP server has checked that the Host header is one of this server's names.
 */
function isFromThisMachine({ socket, headers }: IncomingMessage): boolean {
  const address = (socket.remoteAddress ?? "").replace(/^::ffff:/i, "");
  const name = (headers.host ?? "").replace(/:\d+$/, "");
  return isLoopback(address) && isLoopback(name) && forwardedHeaders.every((each) => !(each in headers));
}

function passwordOf({ headers }: IncomingMessage): string | undefined {
  const [, encoded] = /^Basic ([\w+/=-]{1,4096})$/i.exec(headers.authorization ?? "") ?? [];
  if (encoded === undefined) return undefined;
  const login = Buffer.from(encoded, "base64").toString("utf8");
  const mark = login.indexOf(":");
  return mark === -1 ? undefined : login.slice(mark + 1);
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
