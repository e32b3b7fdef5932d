import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { LRUCache } from "lru-cache";
import { createLoginDelays } from "./login-delays.ts";

const cookieName = "parley_session";
const sessionMs = 30 * 24 * 3_600_000;
const maxSessions = 1000;

/** Result of a login. `cookie` is a complete Set-Cookie value. */
export type Login =
  | { readonly kind: "logged-in"; readonly cookie: string }
  | { readonly kind: "wrong" }
  | { readonly kind: "limited"; readonly retryAfterMs: number };

/**
 * Password login of the page. Sessions last 30 days and are in memory only: after a restart people log in again.
 * Wrong passwords are delayed by address, see {@link createLoginDelays}. Without a password every request counts as
 * logged in, in one session.
 * @param addressOf the address that failures count for
 */
export function createSessions(
  password: string | undefined,
  addressOf: (request: IncomingMessage) => string,
  now: () => number = () => performance.now(),
) {
  /** Token hash → expiry. */
  const sessions = new LRUCache<string, number>({ max: maxSessions });
  const delays = createLoginDelays(now);

  return {
    /** Key of the request's session, the same for all its requests. `undefined`: it has no valid session cookie. */
    sessionOf(request: IncomingMessage): string | undefined {
      if (password === undefined) return "local";
      const token = cookieOf(request, cookieName);
      if (token === undefined) return undefined;
      const key = digest(token).toString("hex");
      const expiresAt = sessions.get(key);
      return expiresAt !== undefined && expiresAt > now() ? key : undefined;
    },

    /** Checks a password and starts a session. During a delay the password is not looked at. */
    logIn(request: IncomingMessage, given: string): Login {
      const address = addressOf(request);
      const wait = delays.waitMs(address);
      if (wait > 0) return { kind: "limited", retryAfterMs: wait };
      // Hashes have the same length, so the comparison takes constant time.
      if (password === undefined || !timingSafeEqual(digest(given), digest(password))) {
        delays.failed(address);
        return { kind: "wrong" };
      }
      delays.succeeded(address);
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
