import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { HttpHandler } from "../../core/platform-module.ts";
import { createDashboardAccess, type Admission, type DashboardAccessOptions } from "./dashboard-access.ts";
import type { DashboardData } from "./dashboard-data.ts";

export interface DashboardOptions extends DashboardAccessOptions {
  readonly read: () => Promise<DashboardData>;
}

const pageFolder = new URL("./page/", import.meta.url);

/** Path → file and media type. uPlot draws; it is served from its package unchanged. */
const files: Readonly<Record<string, { readonly url: () => URL; readonly type: string }>> = {
  "/admin": { url: () => new URL("index.html", pageFolder), type: "text/html; charset=utf-8" },
  "/admin/dashboard.js": {
    url: () => new URL("dashboard.js", pageFolder),
    type: "text/javascript; charset=utf-8",
  },
  "/admin/plots.js": { url: () => new URL("plots.js", pageFolder), type: "text/javascript; charset=utf-8" },
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
 * The dashboard for operators: `/admin` (a page) and `/admin/data` (the same as JSON, {@link DashboardData}). Read-only.
 */
export function createDashboard({ read, ...access }: DashboardOptions): HttpHandler {
  const admit = createDashboardAccess(access);
  const cache = new Map<string, Promise<Buffer>>();
  const load = (path: string, url: URL): Promise<Buffer> => {
    const loading = cache.get(path) ?? readPageFile(url);
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
    if (path === "/admin/data") {
      // Another site could have a browser of an operator ask; it would not read the answer, and learns nothing by it.
      const body = `${JSON.stringify(await read(), null, 2)}\n`;
      send(request, response, { status: 200, type: "application/json; charset=utf-8", body });
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

async function readPageFile(url: URL): Promise<Buffer> {
  const bytes = await readFile(url);
  if (!url.pathname.endsWith(".html")) return bytes;
  return Buffer.from(bytes.toString("utf8").replace(/(?<!\s)\s*\{\{import-map\}\}\s*/, () => importMap));
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
