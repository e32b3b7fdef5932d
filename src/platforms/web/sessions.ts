import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { LRUCache } from "lru-cache";
import { createLoginDelays } from "../../support/login-delays.ts";

const cookieName = "parley_session";
const sessionMs = 30 * 24 * 3_600_000;
const maxSessions = 10_000;
/** The limit of one account. Its next login ends the session that was used least recently. */
const maxSessionsOfAccount = 50;
/** The limit of the page's password from one address, which may be that of a whole office. */
const maxSessionsOfAddress = 500;
/** The key of the session that everybody has on a page that needs no login. */
export const openSession = "local";

/** The account of a session, and when its password was set. */
export interface SessionHolder {
  readonly accountId: string;
  readonly changedAt: number;
}

interface Session {
  readonly expiresAt: number;
  /** Absent where somebody logged in with the page's password. */
  readonly holder: SessionHolder | undefined;
  /** The account or address that the session counts for. */
  readonly countedFor: string;
  readonly ended: AbortController;
}

/** The result of a login. `cookie` is a complete Set-Cookie value. */
export type Login =
  | { readonly kind: "logged-in"; readonly cookie: string }
  | { readonly kind: "wrong" }
  | { readonly kind: "limited"; readonly retryAfterMs: number };

/**
 * Manages logins of the page. Sessions last 30 days and are only in memory, so people log in again after a
 * restart. Wrong passwords are delayed by address, see {@link createLoginDelays}. Without a password, every
 * request without a session of its own counts as logged in, in one session. Past their limit, an account's
 * logins end its own sessions.
 * @param password opens the page for everybody who has it
 * @param addressOf the address that failures count for
 */
export function createSessions(
  password: string | undefined,
  addressOf: (request: IncomingMessage) => string,
  now: () => number = () => performance.now(),
) {
  /** The sessions by token hash. */
  const sessions = new LRUCache<string, Session>({
    // The size is limited rather than the count, because `max` would preallocate.
    maxSize: maxSessions,
    sizeCalculation: () => 1,
    dispose: ({ ended }) => ended.abort(),
  });
  const delays = createLoginDelays(now);
  let open = new AbortController();

  /** Ends the sessions that were used least recently, so that one more is within the limit. */
  function makeRoom(countedFor: string, max: number): void {
    const own = [...sessions.entries()].filter(([, session]) => session.countedFor === countedFor);
    for (const [key] of own.slice(max - 1)) sessions.delete(key);
  }

  function begin(request: IncomingMessage, holder?: SessionHolder): Extract<Login, { kind: "logged-in" }> {
    const token = randomBytes(32).toString("base64url");
    const countedFor = holder === undefined ? `address ${addressOf(request)}` : `account ${holder.accountId}`;
    makeRoom(countedFor, holder === undefined ? maxSessionsOfAddress : maxSessionsOfAccount);
    const session = { expiresAt: now() + sessionMs, holder, countedFor, ended: new AbortController() };
    sessions.set(digest(token).toString("hex"), session);
    const isSecure = (request.headers.origin ?? "").startsWith("https://");
    return { kind: "logged-in", cookie: cookie(token, sessionMs / 1000) + (isSecure ? "; Secure" : "") };
  }

  return {
    /** Returns the key of the request's session, or `undefined` without a valid session cookie. */
    sessionOf(request: IncomingMessage): string | undefined {
      const token = cookieOf(request, cookieName);
      const key = token === undefined ? "" : digest(token).toString("hex");
      const session = sessions.get(key);
      if (session !== undefined && session.expiresAt > now()) return key;
      return password === undefined ? openSession : undefined;
    },

    /** Returns the account of a session, or `undefined` where it has none. */
    holderOf: (key: string): SessionHolder | undefined => sessions.get(key)?.holder,

    /** Returns a signal that aborts when the session ends. */
    signalOf: (key: string): AbortSignal => (sessions.get(key)?.ended ?? open).signal,

    end(key: string): void {
      if (key === openSession) {
        open.abort();
        open = new AbortController();
      } else sessions.delete(key);
    },

    /** Lists all sessions of accounts. */
    held: (): readonly (readonly [string, SessionHolder])[] =>
      [...sessions.entries()].flatMap(([key, { holder }]) =>
        holder === undefined ? [] : [[key, holder] as const],
      ),

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
      return begin(request);
    },

    /**
     * Starts a session of the account that `check` finds, or returns "wrong" where it finds none. During a
     * delay `check` is not called. An attempt counts as failed until it is known to be right, so that many at
     * once are delayed too.
     * @throws what `check` throws
     */
    async logInAs(request: IncomingMessage, check: () => Promise<SessionHolder | undefined>): Promise<Login> {
      const address = addressOf(request);
      const wait = delays.waitMs(address);
      if (wait > 0) return { kind: "limited", retryAfterMs: wait };
      const takeBack = delays.failed(address);
      const holder = await check();
      if (holder === undefined) return { kind: "wrong" };
      takeBack();
      return begin(request, holder);
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
