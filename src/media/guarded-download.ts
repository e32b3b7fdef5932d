import { lookup as systemLookup, type LookupAddress } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import type { buildConnector, Dispatcher } from "undici";
import { ParleyError, isParleyError } from "../core/errors.ts";
import { isPublicAddress } from "../core/settings.ts";
import { createByteCollector } from "../support/byte-collector.ts";

/** Which hosts a {@link Downloader} may connect to. */
interface DownloaderOptions {
  readonly trusted: readonly TrustedHost[];
  /** Whether public https addresses of other hosts are allowed. */
  readonly allowPublicHttps: boolean;
  /** Resolves names of other hosts. The default is the system resolver. */
  readonly lookup?: LookupAll;
  /** Opens sockets to other hosts, inside the guard. The default is undici's connector. */
  readonly connect?: Connect;
}

interface DownloadLimits {
  readonly maxBytes: number;
  /** Default 3. */
  readonly maxRedirects?: number;
  /** The limit of the whole download, with redirects. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

interface Downloaded {
  readonly bytes: Uint8Array;
  /** The content type of the response, in lower case and without parameters. */
  readonly mediaType: string | undefined;
}

/** Downloads files only from allowed addresses. */
export interface Downloader {
  /**
   * @throws ParleyError `attachment-blocked` (a forbidden address, even after a redirect),
   *   `attachment-too-large`, `attachment-gone` (403, 404, 410), `attachment-unreadable` (all else, even a
   *   timeout), or the signal's reason
   */
  download(url: string, limits: DownloadLimits): Promise<Downloaded>;
  /** Aborts running downloads and closes all sockets. */
  close(): Promise<void>;
}

interface Agents {
  readonly trusted: Dispatcher;
  readonly guarded: Dispatcher;
}

/** Redirect bodies are read up to this size, so that the connection can be reused. */
const maxRedirectBodyBytes = 16_384;

/**
 * Downloads over https from trusted hosts and, where allowed, from public addresses. Each redirect is checked
 * like the first address. A host's Authorization is sent only to that host.
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
          ...authorizationFor(url, host),
        },
        signal,
        headersTimeout: limits.timeoutMs,
        bodyTimeout: limits.timeoutMs,
        // What is read ahead may be pieces of one byte, which take more than a hundred each.
        highWaterMark: 4096,
      });
      const next = redirectTarget(response, url);
      if (next === undefined) return response;
      await response.body.dump({ limit: maxRedirectBodyBytes, signal });
      if (redirects >= (limits.maxRedirects ?? 3)) throw blocked("too many redirects");
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
        if (deadline.signal.aborted) throw unreadable("download timed out", { cause: error });
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

/** Loads undici with the first download. The global dispatcher is left alone, since other code uses it. */
async function openAgents(options: DownloaderOptions): Promise<Agents> {
  const { buildConnector, Pool } = await import("undici");
  const { createDispatcher } = await import("../support/proxy.ts");
  const lookup = createGuardedLookup(options.lookup);
  const connect = options.connect ?? buildConnector({ lookup, allowH2: false });
  return {
    trusted: createDispatcher({ allowH2: false }),
    guarded: createDispatcher(
      { connect: createGuardedConnect(connect), allowH2: false },
      {
        clientFactory(proxy, settings) {
          const pool = new Pool(proxy.origin, settings);
          const connect = pool.connect.bind(pool);
          return Object.assign(pool, {
            connect: async (tunnel: Dispatcher.ConnectOptions) =>
              await connect({ ...tunnel, ...(await toCheckedTarget(tunnel, lookup)) }),
          });
        },
      },
    ),
  };
}

/**
 * Names the target of a tunnel by a public address instead of its name, so that a proxy opens what was
 * checked here and resolves nothing itself.
 * @throws ParleyError `attachment-blocked`
 */
async function toCheckedTarget(
  { path, headers }: Dispatcher.ConnectOptions,
  lookup: LookupFunction,
): Promise<Pick<Dispatcher.ConnectOptions, "path" | "headers">> {
  const { hostname, port } = new URL(`https://${path}`);
  const host = hostname.replaceAll(/^\[|\]$/g, "");
  if (isIP(host) !== 0 && !isPublicAddress(host)) throw blockedAddresses();
  const address =
    isIP(host) === 0
      ? await new Promise<string>((resolve, reject) => {
          lookup(host, {}, (error, found) => {
            if (error === null && typeof found === "string") resolve(found);
            else reject(error ?? blockedAddresses());
          });
        })
      : host;
  const target = `${isIP(address) === 6 ? `[${address}]` : address}:${port === "" ? "443" : port}`;
  return { path: target, headers: { ...(headers as Record<string, string>), host: target } };
}

function parseUrl(address: string): URL {
  if (!URL.canParse(address)) throw blocked("invalid URL");
  return new URL(address);
}

