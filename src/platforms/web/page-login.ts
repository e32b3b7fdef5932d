import type { IncomingMessage } from "node:http";
import type { Clock } from "../../core/clock.ts";
import type { Account, Accounts } from "./accounts/accounts.ts";
import type { PageLoginMode } from "./guard.ts";
import { sharedPerson, toAccountPerson, type PagePerson } from "./page-person.ts";
import { createSessions, openSession, type Login, type SessionHolder } from "./sessions.ts";

/** Who sends a request. */
export interface LoggedIn {
  readonly person: PagePerson;
  /** Absent for the shared account. */
  readonly account?: Account;
  /** What bounds count for: an account in all its browsers, or one browser. */
  readonly boundsKey: string;
  /** Aborts when the session ends. */
  readonly signal: AbortSignal;
  /** Whether there is a session that a person can end. */
  readonly canLogOut: boolean;
}

/** What the login asks for: the page's password, a name with its password, or either of them. */
export type LoginForm = "password" | "account" | "either";

/** @see {@link createPageLogin} */
export interface PageLoginOptions {
  readonly accounts: Accounts;
  /** The page's password, which opens the shared account. */
  readonly password: string | undefined;
  readonly mode: PageLoginMode;
  readonly clock: Clock;
  /** The address that wrong passwords count for. */
  readonly addressOf: (request: IncomingMessage) => string;
}

/**
 * Who may open the page. Where there are accounts, nobody does without a login; a page's password opens the shared
 * account beside them. Failures of the store throw `store-unavailable`: then nobody is let in.
 */
export function createPageLogin({ accounts, password, mode, addressOf, clock }: PageLoginOptions) {
  const sessions = createSessions(password, addressOf, () => clock.monotonic());

  async function accountOf({ accountId, changedAt }: SessionHolder): Promise<Account | undefined> {
    const account = await accounts.find(accountId);
    return account?.changedAt === changedAt ? account : undefined;
  }

  async function needsAccount(): Promise<boolean> {
    return mode === "accounts" || (await accounts.hasAny());
  }

  return {
    /** `undefined`: a login is needed. */
    async personOf(request: IncomingMessage): Promise<LoggedIn | undefined> {
      const key = sessions.sessionOf(request);
      if (key === undefined) return undefined;
      const holder = sessions.holderOf(key);
      const signal = sessions.signalOf(key);
      if (holder === undefined) {
        if (key === openSession && (await needsAccount())) return undefined;
        return { person: sharedPerson, boundsKey: key, signal, canLogOut: key !== openSession };
      }
      const account = await accountOf(holder);
      if (account === undefined) {
        sessions.end(key);
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

    /** Starts a session: of an account, or without a name of the shared account. */
    async logIn(
      request: IncomingMessage,
      given: { readonly name: string; readonly password: string },
    ): Promise<Login> {
      const name = given.name.trim().toLowerCase();
      if (name === "") return sessions.logIn(request, given.password);
      return await sessions.logInAs(request, async () =>
        toHolder(await accounts.check(name, given.password)),
      );
    },

    /** Ends the session. Returns the Set-Cookie value that removes its cookie. */
    logOut: (request: IncomingMessage): string => sessions.logOut(request),

    /**
     * Changes the password of the account that is logged in. Its other sessions end. Wrong passwords are delayed as at
     * the login.
     * @throws ParleyError `invalid-option`: the new password is too short or too long
     */
    async changePassword(
      request: IncomingMessage,
      account: Account,
      passwords: { readonly old: string; readonly new: string },
    ): Promise<Login> {
      return await sessions.logInAs(request, async () => {
        const known = await accounts.check(account.name, passwords.old);
        if (known?.id !== account.id) return undefined;
        return toHolder(await accounts.setPassword(account.name, passwords.new));
      });
    },

    /** Ends sessions that nobody may use any more, so that their event streams end too. */
    async endInvalid(): Promise<void> {
      for (const [key, holder] of sessions.held())
        if ((await accountOf(holder)) === undefined) sessions.end(key);
      if (await needsAccount()) sessions.end(openSession);
    },
  };
}

function toHolder(account: Account | undefined): SessionHolder | undefined {
  return account === undefined ? undefined : { accountId: account.id, changedAt: account.changedAt };
}
