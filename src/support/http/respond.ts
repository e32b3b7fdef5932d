import type { ServerResponse } from "node:http";

/** The headers of responses to browsers: no sniffing, no referrer, no use by other origins, no framing. */
export const safeHeaders: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "X-Frame-Options": "DENY",
};

/** The Content Security Policy of all but documents. Opened as one, they can load and run nothing. */
const inertPolicy = "default-src 'none'; frame-ancestors 'none'; sandbox";

/** The headers of responses that are no documents and are never cached. */
export const inertHeaders: Readonly<Record<string, string>> = {
  ...safeHeaders,
  "Content-Security-Policy": inertPolicy,
  "Cache-Control": "no-store",
};

export const plainText = { "Content-Type": "text/plain; charset=utf-8" } as const;
export const jsonType = { "Content-Type": "application/json; charset=utf-8" } as const;

/** Sends a whole response with its length, to a HEAD request without the body. */
export function send(
  response: ServerResponse,
  status: number,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>>,
): void {
  response.writeHead(status, { ...headers, "Content-Length": Buffer.byteLength(body) });
  response.end(response.req.method === "HEAD" ? undefined : body);
}

/** Returns the header that asks a client to wait, in whole seconds, at least one. */
export function retryAfter(waitMs: number): { readonly "Retry-After": string } {
  return { "Retry-After": `${Math.max(1, Math.ceil(waitMs / 1000))}` };
}

/** Makes a Content-Disposition header. `name` may be anything. */
export function toDisposition(kind: "inline" | "attachment", name: string): string {
  const plain = name.replace(/[\p{Cc}/\\]/gu, "_").slice(0, 150) || "file";
  const encoded = encodeURIComponent(plain.toWellFormed()).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16)}`,
  );
  return `${kind}; filename*=UTF-8''${encoded}`;
}

/** Aborts when the client disconnects, or has the whole response. */
export function whenClosed(response: ServerResponse): AbortSignal {
  const closed = new AbortController();
  response.once("close", () => closed.abort(new Error("client disconnected")));
  return closed.signal;
}