function assertAllowed(url: URL, host: TrustedHost | undefined, allowPublicHttps: boolean): void {
  if (url.username !== "" || url.password !== "") throw blocked("user info in the URL");
  const isPlain = url.protocol === "http:" && host?.allowHttp === true;
  if (url.protocol !== "https:" && !isPlain) throw blocked("only https", url);
  if (host === undefined && !allowPublicHttps) throw blocked("host not trusted", url);
}

function authorizationFor(url: URL, host: TrustedHost | undefined): { readonly authorization?: string } {
  const isMeant = host?.origin === undefined || host.origin === url.origin;
  return host?.authorization !== undefined && isMeant ? { authorization: host.authorization } : {};
}

/** Returns the target of a redirect, or `undefined` for other responses. */
function redirectTarget(response: Dispatcher.ResponseData, from: URL): URL | undefined {
  const location = response.headers["location"];
  if (![301, 302, 303, 307, 308].includes(response.statusCode) || typeof location !== "string")
    return undefined;
  if (!URL.canParse(location, from.href)) throw blocked("redirect to an invalid URL");
  return new URL(location, from.href);
}

async function readBody(response: Dispatcher.ResponseData, maxBytes: number): Promise<Uint8Array> {
  const { statusCode, headers, body } = response;
  // The body is destroyed on every path. Its error is then of no interest.
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
    const content = createByteCollector(maxBytes);
    for await (const chunk of body as AsyncIterable<Uint8Array>)
      if (!content.add(chunk)) throw tooLarge(maxBytes);
    return content.take();
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
  // An error of the guard arrives as the cause of the socket's error.
  if (error instanceof Error && isParleyError(error.cause)) return error.cause;
  return unreadable("download interrupted", { cause: error });
}

function blocked(reason: string, url?: URL): ParleyError {
  const detail = url === undefined ? {} : { host: url.host };
  return new ParleyError("attachment-blocked", `download refused: ${reason}`, { detail });
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

/** A host whose files are always allowed: a platform's, or the configured gateway's. */
export interface TrustedHost {
  /** Either exact (`cdn.example.com`, `127.0.0.1:8787`), or `*.slack.com` for its subdomains and itself. */
  readonly host: string;
  /** Whether http is allowed, e.g. for a server on this machine. Default false. */
  readonly allowHttp?: boolean;
  /** The value of the Authorization header, which is sent only to this host. */
  readonly authorization?: string;
  /** The only origin of the host to which it is sent. By default any that may be opened. */
  readonly origin?: string;
}

const defaultPorts: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

/** Returns the entry for a URL, if there is one. An entry without port means the default port. */
export function trustedHostOf(url: URL, trusted: readonly TrustedHost[]): TrustedHost | undefined {
  return trusted.find((entry) => covers(entry.host.toLowerCase(), url));
}

function covers(host: string, url: URL): boolean {
  const defaultPort = defaultPorts[url.protocol];
  const [, name = host, port = defaultPort] = /^(.*?)(?::(\d+))?$/.exec(host) ?? [];
  if ((url.port === "" ? defaultPort : url.port) !== port) return false;
  if (!name.startsWith("*.")) return url.hostname === name;
  return url.hostname === name.slice(2) || url.hostname.endsWith(name.slice(1));
}

/** Opens a socket for undici. */
export type Connect = buildConnector.connector;

/** Resolves a name to all its addresses, like `dns.lookup` with `all`. */
export type LookupAll = (
  hostname: string,
  callback: (error: Error | null, addresses: readonly LookupAddress[]) => void,
) => void;

/**
 * Creates a connector that reaches only public addresses. An IP address in the URL is checked before
 * connecting. The address of the connected socket is checked before anything is sent, since a name may
 * resolve differently by then (DNS rebinding). Failures are ParleyErrors `attachment-blocked`.
 */
export function createGuardedConnect(connect: Connect): Connect {
  return (options, callback) => {
    const host = options.hostname.replace(/^\[|\]$/g, "");
    if (isIP(host) !== 0 && !isPublicAddress(host)) {
      callback(blockedAddresses(), null);
      return;
    }
    connect(options, (...[error, socket]) => {
      if (error !== null) {
        callback(error, null);
      } else if (socket.remoteAddress === undefined || !isPublicAddress(socket.remoteAddress)) {
        socket.destroy();
        callback(blockedAddresses(), null);
      } else {
        callback(null, socket);
      }
    });
  };
}

/** Creates a lookup for sockets that returns only public addresses, and fails when there are none. */
export function createGuardedLookup(lookupAll: LookupAll = allAddresses): LookupFunction {
  return (hostname, options, callback) => {
    lookupAll(hostname, (error, addresses) => {
      const [first, ...others] = addresses.filter(({ address }) => isPublicAddress(address));
      if (error !== null) callback(error, []);
      else if (first === undefined) callback(blockedAddresses(), []);
      else if (options.all === true) callback(null, [first, ...others]);
      else callback(null, first.address, first.family);
    });
  };
}

const allAddresses: LookupAll = (hostname, callback) => {
  systemLookup(hostname, { all: true }, (error, addresses) => callback(error, addresses ?? []));
};

function blockedAddresses(): ParleyError {
  return new ParleyError("attachment-blocked", "address is not public");
}
