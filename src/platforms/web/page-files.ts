import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { extname } from "node:path";
import { commonHeaders } from "./http.ts";

const pageDirectory = new URL("./page/", import.meta.url);

/** The page's libraries, served unchanged from node_modules. */
const libraries: Readonly<Record<string, string>> = {
  preact: import.meta.resolve("preact"),
  "preact/hooks": import.meta.resolve("preact/hooks"),
  htm: import.meta.resolve("htm"),
  marked: import.meta.resolve("marked"),
  dompurify: import.meta.resolve("dompurify"),
};

const mediaTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".webmanifest": "application/manifest+json",
};

interface PageFile {
  readonly bytes: Buffer;
  readonly headers: Readonly<Record<string, string>>;
  readonly etag: string;
}

/**
 * Static files: the page's own at `/page/…`, libraries at `/vendor/…`, and the HTML documents. Paths are looked up in a
 * fixed table, so that no other file is reachable. Files are read on first use and cached for good.
 */
export function createPageFiles() {
  const vendor = new Map(
    Object.entries(libraries).map(([name, url]) => [`/vendor/${name.replace("/", "-")}.js`, new URL(url)]),
  );
  const importMap = JSON.stringify({
    imports: Object.fromEntries(
      Object.keys(libraries).map((name) => [name, `/vendor/${name.replace("/", "-")}.js`]),
    ),
  });
  const addresses = new Map<string, URL>(vendor);
  for (const name of readdirSync(pageDirectory)) {
    if (extname(name) !== ".html" && extname(name) in mediaTypes)
      addresses.set(`/page/${name}`, new URL(name, pageDirectory));
  }
  addresses.set("/favicon.ico", new URL("icon.svg", pageDirectory));
  const cache = new Map<string, PageFile>();

  function load(address: string, url: URL): PageFile {
    const isDocument = url.pathname.endsWith(".html");
    const raw = readFileSync(url);
    const bytes = isDocument
      ? Buffer.from(raw.toString("utf8").replace(/\s*\{\{import-map\}\}\s*/, importMap))
      : raw;
    const headers = {
      "Content-Type": mediaTypes[extname(url.pathname)] ?? "text/javascript; charset=utf-8",
      "Cache-Control": isDocument ? "no-store" : "no-cache",
      ...(isDocument ? { "Content-Security-Policy": documentPolicy(importMap) } : {}),
    };
    const etag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
    const file = { bytes, headers, etag };
    cache.set(address, file);
    return file;
  }

  function send(request: IncomingMessage, response: ServerResponse, status: number, file: PageFile): void {
    const headers = { ...commonHeaders, ...file.headers, ETag: file.etag };
    if (status === 200 && request.headers["if-none-match"] === file.etag) {
      response.writeHead(304, headers).end();
      return;
    }
    response.writeHead(status, { ...headers, "Content-Length": file.bytes.length });
    response.end(request.method === "HEAD" ? undefined : file.bytes);
  }

  return {
    /** Returns false, without a response, when there is no such file. */
    sendFile(request: IncomingMessage, response: ServerResponse, path: string): boolean {
      const url = addresses.get(path);
      if (url === undefined) return false;
      send(request, response, 200, cache.get(path) ?? load(path, url));
      return true;
    },
    /** Sends an HTML document with its Content Security Policy. */
    sendDocument(
      request: IncomingMessage,
      response: ServerResponse,
      name: "index" | "login",
      status: number,
    ): void {
      const path = `${name}.html`;
      send(request, response, status, cache.get(path) ?? load(path, new URL(path, pageDirectory)));
    },
  };
}

/**
 * Allows own scripts and styles, the inline import map by its hash, and images and media from memory (`blob:`,
 * `data:`). No other origins, no frames. Markup can only be set through DOMPurify (Trusted Types).
 */
function documentPolicy(importMap: string): string {
  const hash = createHash("sha256").update(importMap).digest("base64");
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${hash}'`,
    "style-src 'self'",
    "img-src 'self' blob: data:",
    "media-src 'self' blob:",
    "connect-src 'self'",
    "manifest-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types dompurify",
  ].join("; ");
}
