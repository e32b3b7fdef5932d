import type { Author, Origin } from "./events.ts";

/** Who does something: an event, a click, or whatever else a platform made the origin of. */
export interface Asker {
  /** `Platform.id` */
  readonly platform: string;
  /** Absent on the page, which is the operator's own, and in events stored by earlier versions. */
  readonly origin?: Origin | undefined;
}

/** Who uses a button: Retry, Stop, a confirmation. */
export interface Actor extends Asker {
  readonly author: Author;
}

/**
 * Why somebody is refused. `denied`: DENY lists them or where they are. `not-listed`: ALLOW is set and lists neither.
 * `stranger`: ALLOW is empty, and they reach the bot without being a member of a server or workspace that has it.
 */
export type RefusalReason = "denied" | "not-listed" | "stranger";

/** The access rules in force (`ALLOW`, `DENY`, `ADMINS`). Pure and fast: called for every event and every click. */
export interface Access {
  /**
   * `undefined`: allowed. DENY wins over all else; ADMINS are allowed like those that ALLOW lists. An event without an
   * origin is allowed: the page is the operator's own, and a stored event was accepted under earlier rules.
   */
  refusalOf(asker: Asker): RefusalReason | undefined;
  /** @throws ParleyError `access-denied` where {@link refusalOf} has a reason */
  expectAllowed(asker: Asker): void;
  /** Whether ADMINS lists them and DENY does not. On the page everybody is one: it is the operator's own. */
  isAdmin(asker: Asker): boolean;
  /** The rule in force, in one line for the start message. */
  describe(): string;
}
