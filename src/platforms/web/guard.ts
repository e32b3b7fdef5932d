import type { IncomingMessage } from "node:http";
import { ParleyError } from "../../core/errors.ts";
import { isLoopback } from "../../support/loopback.ts";

/** A header that every state-changing request must have: forms and images of other sites cannot set it. */
const pageHeader = "x-parley";

/** Who may open the page. `auto`: accounts where there are any, and everybody with the password where one is set. */
export type PageLoginMode = "auto" | "accounts";

/**
 * Requires a password or accounts when the page is reachable from other machines, since everyone who opens it can spend
 * money on the gateway. `undefined`: nothing is wrong.
 */
export function bindProblem(
  host: string,
  password: string | undefined,
  mode: PageLoginMode = "auto",
): string | undefined {
  if (isLoopback(host) || mode === "accounts" || (password !== undefined && password !== ""))
    return undefined;
  return `HOST=${host} lets other machines reach the page, which has no password: set PAGE_PASSWORD, or PAGE_LOGIN=accounts, or HOST=127.0.0.1`;
}

/** @throws ParleyError `config` for a {@link bindProblem} */
export function checkBind(host: string, password: string | undefined, mode?: PageLoginMode): void {
  const problem = bindProblem(host, password, mode);
  if (problem !== undefined) throw new ParleyError("config", problem);
}

/**
 * Protects against cross-site request forgery: Origin, Sec-Fetch-Site, and a custom header that forces a preflight,
 * which is never granted. The HTTP server has checked the Host header.
 * @param path as the HTTP server parsed it
 */
export function isForeign(request: IncomingMessage, path: string): boolean {
  return !isNavigation(request, path) && !isFromPage(request);
}

/** A navigation to the page or a request for a static file. Other sites may link to them and learn nothing by it. */
function isNavigation(request: IncomingMessage, path: string): boolean {
  const isRead = request.method === "GET" || request.method === "HEAD";
  return isRead && !path.startsWith("/api/");
}

function isFromPage(request: IncomingMessage): boolean {
  const host = (request.headers.host ?? "").toLowerCase();
  const site = request.headers["sec-fetch-site"];
  const origin = request.headers.origin;
  if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`) return false;
  if (request.method === "GET" || request.method === "HEAD") {
    return site === undefined || site === "same-origin" || site === "none";
  }
  if (site !== undefined && site !== "same-origin") return false;
  return request.headers[pageHeader] !== undefined;
}
