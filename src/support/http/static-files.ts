import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { extname } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { currentLanguage, messagesOf } from "../../words/translate.ts";
import { safeHeaders, send } from "./server.ts";

const toBrotli = promisify(brotliCompress);
const toGzip = promisify(gzip);

/**
 * A file is compressed when it is first asked for after a start. The best quality (11) would save a tenth of
 * the bytes and take 80 times as long: the first page would be there seconds later.
 */
const brotliQuality = 5;
/** Smaller files hardly shrink. */
const minBytes = 256;

/** How a response is encoded. */
type Encoding = "br" | "gzip" | "identity";

/** Returns the best encoding that a client accepts. */
export function encodingFor({ headers }: Pick<IncomingMessage, "headers">): Encoding {
  const accepted = new Map(
    (headers["accept-encoding"] ?? "")
      .toLowerCase()
      .split(",")
      .map((part) => {
        const [name = "", weight = ""] = part.split(";");
        return [name.trim(), !/^\s*q=0(?:\.0+)?\s*$/.test(weight)] as const;
      }),
  );
  if (accepted.get("br") === true) return "br";
  return accepted.get("gzip") === true ? "gzip" : "identity";
}

const mediaTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** A file of the package or of one of its libraries, and the headers that it has beside the usual ones. */
export interface StaticFile {
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A document with places for words: `{{key}}`, `{{words}}`, `{{language}}` and `{{import-map}}`. */
interface DocumentToSend {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly importMap: string;
  /** Which messages of the catalogue the document and its scripts use. */
  readonly uses: (key: string) => boolean;
  /** Changes a message for the scripts. By default they get its text. */
  readonly compile?: (text: string) => unknown;
  /** Further values by name, which are few. */
  readonly values?: Readonly<Record<string, string>>;
  /** Default 200. */
  readonly status?: number;
}

interface Loaded {
  readonly encode: (wanted: Encoding) => Promise<{ readonly encoding: Encoding; readonly bytes: Buffer }>;
  readonly headers: Readonly<Record<string, string>>;
  readonly etag: string;
}

/**
 * Serves files under fixed paths, so that no other file is reachable, and documents. They are read and
 * compressed on first use and kept, since they change only with the program. Browsers keep files too and ask
 * whether they have changed.
 */
export function createStaticFiles(files: ReadonlyMap<string, StaticFile>) {
  const cache = new Map<string, Promise<Loaded>>();

  function loadOnce(key: string, load: () => Promise<Loaded>): Promise<Loaded> {
    const known = cache.get(key);
    if (known !== undefined) return known;
    const loading = load();
    cache.set(key, loading);
    // A machine may be short of file handles for a moment.
    loading.catch(() => cache.delete(key));
    return loading;
  }

  async function respond(response: ServerResponse, status: number, file: Loaded): Promise<void> {
    const { headers: asked } = response.req;
    const { encoding, bytes } = await file.encode(encodingFor(response.req));
    const etag = `"${file.etag}-${encoding}"`;
    const headers = {
      ...safeHeaders,
      ...file.headers,
      ...(encoding === "identity" ? {} : { "Content-Encoding": encoding }),
      ETag: etag,
    };
    if (status === 200 && asked["if-none-match"] === etag) response.writeHead(304, headers).end();
    else send(response, status, bytes, headers);
  }

  return {
    /** Resolves to false, without a response, when there is no such file. */
    async sendFile(response: ServerResponse, path: string): Promise<boolean> {
      const file = files.get(path);
      if (file === undefined) return false;
      const loaded = loadOnce(path, async () =>
        toLoaded(await readFile(file.url), {
          "Content-Type": mediaTypes[extname(file.url.pathname)] ?? "text/javascript; charset=utf-8",
          "Cache-Control": "no-cache",
          Vary: "Accept-Encoding",
          ...file.headers,
        }),
      );
      await respond(response, 200, await loaded);
      return true;
    },

    /** Sends a document in the language of the browser. */
    async sendDocument(response: ServerResponse, document: DocumentToSend): Promise<void> {
      const { url, headers, values, status = 200 } = document;
      const key = `${url.pathname} ${currentLanguage()} ${JSON.stringify(values)}`;
      const loaded = loadOnce(key, async () =>
        toLoaded(fill(await readFile(url, "utf8"), document), {
          "Content-Type": "text/html; charset=utf-8",
          "Cache-Control": "no-store",
          Vary: "Accept-Encoding, Accept-Language",
          ...headers,
        }),
      );
      await respond(response, status, await loaded);
    },
  };
}

function toLoaded(bytes: Buffer, headers: Loaded["headers"]): Loaded {
  const encoded = new Map<Encoding, Promise<Buffer>>();
  return {
    headers,
    etag: createHash("sha256").update(bytes).digest("base64url").slice(0, 22),
    async encode(wanted) {
      if (wanted === "identity" || bytes.length < minBytes) return { encoding: "identity", bytes };
      const compressing = encoded.get(wanted) ?? compress(bytes, wanted);
      encoded.set(wanted, compressing);
      return { encoding: wanted, bytes: await compressing };
    },
  };
}

/** Compresses outside of the event loop. */
function compress(bytes: Buffer, encoding: "br" | "gzip"): Promise<Buffer> {
  if (encoding === "gzip") return toGzip(bytes);
  const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT } = constants;
  return toBrotli(bytes, {
    params: { [BROTLI_PARAM_QUALITY]: brotliQuality, [BROTLI_PARAM_SIZE_HINT]: bytes.length },
  });
}

function fill(template: string, { importMap, uses, compile, values: given }: DocumentToSend): Buffer {
  const language = currentLanguage();
  const messages = Object.fromEntries(
    Object.entries({ ...messagesOf("en"), ...messagesOf(language) }).filter(([key]) => uses(key)),
  );
  const forScripts = Object.fromEntries(
    Object.entries(messages).map(([key, text]) => [key, compile?.(text) ?? text]),
  );
  // A data block is never run, and an escaped "<" keeps it from ending early.
  const words = JSON.stringify({ language, messages: forScripts }).replaceAll("<", "\\u003c");
  const values: Readonly<Record<string, string>> = { ...messages, ...given, language, words };
  const filled = template
    .replace(/(?<!\s)\s*\{\{import-map\}\}\s*/, () => importMap)
    .replaceAll(/\{\{([\w.-]+)\}\}/g, (_, key: string) => values[key] ?? "");
  return Buffer.from(filled);
}

/**
 * Returns the policy of a document that runs its own scripts and the inline import map, by its hash, and that
 * loads nothing from other origins. `further` directives replace the ones with their names.
 */
export function documentPolicy(importMap: string, further: Readonly<Record<string, string>>): string {
  const hash = createHash("sha256").update(importMap).digest("base64");
  const directives: Readonly<Record<string, string>> = {
    "default-src": "'none'",
    "script-src": `'self' 'sha256-${hash}'`,
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    ...further,
  };
  return Object.entries(directives)
    .map(([name, value]) => `${name} ${value}`)
    .join("; ");
}
