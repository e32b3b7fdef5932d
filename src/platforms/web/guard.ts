import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { hostname } from "node:os";
import { ParleyError } from "../../core/errors.ts";

/** The header that every change must carry: a form or an image of another site cannot set it. */
const pageHeader = "x-parley";

/** Why a request was turned away. The words are for the person who runs the page. */
export interface Refusal {
  readonly status: 403 | 421;
  readonly code: "wrong-host" | "wrong-origin";
  readonly message: string;
}

/** Whether an address is reachable from this machine only. */
function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "").toLowerCase();
  return bare === "localhost" || bare === "::1" || /^127(\.\d{1,3}){3}$/.test(bare);
}

/**
 * Refuses to show the page to a network without a password: whoever reaches it can spend money on the gateway.
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
 * Tells requests of the page itself from those another site makes a browser send.
 *
 * Host: a rebound name resolves here but is not one of ours. Origin and Sec-Fetch-Site: a foreign page's request
 * says where it comes from. The header of its own forces a preflight, which is never granted.
 * @param bind the address listened on; only a loopback one pins the port, others may stand behind a mapping
 * @param publicHosts further names the page is reached by, with port where it is not the scheme's own
 */
export function createGuard(bind: string, publicHosts: readonly string[]) {
  const named = new Set(publicHosts.map((host) => host.toLowerCase()));

  function isOwnHost(header: string, localPort: number | undefined): boolean {
    if (named.has(header)) return true;
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
    refusal(request: IncomingMessage): Refusal | undefined {
      const host = request.headers.host?.toLowerCase();
      if (host === undefined || !isOwnHost(host, request.socket.localPort)) {
        return {
          status: 421,
          code: "wrong-host",
          message:
            "This page answers to its own address only. A further name can be allowed with PAGE_HOSTS.",
        };
      }
      if (isNavigation(request) || isFromPage(request, host)) return undefined;
      return {
        status: 403,
        code: "wrong-origin",
        message: "Only the page itself may do this; the request came from somewhere else.",
      };
    },
  };
}

function isLoopbackName(name: string, bind: string): boolean {
  return name === "localhost" || name === "127.0.0.1" || name === "[::1]" || name === bind.toLowerCase();
}

/** Opening the page or one of its files: other sites may link to it, and learn nothing from it. */
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
