import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { hostname } from "node:os";
import { ParleyError } from "../../core/errors.ts";

/** A header that every state-changing request must have: forms and images of other sites cannot set it. */
const pageHeader = "x-parley";

/** Why a request was refused. `message` is for the person who runs the page. */
export interface Refusal {
  readonly status: 403 | 421;
  readonly code: "wrong-host" | "wrong-origin";
  readonly message: string;
}

/** Whether a host name or address is a loopback one, reachable from this machine only. */
function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "").toLowerCase();
  return bare === "localhost" || bare === "::1" || /^127(\.\d{1,3}){3}$/.test(bare);
}

/**
 * Requires a password when the page is reachable from other machines, since everyone who opens it can spend money on
 * the gateway.
 * @throws ParleyError `config` when `host` is not a loopback address and there is no password
 */
export function checkBind(host: string, password: string | undefined): void {
  if (isLoopback(host) || (password !== undefined && password !== "")) return;
  throw new ParleyError(
    "config",
    `HOST=${host} lets other machines reach the page, which has no password: set PAGE_PASSWORD, or HOST=127.0.0.1`,
  );
}

/**
 * Protects against DNS rebinding (the Host header must be one of ours) and cross-site request forgery (Origin,
 * Sec-Fetch-Site, and a custom header that forces a preflight, which is never granted).
 * @param bind the address the server listens on; the port is checked only for a loopback address, since others may be
 *   behind a port mapping
 * @param publicHosts further allowed Host values, with port unless it is the scheme's default
 */
export function createGuard(bind: string, publicHosts: readonly string[]) {
  const allowedHosts = new Set(publicHosts.map((host) => host.toLowerCase()));

  function isOwnHost(header: string, localPort: number | undefined): boolean {
    if (allowedHosts.has(header)) return true;
    const match = /^(\[[0-9a-f:]+\]|[^:]+)(?::(\d+))?$/.exec(header);
    const name = match?.[1];
    if (name === undefined) return false;
    if (isLoopback(bind)) return isLoopbackName(name, bind) && Number(match?.[2] ?? 80) === localPort;
    return (
      isLoopbackName(name, bind) ||
      isIP(name.replace(/^\[|\]$/g, "")) !== 0 ||
      name === hostname().toLowerCase()
    );
  }

  return {
    /** `undefined`: the request is allowed. */
    refusal(request: IncomingMessage): Refusal | undefined {
      const host = request.headers.host?.toLowerCase();
      if (host === undefined || !isOwnHost(host, request.socket.localPort)) {
        return {
          status: 421,
          code: "wrong-host",
          message: "This page is served under its own address only. PAGE_HOSTS allows further names.",
        };
      }
      if (isNavigation(request) || isFromPage(request, host)) return undefined;
      return {
        status: 403,
        code: "wrong-origin",
        message: "Only the page itself may do this. The request came from another origin.",
      };
    },
  };
}

function isLoopbackName(name: string, bind: string): boolean {
  return name === "localhost" || name === "127.0.0.1" || name === "[::1]" || name === bind.toLowerCase();
}

/** A navigation to the page or a request for a static file. Other sites may link to them and learn nothing by it. */
function isNavigation(request: IncomingMessage): boolean {
  const isRead = request.method === "GET" || request.method === "HEAD";
  return isRead && !(request.url ?? "").startsWith("/api/");
}

function isFromPage(request: IncomingMessage, host: string): boolean {
  const site = request.headers["sec-fetch-site"];
  const origin = request.headers.origin;
  if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`) return false;
  if (request.method === "GET" || request.method === "HEAD") {
    return site === undefined || site === "same-origin" || site === "none";
  }
  if (site !== undefined && site !== "same-origin") return false;
  return request.headers[pageHeader] !== undefined;
}
