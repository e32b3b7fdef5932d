import type { IncomingMessage } from "node:http";
import { ApiError } from "./api-error.ts";

/**
 * Refuses requests that a browser sent for another web site. Such a request needs no preflight when it is a form, so
 * that every site could drive a gateway without keys. There are no CORS headers: no site may read an answer.
 * @throws ApiError 403 `origin_not_allowed` for another `Origin`, or a `Sec-Fetch-Site` of another site
 */
export function refuseForeignOrigin({ headers }: IncomingMessage): void {
  const { origin, host } = headers;
  const site = headers["sec-fetch-site"];
  const isForeignSite = site !== undefined && site !== "same-origin" && site !== "none";
  const isForeignOrigin = origin !== undefined && (host === undefined || !isOriginOf(origin, host));
  if (!isForeignSite && !isForeignOrigin) return;
  throw new ApiError(403, "permission_error", "Requests of other web sites are refused.", {
    code: "origin_not_allowed",
  });
}

function isOriginOf(origin: string, host: string): boolean {
  const own = host.toLowerCase();
  return origin.toLowerCase() === `http://${own}` || origin.toLowerCase() === `https://${own}`;
}
