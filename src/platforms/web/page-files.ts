import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createRequire } from "node:module";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";
import { compileMessage, currentLanguage, messagesOf } from "../../words/translate.ts";
import { createCompressedFile, encodingFor, commonHeaders } from "./http.ts";

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

/** The document in which diagrams are drawn, and its scripts. `sandbox` leaves it without an origin. */
const diagramFrame = {
  document: "/page/diagram",
  scripts: {
    "/page/diagram-frame.js": undefined,
    "/vendor/mermaid.js": import.meta.resolve("@mermaid-js/tiny"),
  },
} as const;

/** Resolves what a library imports, by its name there, from where the library finds it. */
function partsOf(library: string, parts: Readonly<Record<string, string>>): Record<string, string> {
  const { resolve } = createRequire(import.meta.resolve(library));
  return Object.fromEntries(
    Object.entries(parts).map(([name, file]) => [name, pathToFileURL(resolve(file)).href]),
  );
}

const mediaTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".webmanifest": "application/manifest+json",
};

interface PageFile {
  readonly encode: ReturnType<typeof createCompressedFile>;
  readonly headers: Readonly<Record<string, string>>;
  readonly etag: string;
}

/** An HTML document of the page. */
interface DocumentToSend {
  readonly name: "index" | "login";
  readonly status: number;
  readonly values?: Readonly<Record<string, string>>;
}

/**
 * Serves static files: the page's own at `/page/…`, libraries at `/vendor/…`, and the HTML documents. Paths
 * are looked up in a fixed table, so that no other file is reachable. Files are read on first use and cached
 * for good.
 */
export function createPageFiles() {
  const vendor = new Map(
    Object.entries(libraries).map(([name, url]) => [`/vendor/${name.replaceAll("/", "-")}.js`, new URL(url)]),
  );
  const importMap = JSON.stringify({
    imports: Object.fromEntries(
      Object.keys(libraries).map((name) => [name, `/vendor/${name.replaceAll("/", "-")}.js`]),
    ),
  });
  const addresses = new Map<string, URL>(vendor);
  for (const name of readdirSync(pageDirectory)) {
    if (extname(name) !== ".html" && extname(name) in mediaTypes)
      addresses.set(`/page/${name}`, new URL(name, pageDirectory));
  }
  addresses.set(diagramFrame.document, new URL("diagram.html", pageDirectory));
  addresses.set("/vendor/mermaid.js", new URL(diagramFrame.scripts["/vendor/mermaid.js"]));
  addresses.set("/favicon.ico", new URL("icon.svg", pageDirectory));
  const cache = new Map<string, PageFile>();

  function load(address: string, url: URL, values: Readonly<Record<string, string>> = {}): PageFile {
    const isDocument = url.pathname.endsWith(".html");
    const raw = readFileSync(url);
    const bytes = isDocument ? toDocument(raw.toString("utf8"), importMap, values) : raw;
    const headers = {
      "Content-Type": mediaTypes[extname(url.pathname)] ?? "text/javascript; charset=utf-8",
      "Cache-Control": isDocument ? "no-store" : "no-cache",
      Vary: isDocument ? "Accept-Encoding, Accept-Language" : "Accept-Encoding",
      ...(isDocument ? { "Content-Security-Policy": documentPolicy(importMap) } : {}),
      ...(address === diagramFrame.document
        ? { "Content-Security-Policy": framePolicy, "X-Frame-Options": "SAMEORIGIN" }
        : {}),
      // They are public, and a document without an origin counts as another origin.
      ...(address in diagramFrame.scripts ? { "Cross-Origin-Resource-Policy": "cross-origin" } : {}),
    };
    const etag = createHash("sha256").update(bytes).digest("base64url").slice(0, 22);
    const file = { encode: createCompressedFile(bytes), headers, etag };
    cache.set(address, file);
    return file;
  }

  async function send(
    request: IncomingMessage,
    response: ServerResponse,
    status: number,
    file: PageFile,
  ): Promise<void> {
    const { encoding, bytes } = await file.encode(encodingFor(request));
    const headers = {
      ...commonHeaders,
      ...file.headers,
      ...(encoding === "identity" ? {} : { "Content-Encoding": encoding }),
      ETag: `"${file.etag}-${encoding}"`,
    };
    if (status === 200 && request.headers["if-none-match"] === headers.ETag) {
      response.writeHead(304, headers).end();
      return;
    }
    response.writeHead(status, { ...headers, "Content-Length": bytes.length });
    response.end(request.method === "HEAD" ? undefined : bytes);
  }

  return {
    /** Resolves to false, without a response, when there is no such file. */
    async sendFile(request: IncomingMessage, response: ServerResponse, path: string): Promise<boolean> {
      const url = addresses.get(path);
      if (url === undefined) return false;
      await send(request, response, 200, cache.get(path) ?? load(path, url));
      return true;
    },
    /** Sends an HTML document with its Content Security Policy. `values` are few, by name. */
    async sendDocument(
      request: IncomingMessage,
      response: ServerResponse,
      { name, status, values = {} }: DocumentToSend,
    ): Promise<void> {
      const path = `${name}.html`;
      const key = `${path} ${currentLanguage()} ${JSON.stringify(values)}`;
      await send(
        request,
        response,
        status,
        cache.get(key) ?? load(key, new URL(path, pageDirectory), values),
      );
    },
  };
}

/** Fills a document in the language of the browser: with the import map, the page's messages and values. */
function toDocument(template: string, importMap: string, given: Readonly<Record<string, string>>): Buffer {
  const language = currentLanguage();
  const messages = Object.fromEntries(
    Object.entries({ ...messagesOf("en"), ...messagesOf(language) }).filter(([key]) =>
      /^(?:page|button)\./.test(key),
    ),
  );
  // A data block is never run, and an escaped "<" keeps it from ending early.
  const compiled = Object.fromEntries(
    Object.entries(messages).map(([key, text]) => [key, compileMessage(language, text)]),
  );
  const words = JSON.stringify({ language, messages: compiled }).replaceAll("<", "\\u003c");
  const values: Readonly<Record<string, string>> = { ...given, language, words };
  const filled = template
    .replace(/(?<!\s)\s*\{\{import-map\}\}\s*/, () => importMap)
    .replaceAll(/\{\{([\w.-]+)\}\}/g, (_, key: string) => values[key] ?? messages[key] ?? "");
  return Buffer.from(filled);
}

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

/**
 * Returns a policy that allows own scripts and styles, the inline import map by its hash, images and media
 * from memory (`blob:`, `data:`), and the frame of diagrams. Other origins are not allowed. Markup can only
 * be set through DOMPurify (Trusted Types).
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
    "frame-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types dompurify",
  ].join("; ");
}
