import type { Access, AccessRules, Asker, RefusalReason } from "../../core/access.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Origin } from "../../core/events.ts";

export interface AccessOptions {
  readonly rules: AccessRules;
  /** Platforms that are the operator's own (the page): everybody there is an admin. */
  readonly ownPlatforms: ReadonlySet<string>;
}

/** Evaluates the rules; the terms of an event are compared as they are. @see {@link Access} */
export function createAccess({ rules, ownPlatforms }: AccessOptions): Access {
  const [allow, deny, admins] = [rules.allow, rules.deny, rules.admins].map((terms) => new Set(terms)) as [
    Set<string>,
    Set<string>,
    Set<string>,
  ];

  function refusalOf({ origin }: Asker): RefusalReason | undefined {
    if (origin === undefined) return undefined;
    const terms = termsOf(origin);
    const isIn = (list: ReadonlySet<string>): boolean => terms.some((term) => list.has(term));
    if (isIn(deny) || (origin.server !== undefined && deny.has(origin.server))) return "denied";
    if (isIn(admins) || isIn(allow)) return undefined;
    if (allow.size > 0) return "not-listed";
    return origin.isMember ? undefined : "stranger";
  }

  return {
    refusalOf,
    expectAllowed(asker) {
      const because = refusalOf(asker);
      if (because === undefined) return;
      throw new ParleyError("access-denied", `refused by the access rules: ${because}`, {
        detail: { because, ...(asker.origin === undefined ? {} : { user: asker.origin.user }) },
      });
    },
    isAdmin: (asker) =>
      asker.origin === undefined
        ? ownPlatforms.has(asker.platform)
        : refusalOf(asker) === undefined && termsOf(asker.origin).some((term) => admins.has(term)),
    describe() {
      const who =
        allow.size === 0
          ? "everybody in servers and workspaces with the bot"
          : `only ${counted(allow.size, "entry", "entries")} of ALLOW`;
      const but = deny.size === 0 ? "" : `, except ${counted(deny.size, "entry", "entries")} of DENY`;
      return `${who}${but}; ${admins.size === 0 ? "no admins" : counted(admins.size, "entry of ADMINS", "entries of ADMINS")}`;
    },
  };
}

/**
 * Everything that a rule can list somebody by. Somebody of another workspace is listed by that one: who allows their own
 * workspace does not allow everybody that shares a channel with it.
 */
function termsOf({ user, server, home = server, channel, thread, roles = [] }: Origin): string[] {
  return [user, home, channel, thread, ...roles].filter((term) => term !== undefined);
}

function counted(count: number, one: string, many: string): string {
  return count === 1 ? `1 ${one}` : `${count} ${many}`;
}
