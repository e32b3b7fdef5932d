import type { Clock } from "../../core/clock.ts";
import type { Records } from "../../core/storage.ts";
import { type Log, createRareLog } from "../../core/telemetry.ts";
import { isLoopback, isOfOtherSite } from "../../support/http/client-address.ts";
import { createLoginDelays, isSameSecret } from "../../support/http/login-delays.ts";
import { isRead } from "../../support/http/server.ts";
import { translate } from "../../words/translate.ts";
import { accountName, passwordLimits, type Account, type Accounts } from "./accounts/accounts.ts";
import { readBody, sendJson, sendProblem, sendTooMany } from "./http.ts";
import { sharedPerson, toAccountPerson, type PagePerson } from "./address.ts";
import { LRUCache } from "lru-cache";
import { createHash, createHmac, randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { z } from "zod";

/** Who sends a request. */
export interface LoggedIn {
  readonly person: PagePerson;
  /** Absent for the shared account. */
  readonly account?: Account;
  /** What limits count for: an account in all its browsers, or one browser. */
  readonly boundsKey: string;
  /** Aborts when the session ends. */
  readonly signal: AbortSignal;
  /** Whether there is a session that a person can end. */
  readonly canLogOut: boolean;
}

/** What the login asks for: the page's password, a name with its password, or either of them. */
type LoginForm = "password" | "account" | "either";

/** The limit of a login's body, which a stranger may send. */
const maxBytes = 4096;
const text = z.string().catch("");
const credentials = z.object({ name: text.transform((name) => name.trim().toLowerCase()), password: text });
const changedPassword = z.object({ old: text, new: text });

/** The options of {@link createPageLogin}. */
interface PageLoginOptions {
  readonly accounts: Accounts;
  /** Holds the sessions over restarts. */
  readonly records: Records;
  /** The page's password, which opens the shared account. */
  readonly password: string | undefined;
  readonly mode: PageLoginMode;
  readonly clock: Clock;
  readonly log: Log;
  /** Returns the address that wrong passwords count for. */
  readonly addressOf: (request: IncomingMessage) => string;
}

/**
 * Decides who may open the page. Where there are accounts, nobody does without a login. A page's password
 * opens the shared account beside them. It also serves login, logout and the person's own password. Failures
 * of the store throw `store-unavailable`, and then nobody is let in.
 */
export function createPageLogin(options: PageLoginOptions) {
  const { accounts, records, password, mode, addressOf, clock, log } = options;
  const sessions = createSessions(password, addressOf, { records, clock });
  const warnRarely = createRareLog(log, () => clock.monotonic());

  async function accountOf({ accountId, changedAt }: SessionHolder): Promise<Account | undefined> {
    const account = await accounts.find(accountId);
    return account?.changedAt === changedAt ? account : undefined;
  }

  async function needsAccount(): Promise<boolean> {
    return mode === "accounts" || (await accounts.hasAny());
  }

  /** @param name whom the login is of. An empty one is the page's password alone. */
  async function sendLogin(
    request: IncomingMessage,
    response: ServerResponse,
    login: Login,
    { name, isOwn = false }: { readonly name: string; readonly isOwn?: boolean },
  ): Promise<void> {
    switch (login.kind) {
      case "logged-in":
        sendJson(response, 200, {}, { "Set-Cookie": login.cookie });
        return;
      case "wrong":
        sendProblem(
          response,
          403,
          "wrong-password",
          translate(name === "" || isOwn ? "web.wrong-password" : "web.wrong-name-or-password"),
        );
        // It is said afterwards, so that the answer takes as long for a name that nobody has.
        warnRarely(
          name !== "" && (await accounts.has(name)) ? `account ${name}` : "password",
          { reason: `${toWhom(name)}, from ${addressOf(request)}` },
          "login failed: wrong password",
        );
        return;
      case "limited":
        sendTooMany(response, login.retryAfterMs, translate("web.too-many-passwords"));
    }
  }

  return {
    /** Returns `undefined` where a login is needed. */
    async personOf(request: IncomingMessage): Promise<LoggedIn | undefined> {
      const key = await sessions.sessionOf(request);
      if (key === undefined) return undefined;
      const holder = sessions.holderOf(key);
      const signal = sessions.signalOf(key);
      if (holder === undefined) {
        if (key === openSession && (await needsAccount())) return undefined;
        return { person: sharedPerson, boundsKey: key, signal, canLogOut: key !== openSession };
      }
      const account = await accountOf(holder);
      if (account === undefined) {
        await sessions.end(key);
        return undefined;
      }
      return {
        person: toAccountPerson(account),
        account,
        boundsKey: `account ${account.id}`,
        signal,
        canLogOut: true,
      };
    },

    async form(): Promise<LoginForm> {
      if (!(await needsAccount())) return "password";
      return password === undefined ? "account" : "either";
    },

    /**
     * Handles `POST /api/login`, which anybody may send. It starts a session of an account, or without a
     * name, of the shared account.
     */
    async logIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
      const { name, password: given } = await readBody(request, credentials, { maxBytes });
      const login =
        name === ""
          ? sessions.logIn(request, given)
          : sessions.logInAs(request, async () => toHolder(await accounts.check(name, given)));
      await sendLogin(request, response, await login, { name });
    },

    /** Handles `POST /api/logout`. */
    async logOut(request: IncomingMessage, response: ServerResponse): Promise<void> {
      sendJson(response, 200, {}, { "Set-Cookie": await sessions.logOut(request) });
    },

    /**
     * Handles `POST /api/password`: 422 where the new one is not fit, 403 where the old one is wrong. The
     * account's other sessions end. Wrong passwords are delayed as at the login.
     */
    async changePassword(
      request: IncomingMessage,
      response: ServerResponse,
      { account }: LoggedIn,
    ): Promise<void> {
      const given = await readBody(request, changedPassword, { maxBytes });
      if (account === undefined) return sendProblem(response, 404, "not-found", translate("web.not-found"));
      const { minChars: min, maxChars: max } = passwordLimits;
      if (given.new.length < min || given.new.length > max)
        return sendProblem(response, 422, "unfit-password", translate("web.password-length", { min, max }));
      const login = await sessions.logInAs(request, async () => {
        const known = await accounts.check(account.name, given.old);
        if (known?.id !== account.id) return undefined;
        return toHolder(await accounts.setPassword(account.name, given.new));
      });
      await sendLogin(request, response, login, { name: account.name, isOwn: true });
    },

    /** Ends sessions that nobody may use any more, so that their event streams end too. */
    async endInvalid(): Promise<void> {
      for (const [key, holder] of sessions.held())
        if ((await accountOf(holder)) === undefined) await sessions.end(key);
      if (await needsAccount()) await sessions.end(openSession);
    },
  };
}

