import type { Author, Origin } from "./events.ts";

/** Who does something, such as the person behind an event or a click. */
export interface Asker {
  /** The {@link Platform.id} of the platform. */
  readonly platform: string;
  /** Absent on the page, which belongs to the operator, and in events that earlier versions stored. */
  readonly origin?: Origin | undefined;
}

/** The person who uses a button such as Retry, Stop or a confirmation. */
export interface Actor extends Asker {
  readonly author: Author;
}

/**
 * Why somebody is refused. `denied`: DENY lists them or where they are. `not-listed`: ALLOW is set and lists
 * neither. `stranger`: ALLOW is empty, and they are no member of a server or workspace with the bot.
 */
export type RefusalReason = "denied" | "not-listed" | "stranger";

/** The access rules in force (`ALLOW`, `DENY`, `ADMINS`). Every event and every click is checked by them. */
export interface Access {
  /**
   * Returns `undefined` where they are allowed. DENY wins over everything else, and ADMINS are allowed like
   * those whom ALLOW lists. An event without an origin is allowed: it comes from the operator's own page, or
   * it was accepted under earlier rules.
   */
  refusalOf(asker: Asker): RefusalReason | undefined;
  /** @throws ParleyError `access-denied` where {@link refusalOf} returns a reason */
  expectAllowed(asker: Asker): void;
  /** Whether ADMINS lists them and DENY does not. Everybody on the page is an admin. */
  isAdmin(asker: Asker): boolean;
  /** Says in one line for the start message which rule is in force. */
  describe(): string;
}
