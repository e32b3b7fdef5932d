import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

const cookieName = "parley_session";
const sessionMs = 30 * 24 * 3_600_000;
const maxSessions = 1000;
/** Wrong passwords within `windowMs`: from one address, and from all together. */
const limits = { perAddress: 5, together: 100, windowMs: 60_000 };

/** What a login came to. `cookie` is a whole Set-Cookie value. */
export type Login =
  | { readonly kind: "in"; readonly cookie: string }
  | { readonly kind: "wrong" }
  | { readonly kind: "limited"; readonly retryAfterMs: number };

/**
 * Password login of the page. Sessions are kept in memory only: a restart asks for the password again.
 * With no password everyone is in.
 */
export function createSessions(password: string | undefined, now: () => number = Date.now) {
  const sessions = new Map<string, number>();
  const failures: { address: string; at: number }[] = [];

  function retryAfterMs(address: string): number {
    const since = now() - limits.windowMs;
    while (failures[0] !== undefined && failures[0].at <= since) failures.shift();
    const own = failures.filter((failure) => failure.address === address);
    const first =
      own.length >= limits.perAddress ? own[0] : failures.length >= limits.together ? failures[0] : undefined;
    return first === undefined ? 0 : first.at - since;
  }

  return {
    isNeeded: password !== undefined,

    isIn(request: IncomingMessage): boolean {
      if (password === undefined) return true;
      const token = cookieOf(request, cookieName);
      if (token === undefined) return false;
      const until = sessions.get(digest(token).toString("hex"));
      return until !== undefined && until > now();
    },

    logIn(request: IncomingMessage, given: string): Login {
      const address = request.socket.remoteAddress ?? "";
      const wait = retryAfterMs(address);
      if (wait > 0) return { kind: "limited", retryAfterMs: wait };
      // Hashes are of one length, so the comparison takes the same time whatever was given.
      if (password === undefined || !timingSafeEqual(digest(given), digest(password))) {
        failures.push({ address, at: now() });
        return { kind: "wrong" };
      }
      const token = randomBytes(32).toString("base64url");
      const oldest = sessions.keys().next().value;
      if (sessions.size >= maxSessions && oldest !== undefined) sessions.delete(oldest);
      sessions.set(digest(token).toString("hex"), now() + sessionMs);
      const isSecure = (request.headers.origin ?? "").startsWith("https://");
      return { kind: "in", cookie: cookie(token, sessionMs / 1000) + (isSecure ? "; Secure" : "") };
    },

    /** Ends the session; the answer is the Set-Cookie value that forgets it. */
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