/** Only what can be a name is repeated: people type their password into the wrong field. */
function toWhom(name: string): string {
  if (name === "") return "the page's password";
  return accountName.test(name) ? `account "${name}"` : "an impossible name";
}

function toHolder(account: Account | undefined): SessionHolder | undefined {
  return account === undefined ? undefined : { accountId: account.id, changedAt: account.changedAt };
}

/** Every state-changing request must have this header. Forms and images of other sites cannot set it. */
const pageHeader = "x-parley";

/** Who may open the page. `auto` means accounts where there are any, besides a password that is set. */
export type PageLoginMode = "auto" | "accounts";

/**
 * Requires a password or accounts when other machines can reach the page, since everyone who opens it can
 * spend money on the gateway. Returns `undefined` where nothing is wrong.
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

/**
 * Protects against cross-site request forgery. It checks Origin, Sec-Fetch-Site, and a custom header that
 * forces a preflight, which is never granted. The HTTP server has checked the Host header.
 * @param path as the HTTP server parsed it
 */
export function isForeign(request: IncomingMessage, path: string): boolean {
  // Other sites may link to the page and to its static files and learn nothing by it.
  if (isRead(request)) return path.startsWith("/api/") && isOfOtherSite(request);
  const isTyped = request.headers["sec-fetch-site"] === "none";
  return isOfOtherSite(request) || isTyped || request.headers[pageHeader] === undefined;
}

