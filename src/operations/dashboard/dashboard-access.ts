import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { createLoginDelays } from "../../support/login-delays.ts";
import { isLoopback } from "../../support/loopback.ts";

/** Whether a request may see the dashboard. `wrong`: it gave a password that is not right. */
export type Admission =
  | { readonly kind: "admitted" }
  /** There is a password, and the request has none or another one. */
  | { readonly kind: "password-needed" }
  /** No password is set, and the request is not from this machine. */
  | { readonly kind: "closed" }
  | { readonly kind: "limited"; readonly retryAfterMs: number };

export interface DashboardAccessOptions {
  /** ADMIN_PASSWORD. Default: only this machine is admitted. */
  readonly password: string | undefined;
  /** The address that wrong passwords count for. */
  readonly addressOf: (request: IncomingMessage) => string;
  /** Whether the request is of somebody who is logged in elsewhere and is an admin. Default: nobody is. */
  readonly isAdmin?: (request: IncomingMessage) => Promise<boolean>;
  /** Milliseconds on a steady clock. Default: `performance.now`. */
  readonly now?: () => number;
}

/**
 * Admits admins, and those with the password, by HTTP Basic authentication with any name; where none is set, requests
 * from this machine. Where one is set, they need it too: a proxy on this machine need not say whom it serves. Wrong
 * passwords are delayed by address, as on the page.
 */
export function createDashboardAccess({ password, addressOf, isAdmin, now }: DashboardAccessOptions) {
  const delays = createLoginDelays(now);
  return async (request: IncomingMessage): Promise<Admission> => {
    if ((await isAdmin?.(request)) === true) return { kind: "admitted" };
    if (password === undefined) return { kind: isFromThisMachine(request) ? "admitted" : "closed" };
    const given = passwordOf(request);
    if (given === undefined) return { kind: "password-needed" };
    const address = addressOf(request);
    const retryAfterMs = delays.waitMs(address);
    if (retryAfterMs > 0) return { kind: "limited", retryAfterMs };
    // Hashes have the same length, so the comparison takes constant time.
    if (!timingSafeEqual(digest(given), digest(password))) {
      delays.failed(address);
      return { kind: "password-needed" };
    }
    return { kind: "admitted" };
  };
}

const forwardedHeaders = ["x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via"];

/**
 * Not what a proxy on this machine passes on for others: it names another host, or says for whom. The HTTP server has
 * checked that the Host header is one of this server's names.
 */
function isFromThisMachine({ socket, headers }: IncomingMessage): boolean {
  const address = (socket.remoteAddress ?? "").replace(/^::ffff:/i, "");
  const name = (headers.host ?? "").replace(/:\d+$/, "");
  return isLoopback(address) && isLoopback(name) && forwardedHeaders.every((each) => !(each in headers));
}

function passwordOf({ headers }: IncomingMessage): string | undefined {
  const [, encoded] = /^Basic ([\w+/=-]{1,4096})$/i.exec(headers.authorization ?? "") ?? [];
  if (encoded === undefined) return undefined;
  const login = Buffer.from(encoded, "base64").toString("utf8");
  const mark = login.indexOf(":");
  return mark === -1 ? undefined : login.slice(mark + 1);
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
