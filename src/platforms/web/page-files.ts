import { readdirSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { createStaticFiles, documentPolicy, type StaticFile } from "../../support/http/static-files.ts";
import { compileMessage, currentLanguage } from "../../words/translate.ts";

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
export function createPageFiles() {
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