const cookieName = "parley_session";
const sessionMs = 30 * 24 * 3_600_000;
const maxSessions = 10_000;
/** The limit of one account. Its next login ends the session that was used least recently. */
const maxSessionsOfAccount = 50;
/** The limit of the page's password from one address, which may be that of a whole office. */
const maxSessionsOfAddress = 500;
/** The key of the session that everybody has on a page that needs no login. */
const openSession = "local";

/** The account of a session, and when its password was set. */
interface SessionHolder {
  readonly accountId: string;
  readonly changedAt: number;
}

interface Session {
  /** By the monotonic clock, so that a step of the wall clock logs nobody out. */
  readonly expiresAt: number;
  /** When the store was last seen to have it, by the same clock. */
  readonly seenAt: number;
  /** Absent where somebody logged in with the page's password. */
  readonly holder: SessionHolder | undefined;
  /** The account or address that the session counts for. */
  readonly countedFor: string;
  readonly ended: AbortController;
}

/** A session in the store. */
const storedSession = z.object({
  /** Unix milliseconds. */
  expiresAt: z.number(),
  countedFor: z.string(),
  holder: z.object({ accountId: z.string(), changedAt: z.number() }).optional(),
  /** The page's password where it began the session, keyed with the token that only the browser has. */
  proof: z.string().optional(),
});

const sessionRecord = (key: string): string => `web/session/${key}`;
/** How long after another instance has ended a session this one may still accept it. */
const endedElsewhereMs = 10_000;

/** The result of a login. `cookie` is a complete Set-Cookie value. */
export type Login =
  | { readonly kind: "logged-in"; readonly cookie: string }
  | { readonly kind: "wrong" }
  | { readonly kind: "limited"; readonly retryAfterMs: number };

/**
 * Manages logins of the page. Sessions last 30 days, also over restarts and for all instances on a store,
 * which has the hash of their token. One with the page's password ends when that is changed. Wrong passwords
 * are delayed by address, see {@link createLoginDelays}. Without a password, every request without a session
 * of its own counts as logged in, in one session. Past their limit, an account's logins end its own sessions.
 * @param password opens the page for everybody who has it
 * @param addressOf the address that failures count for
 */
