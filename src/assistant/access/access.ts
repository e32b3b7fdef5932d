import { toInlineCode } from "../../core/quoting.ts";
import type { Access, Asker, RefusalReason } from "../../core/access.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Origin, IncomingEvent } from "../../core/events.ts";
import { nearestName } from "../../support/text.ts";
import { translate } from "../../words/translate.ts";
import type { Conversations, StoredMessage } from "../../core/storage.ts";

/** Lists of access terms such as `discord:guild:123`. Each term is checked and in its normal form. */
interface AccessRules {
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  readonly admins: readonly string[];
}

interface AccessOptions {
  readonly rules: AccessRules;
  /** Platforms such as the page that the operator owns. Everybody there is an admin. */
  readonly ownPlatforms: ReadonlySet<string>;
}

/** Creates an {@link Access} from the rules. The terms of an event are compared without further parsing. */
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
 * All terms by which a rule can list somebody. Somebody of another workspace is listed by that workspace, so
 * allowing your own workspace does not allow everybody who shares a channel with it.
 */
function termsOf({ user, server, home = server, channel, thread, roles = [] }: Origin): string[] {
  return [user, home, channel, thread, ...roles].filter((term) => term !== undefined);
}

function counted(count: number, one: string, many: string): string {
  return count === 1 ? `1 ${one}` : `${count} ${many}`;
}

/** The forms of ids by platform and kind, for example a pattern for `discord` → `guild`. */
type AccessTerms = Readonly<Record<string, Readonly<Record<string, RegExp>>>>;

const settingOf = { allow: "ALLOW", deny: "DENY", admins: "ADMINS" } as const;

/**
 * Says in one sentence each what is wrong with the lists: terms of an unknown kind, ids of another form, and
 * rules that contradict each other. It is empty if nothing is wrong. A term that may be a secret in the wrong
 * place is named by its number.
 */
export function accessProblems(rules: AccessRules, terms: AccessTerms): string[] {
  const lists = Object.entries(settingOf) as [keyof AccessRules, string][];
  const denied = new Set(rules.deny);
  const inBoth = (list: keyof AccessRules): string[] =>
    [...new Set(rules[list])].filter(
      (term) => denied.has(term) && termProblem(term, terms, "") === undefined,
    );
  return [
    ...lists.flatMap(([list, setting]) =>
      rules[list].flatMap((term, at) => {
        const problem = termProblem(term, terms, isNoSecret.test(term) ? quoted(term) : `entry ${at + 1}`);
        return problem === undefined ? [] : [`${setting} ${problem}`];
      }),
    ),
    ...inBoth("allow").map((term) => `ALLOW and DENY both list ${term}: remove it from one of them`),
    ...inBoth("admins").map((term) => `ADMINS and DENY both list ${term}: remove it from one of them`),
  ];
}

/** The form of a short term or id. Tokens and keys are longer, or they have hyphens and dots. */
const isNoSecret = /^(?:[a-z_]{1,20}:[a-z_]{1,20}:\w{0,20}|\d{1,20})$/i;

const quoted = (term: string): string => JSON.stringify(term.slice(0, 100));

/** Says how each wrong term that a person typed is wrong, as the end of a sentence. */
export function termProblems(list: readonly string[], terms: AccessTerms): string[] {
  return list.flatMap((term) => termProblem(term, terms, quoted(term)) ?? []);
}

function termProblem(term: string, terms: AccessTerms, shown: string): string | undefined {
  const [platform = "", kind = "", ...rest] = term.split(":");
  const known = Object.entries(terms).flatMap(([one, kinds]) =>
    Object.keys(kinds).map((each) => `${one}:${each}`),
  );
  const pattern = Object.hasOwn(terms, platform) ? terms[platform] : undefined;
  const form = pattern !== undefined && Object.hasOwn(pattern, kind) ? pattern[kind] : undefined;
  if (form === undefined) {
    const near = nearestName(`${platform}:${kind}`, known);
    const own = isNoSecret.test(term) ? userTerm(term, terms) : undefined;
    const meant = near === undefined ? own : `${near}:<id>`;
    const values = { term: shown, known: known.map((one) => `${one}:<id>`).join(", ") };
    return meant === undefined
      ? translate("setting.problem.term-kind", values)
      : translate("setting.problem.term-kind.nearest", { ...values, nearest: meant });
  }
  if (form.test(rest.join(":"))) return undefined;
  return translate("setting.problem.term-id", { term: shown, platform, kind });
}

