import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { LRUCache } from "lru-cache";

const cookieName = "parley_session";
const sessionMs = 30 * 24 * 3_600_000;
const maxSessions = 1000;
/** Failed logins allowed within `windowMs`: for one address, and in total. */
const limits = { perAddress: 5, total: 100, windowMs: 60_000 };

/** Result of a login. `cookie` is a complete Set-Cookie value. */
export type Login =
  | { readonly kind: "logged-in"; readonly cookie: string }
  | { readonly kind: "wrong" }
  | { readonly kind: "limited"; readonly retryAfterMs: number };

/**
 * Password login of the page. Sessions last 30 days and are in memory only: after a restart people log in again.
 * Failed logins are limited to 5 a minute for one address and 100 in total. Without a password every request counts as
 * logged in.
 */
export function createSessions(password: string | undefined, now: () => number = Date.now) {
  /** Token hash → expiry. */
  const sessions = new LRUCache<string, number>({ max: maxSessions });
  /** Failed logins of the last minute, at most `limits.total`. A correct password must not count, as in a token bucket. */
  const failures: { address: string; at: number }[] = [];

  function retryAfterMs(address: string): number {
    const since = now() - limits.windowMs;
    while (failures[0] !== undefined && failures[0].at <= since) failures.shift();
    const own = failures.filter((failure) => failure.address === address);
    const first =
      own.length >= limits.perAddress ? own[0] : failures.length >= limits.total ? failures[0] : undefined;
    return first === undefined ? 0 : first.at - since;
  }

  return {
    /** Whether the request has a valid session cookie. */
    isLoggedIn(request: IncomingMessage): boolean {
      if (password === undefined) return true;
      const token = cookieOf(request, cookieName);
      if (token === undefined) return false;
      const expiresAt = sessions.get(digest(token).toString("hex"));
      return expiresAt !== undefined && expiresAt > now();
    },

    /** Checks a password and starts a session. */
    logIn(request: IncomingMessage, given: string): Login {
      const address = request.socket.remoteAddress ?? "";
      const wait = retryAfterMs(address);
      if (wait > 0) return { kind: "limited", retryAfterMs: wait };
      // Hashes have the same length, so the comparison takes constant time.
      if (password === undefined || !timingSafeEqual(digest(given), digest(password))) {
        failures.push({ address, at: now() });
        return { kind: "wrong" };
      }
      const token = randomBytes(32).toString("base64url");
      sessions.set(digest(token).toString("hex"), now() + sessionMs);
      const isSecure = (request.headers.origin ?? "").startsWith("https://");
      return { kind: "logged-in", cookie: cookie(token, sessionMs / 1000) + (isSecure ? "; Secure" : "") };
    },

    /** Ends the session. Returns the Set-Cookie value that removes its cookie. */
    logOut(request: IncomingMessage): string {
      const token = cookieOf(request, cookieName);
      if (token !== undefined) sessions.delete(digest(token).toString("hex"));
      return cookie("", 0);
    },
  };
}

function cookie(value: string, maxAgeSeconds: number): string {
  return `${cookieName}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict`;
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text, "utf8").digest();
}

function cookieOf(request: IncomingMessage, name: string): string | undefined {
  for (const pair of (request.headers.cookie ?? "").split(";")) {
    const [key, value] = pair.trim().split("=", 2);
    if (key === name) return value;
  }
  return undefined;
}