export function createSessions(
  password: string | undefined,
  addressOf: (request: IncomingMessage) => string,
  { records, clock }: { readonly records: Records; readonly clock: Pick<Clock, "now" | "monotonic"> },
) {
  const now = (): number => clock.monotonic();
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
  async function makeRoom(countedFor: string, max: number): Promise<void> {
    const own = [...sessions.entries()].filter(([, session]) => session.countedFor === countedFor);
    for (const [key] of own.slice(max - 1)) await end(key);
  }

  async function end(key: string): Promise<void> {
    if (key === openSession) {
      open.abort();
      open = new AbortController();
      return;
    }
    sessions.delete(key);
    await records.delete(sessionRecord(key));
    // A request may have read it before.
    sessions.delete(key);
  }

  /** Reads a session that the store has. */
  async function read(token: string, key: string): Promise<Session | undefined> {
    const stored = storedSession.safeParse(await records.get(sessionRecord(key))).data;
    if (stored === undefined) return undefined;
    const { countedFor, holder, proof } = stored;
    if (holder === undefined && (password === undefined || proof !== proofOf(token, password)))
      return undefined;
    const known = sessions.get(key);
    const leftMs = Math.min(stored.expiresAt - clock.now(), sessionMs);
    const expiresAt = known?.expiresAt ?? now() + leftMs;
    return { expiresAt, seenAt: now(), holder, countedFor, ended: known?.ended ?? new AbortController() };
  }

  /**
   * Starts a session of the account that `check` finds, or returns "wrong" where it finds none. During a
   * delay `check` is not called.
   * @throws what `check` throws
   */
  async function logInAs(
    request: IncomingMessage,
    check: () => Promise<SessionHolder | undefined> | "everybody" | undefined,
  ): Promise<Login> {
    const attempt = await delays.attempt<SessionHolder | "everybody">(addressOf(request), check);
    if (attempt.kind !== "right") return attempt;
    return await begin(request, attempt.value === "everybody" ? undefined : attempt.value);
  }

  async function begin(request: IncomingMessage, holder: SessionHolder | undefined): Promise<Login> {
    const token = randomBytes(32).toString("base64url");
    const countedFor = holder === undefined ? `address ${addressOf(request)}` : `account ${holder.accountId}`;
    await makeRoom(countedFor, holder === undefined ? maxSessionsOfAddress : maxSessionsOfAccount);
    const key = digest(token).toString("hex");
    const stored = {
      expiresAt: clock.now() + sessionMs,
      countedFor,
      ...(holder === undefined ? { proof: proofOf(token, password ?? "") } : { holder: { ...holder } }),
    };
    await records.set(sessionRecord(key), stored, sessionMs);
    const seenAt = now();
    sessions.set(key, {
      expiresAt: seenAt + sessionMs,
      seenAt,
      holder,
      countedFor,
      ended: new AbortController(),
    });
    const isSecure = (request.headers.origin ?? "").startsWith("https://");
    return { kind: "logged-in", cookie: cookie(token, sessionMs / 1000) + (isSecure ? "; Secure" : "") };
  }

  return {
    /**
     * Returns the key of the request's session, or `undefined` without a valid session cookie.
     * @throws ParleyError `store-unavailable`
     */
    async sessionOf(request: IncomingMessage): Promise<string | undefined> {
      const token = cookieOf(request, cookieName) ?? "";
      const key = digest(token).toString("hex");
      let session = sessions.get(key);
      if (tokenForm.test(token) && (session === undefined || now() - session.seenAt >= endedElsewhereMs)) {
        session = await read(token, key);
        // The controller stays the same, and nothing that uses the session ends.
        if (session === undefined) sessions.delete(key);
        else sessions.set(key, session, { noDisposeOnSet: true });
      }
      if (session !== undefined && session.expiresAt > now()) return key;
      return password === undefined ? openSession : undefined;
    },

    /** Returns the account of a session, or `undefined` where it has none. */
    holderOf: (key: string): SessionHolder | undefined => sessions.get(key)?.holder,

    /** Returns a signal that aborts when the session ends. */
    signalOf: (key: string): AbortSignal => (sessions.get(key)?.ended ?? open).signal,

    end,

    /** Lists all sessions of accounts. */
    held: (): readonly (readonly [string, SessionHolder])[] =>
      [...sessions.entries()].flatMap(([key, { holder }]) =>
        holder === undefined ? [] : [[key, holder] as const],
      ),

    /** Starts a session of everybody who has the page's password. */
    logIn: (request: IncomingMessage, given: string): Promise<Login> =>
      logInAs(request, () =>
        password !== undefined && isSameSecret(given, password) ? "everybody" : undefined,
      ),

    logInAs,

    /** Ends the session. Returns the Set-Cookie value that removes its cookie. */
    async logOut(request: IncomingMessage): Promise<string> {
      const token = cookieOf(request, cookieName);
      if (token !== undefined) await end(digest(token).toString("hex"));
      return cookie("", 0);
    },
  };
}

function cookie(value: string, maxAgeSeconds: number): string {
  return `${cookieName}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict`;
}

/** The form of a session's token: 32 random bytes. Nothing else is looked up. */
const tokenForm = /^[\w-]{43}$/;

function proofOf(token: string, password: string): string {
  return createHmac("sha256", token).update(password, "utf8").digest("base64url");
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