/** The term of the user whose bare id was given, on the first platform whose ids have this form. */
function userTerm(term: string, terms: AccessTerms): string | undefined {
  const id = term.slice(term.lastIndexOf(":") + 1);
  const platform = Object.keys(terms).find((one) => terms[one]?.["user"]?.test(id));
  return platform === undefined ? undefined : `${platform}:user:${id}`;
}

/** How many allowed models an error names. */
const maxNamed = 5;

/** Decides which models may be used (`MODELS_ALLOWED`). */
export interface AllowedModels {
  readonly isAllowed: (model: string) => boolean;
  /**
   * @param listed ids of the gateway's models, from which the error names allowed ones
   * @throws ParleyError `model-not-allowed`
   */
  readonly expectAllowed: (model: string, listed: readonly string[]) => void;
}

/**
 * Compares ids with patterns in which `*` stands for any characters, including `/`. Case matters. Without
 * patterns every model is allowed.
 */
export function createAllowedModels(patterns: readonly string[]): AllowedModels {
  const parts = patterns.map((pattern) => pattern.split("*"));
  const isAllowed = (model: string): boolean =>
    parts.length === 0 || parts.some((each) => matches(model, each));
  return {
    isAllowed,
    expectAllowed(model, listed) {
      if (isAllowed(model)) return;
      const known = listed.length > 0 ? listed : patterns.filter((pattern) => !pattern.includes("*"));
      const named = known.filter(isAllowed).toSorted((a, b) => sharedStart(b, model) - sharedStart(a, model));
      const rest = named.length > maxNamed ? ` and ${named.length - maxNamed} more` : "";
      throw new ParleyError("model-not-allowed", "MODELS_ALLOWED does not list the model", {
        detail: {
          model: model.slice(0, 100),
          ...(listed.length === 0 ? { lacks: "models" } : {}),
          ...(named.length === 0
            ? {}
            : { allowed: named.slice(0, maxNamed).map(toInlineCode).join(", ") + rest }),
        },
      });
    },
  };
}

/** The number of characters at the start that two ids share. */
function sharedStart(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length++;
  return length;
}

/** Whether the parts occur in order, the first at the start and the last at the end, in linear time. */
function matches(model: string, parts: readonly string[]): boolean {
  const first = parts[0] ?? "";
  const last = parts.at(-1) ?? "";
  if (parts.length === 1) return model === first;
  if (!model.startsWith(first) || !model.endsWith(last) || model.length < first.length + last.length)
    return false;
  let from = first.length;
  const end = model.length - last.length;
  for (const part of parts.slice(1, -1)) {
    const at = model.indexOf(part, from);
    if (at === -1 || at + part.length > end) return false;
    from = at + part.length;
  }
  return true;
}

/** What people get who may not see what was said before. */
export interface WithheldHistory {
  /** The conversations of the store, where `recent` has only the turns that they ask in now. */
  readonly conversations: Conversations;
  /** Whether a conversation contains anything else. */
  hasAny(conversationId: string): Promise<boolean>;
}

/**
 * Returns what the people who ask in these events get, or `undefined` if the platform lets all of them see
 * what was said before.
 * @see {@link Origin.readsHistory}
 */
export function withheldHistory(
  conversations: Conversations,
  events: readonly IncomingEvent[],
): WithheldHistory | undefined {
  if (!events.some(({ origin }) => origin?.readsHistory === false)) return undefined;
  const keys = new Set(events.map(({ key }) => key));
  const isAskedNow = ({ room, turnKey }: StoredMessage): boolean => room === undefined && keys.has(turnKey);
  return {
    conversations: {
      ...conversations,
      find: async (id, which) =>
        typeof which === "string" ? await conversations.find(id, which) : undefined,
      summary: () => Promise.resolve(undefined),
      sumUp: () => Promise.resolve({ summary: undefined, isComplete: false }),
      recent: async (...given) => (await conversations.recent(...given)).filter(isAskedNow),
    },
    hasAny: async (conversationId) =>
      !(await conversations.recent(conversationId, { maxMessages: 20 })).every(isAskedNow),
  };
}

/** The error for people who may not see the history. */
export function historyWithheld(): ParleyError {
  return new ParleyError("platform-forbidden", "the person may not read the history", {
    detail: { because: "history", permission: "history-of-the-asker" },
  });
}
