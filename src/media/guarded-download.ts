import { isParleyError, ParleyError } from "../core/errors.ts";
import {
  createGuardedConnect,
  createGuardedLookup,
  type Connect,
  type LookupAll,
} from "./guarded-connect.ts";
import { trustedHostOf, type TrustedHost } from "./trusted-hosts.ts";
import type { Agent, Dispatcher } from "undici";

export interface DownloaderOptions {
  readonly trusted: readonly TrustedHost[];
  /** Whether files may also come from strangers' public https addresses. */
  readonly allowPublicHttps: boolean;
  /** Default 3. */
  readonly maxRedirects?: number;
  /** How names of strangers are resolved. Default: as the system does. */
  readonly lookup?: LookupAll;
  /** How sockets to strangers are opened; the guard stays around it. Default: undici's own. */
  readonly connect?: Connect;
}

interface DownloadLimits {
  readonly maxBytes: number;
  /** For the whole download, redirects included. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

interface Downloaded {
  readonly bytes: Uint8Array;
  /** What the server claims, in lower case and without parameters. */
  readonly mediaType: string | undefined;
}

/** Fetches files without being led astray. */
export interface Downloader {
  /**
   * @throws ParleyError `attachment-blocked` (an address that is not to be fetched, here or behind a redirect),
   * `attachment-too-large`, `attachment-gone` (403, 404, 410), `attachment-unreadable` (everything else, the
   * deadline included); the signal's reason when it aborts
   */
  download(url: string, limits: DownloadLimits): Promise<Downloaded>;
  /** Ends what is running and closes all sockets. */
  close(): Promise<void>;
}

interface Agents {
  readonly trusted: Agent;
  readonly guarded: Agent;
}

/** Bodies of redirects are read so far to keep the connection, and no farther. */
const maxRedirectBodyBytes = 16_384;

/**
 * Downloads over https from trusted hosts and, where allowed, from public addresses; redirects are followed by
 * hand, each one checked like the first. An Authorization goes to the host it is for and to no other.
 */
export function createDownloader(options: DownloaderOptions): Downloader {
  let opened: Promise<Agents> | undefined;
  const agents = () => (opened ??= openAgents(options));

  async function open(address: string, limits: DownloadLimits, signal: AbortSignal) {
    let url = parseUrl(address);
    for (let redirects = 0; ; redirects += 1) {
      const host = trustedHostOf(url, options.trusted);
      assertAllowed(url, host, options.allowPublicHttps);
      const { trusted, guarded } = await agents();
      const response = await (host === undefined ? guarded : trusted).request({
        origin: url.origin,
        path: url.pathname + url.search,
        method: "GET",
        headers: {
          "accept-encoding": "identity",
          ...(host?.authorization === undefined ? {} : { authorization: host.authorization }),
        },
        signal,
        headersTimeout: limits.timeoutMs,
        bodyTimeout: limits.timeoutMs,
      });
      const next = redirectTarget(response, url);
      if (next === undefined) return response;
      await response.body.dump({ limit: maxRedirectBodyBytes, signal });
      if (redirects >= (options.maxRedirects ?? 3)) throw blocked("too many redirects");
      url = next;
    }
  }

  return {
    async download(url, limits) {
      limits.signal.throwIfAborted();
      const deadline = new AbortController();
      const timer = setTimeout(() => deadline.abort(), limits.timeoutMs);
      const signal = AbortSignal.any([limits.signal, deadline.signal]);
      try {
        const response = await open(url, limits, signal);
        return { bytes: await readBody(response, limits.maxBytes), mediaType: mediaTypeOf(response) };
      } catch (error) {
        limits.signal.throwIfAborted();
        if (deadline.signal.aborted) throw unreadable("download took too long", { cause: error });
        throw toParleyError(error);
      } finally {
        clearTimeout(timer);
      }
    },
    async close() {
      const open = await opened;
      await Promise.all([open?.trusted.destroy(), open?.guarded.destroy()]);
    },
  };
}

/** Loaded with the first download; never the process's global dispatcher, which others depend on. */
async function openAgents(options: DownloaderOptions): Promise<Agents> {
  const { Agent, buildConnector } = await import("undici");
  const lookup = createGuardedLookup(options.lookup);
  const connect = options.connect ?? buildConnector({ lookup, allowH2: false });
  return {
    trusted: new Agent({ allowH2: false }),
    guarded: new Agent({ connect: createGuardedConnect(connect), allowH2: false }),
  };
}

function parseUrl(address: string): URL {
  if (!URL.canParse(address)) throw blocked("no address");
  return new URL(address);
}

function assertAllowed(url: URL, host: TrustedHost | undefined, allowPublicHttps: boolean): void {
  if (url.username !== "" || url.password !== "") throw blocked("user info in the address");
  const isPlain = url.protocol === "http:" && host?.allowHttp === true;
  if (url.protocol !== "https:" && !isPlain) throw blocked("only https");
  if (host === undefined && !allowPublicHttps) throw blocked("not one of the known hosts");
}

/** Where a response sends on to; `undefined`: it is the answer. */
function redirectTarget(response: Dispatcher.ResponseData, from: URL): URL | undefined {
  const location = response.headers["location"];
  if (![301, 302, 303, 307, 308].includes(response.statusCode) || typeof location !== "string")
    return undefined;
  if (!URL.canParse(location, from.href)) throw blocked("redirect to no address");
  return new URL(location, from.href);
}

async function readBody(response: Dispatcher.ResponseData, maxBytes: number): Promise<Uint8Array> {
  const { statusCode, headers, body } = response;
  // Leaving the loop or the function early must end the transfer, not let it run on unread.
  body.on("error", () => {});
  try {
    if ([403, 404, 410].includes(statusCode)) {
      throw new ParleyError("attachment-gone", `server answered ${statusCode}`, {
        detail: { status: statusCode },
      });
    }
    if (statusCode !== 200) throw unreadable(`server answered ${statusCode}`, { status: statusCode });
    const encoding = headers["content-encoding"];
    if (encoding !== undefined && encoding !== "identity") throw unreadable("server compressed the file");
    if (Number(headers["content-length"]) > maxBytes) throw tooLarge(maxBytes);
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      size += chunk.length;
      if (size > maxBytes) throw tooLarge(maxBytes);
      chunks.push(chunk);
    }
    return new Uint8Array(Buffer.concat(chunks, size));
  } finally {
    body.destroy();
  }
}

function mediaTypeOf(response: Dispatcher.ResponseData): string | undefined {
  const header = response.headers["content-type"];
  const value = (Array.isArray(header) ? header[0] : header)?.split(";")[0]?.trim().toLowerCase();
  return value === "" ? undefined : value;
}

function toParleyError(error: unknown): ParleyError {
  if (isParleyError(error)) return error;
  // The guard's own refusal arrives as the cause of what the socket reports.
  if (error instanceof Error && isParleyError(error.cause)) return error.cause;
  return unreadable("download broke off", { cause: error });
}

function blocked(reason: string): ParleyError {
  return new ParleyError("attachment-blocked", `download refused: ${reason}`);
}

function tooLarge(maxBytes: number): ParleyError {
  return new ParleyError("attachment-too-large", `download is over ${maxBytes} bytes`, {
    detail: { maxBytes },
  });
}

function unreadable(message: string, more: { status?: number; cause?: unknown } = {}): ParleyError {
  return new ParleyError("attachment-unreadable", message, {
    ...(more.status === undefined ? {} : { detail: { status: more.status } }),
    cause: more.cause,
  });
}
