import type { IncomingMessage, ServerResponse } from "node:http";
import type { HttpHandler } from "../../core/platform-module.ts";
import { createRareLog, type Log } from "../../core/telemetry.ts";
import { isFromThisMachine } from "../../support/http/client-address.ts";
import { createLoginDelays, isSameSecret } from "../../support/http/login-delays.ts";
import { inertHeaders, jsonType, plainText, retryAfter, send, isRead } from "../../support/http/server.ts";
import { createStaticFiles, documentPolicy } from "../../support/http/static-files.ts";
import { inLanguage } from "../../words/translate.ts";
import { negotiateLanguage } from "../../words/languages.ts";
import type { DashboardData } from "./dashboard-data.ts";

interface DashboardOptions extends DashboardAccessOptions {
  readonly read: () => Promise<DashboardData>;
}

const pageFolder = new URL("./page/", import.meta.url);

/** The page's own files, and uPlot, which draws and is served from its package unchanged. */
const files = new Map(
  Object.entries({
    "dashboard.js": new URL("dashboard.js", pageFolder),
    "theme.js": new URL("theme.js", pageFolder),
    "words.js": new URL("words.js", pageFolder),
    "dashboard.css": new URL("dashboard.css", pageFolder),
    "uplot.js": new URL("uPlot.esm.js", import.meta.resolve("uplot")),
    "uplot.css": new URL("uPlot.min.css", import.meta.resolve("uplot")),
  }).map(([name, url]) => [`/admin/${name}`, { url }]),
);

const importMap = JSON.stringify({ imports: { uplot: "/admin/uplot.js" } });

const refusals: Readonly<
  Record<Exclude<Admission["kind"], "admitted">, { readonly status: number; readonly text: string }>
> = {
  closed: {
    status: 403,
    text: "The dashboard is open on this machine only. To open it elsewhere, set ADMIN_PASSWORD (docs/operations.md).\n",
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
  const statics = createStaticFiles(files);
  const sendText = (response: ServerResponse, status: number, text: string, headers = {}): void =>
    send(response, status, text, { ...inertHeaders, ...plainText, ...headers });

  async function serve(response: ServerResponse, path: string): Promise<void> {
    if (path === "/admin/data") {
      // Another site could make an operator's browser ask, but it cannot read the answer and learns nothing.
      const data = `${JSON.stringify(await read(), null, 2)}\n`;
      send(response, 200, data, { ...inertHeaders, ...jsonType, Vary: "Accept-Language" });
    } else if (path === "/admin")
      await statics.sendDocument(response, {
        url: new URL("index.html", pageFolder),
        importMap,
        uses: (key) => key.startsWith("dashboard."),
        headers: { "Content-Security-Policy": documentPolicy(importMap, {}) },
      });
    else if (!(await statics.sendFile(response, path)))
      sendText(response, 404, "There is nothing here: see /admin.\n");
  }

  return async (request, response, { path }) => {
    if (path !== "/admin" && !path.startsWith("/admin/")) return false;
    const admission = isRead(request) ? await admit(request) : undefined;
    if (admission === undefined)
      sendText(response, 405, "This method is not allowed here.\n", { Allow: "GET" });
    else if (admission.kind === "admitted") {
      const language = negotiateLanguage(request.headers["accept-language"]);
      await inLanguage(language, () => serve(response, path));
    } else {
      const { status, text } = refusals[admission.kind];
      sendText(response, status, text, {
        ...(admission.kind === "limited" ? retryAfter(admission.retryAfterMs) : {}),
        ...(admission.kind === "password-needed"
          ? { "WWW-Authenticate": 'Basic realm="Parley dashboard", charset="UTF-8"' }
          : {}),
      });
    }
    return true;
  };
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
  readonly log: Log;
  /** Milliseconds on a steady clock. Default `performance.now`. */
  readonly now?: () => number;
}

/**
 * Admits those with the password, by HTTP Basic authentication with any name. Where no password
 * is set, it admits requests from this machine. Where one is set, they need it too, since a proxy on this
 * machine need not say whom it serves. Wrong passwords are delayed by address, as on the page.
 */
export function createDashboardAccess({ password, addressOf, log, now }: DashboardAccessOptions) {
  const delays = createLoginDelays(now);
  const warnRarely = createRareLog(log, now);
  return async (request: IncomingMessage): Promise<Admission> => {
    if (password === undefined) return { kind: isFromThisMachine(request) ? "admitted" : "closed" };
    const given = passwordOf(request);
    if (given === undefined) return { kind: "password-needed" };
    const attempt = await delays.attempt(addressOf(request), () =>
      isSameSecret(given, password) ? true : undefined,
    );
    if (attempt.kind === "limited") return attempt;
    if (attempt.kind === "wrong")
      warnRarely(
        "password",
        { reason: `from ${addressOf(request)}` },
        "dashboard login failed: wrong password",
      );
    return { kind: attempt.kind === "right" ? "admitted" : "password-needed" };
  };
}

function passwordOf({ headers }: IncomingMessage): string | undefined {
  const [, encoded] = /^Basic ([\w+/=-]{1,4096})$/i.exec(headers.authorization ?? "") ?? [];
  if (encoded === undefined) return undefined;
  const login = Buffer.from(encoded, "base64").toString("utf8");
  const mark = login.indexOf(":");
  return mark === -1 ? undefined : login.slice(mark + 1);
}
