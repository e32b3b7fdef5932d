import type { AccessRules } from "../../core/access.ts";
import { nearestName } from "../../support/nearest-name.ts";
import { translate } from "../../words/translate.ts";

/** The forms of ids by platform and kind, such as `discord` → `guild` → a pattern of ids. */
export type AccessTerms = Readonly<Record<string, Readonly<Record<string, RegExp>>>>;

const settingOf = { allow: "ALLOW", deny: "DENY", admins: "ADMINS" } as const;

/**
 * What is wrong with the lists, one sentence each: terms of an unknown kind, ids of another form, and rules that
 * contradict each other. Empty: nothing.
 */
export function accessProblems(rules: AccessRules, terms: AccessTerms): string[] {
  const lists = Object.entries(settingOf) as [keyof AccessRules, string][];
  const denied = new Set(rules.deny);
  const inBoth = (list: keyof AccessRules): string[] =>
    [...new Set(rules[list])].filter((term) => denied.has(term));
  return [
    ...lists.flatMap(([list, setting]) =>
      rules[list].flatMap((term) => {
        const problem = termProblem(term, terms);
        return problem === undefined ? [] : [`${setting} ${problem}`];
      }),
    ),
    ...inBoth("allow").map((term) => `ALLOW and DENY both list ${term}: remove it from one of them`),
    ...inBoth("admins").map((term) => `ADMINS and DENY both list ${term}: remove it from one of them`),
  ];
}

/** What is wrong with single terms that a person typed, as the ends of sentences. Empty: nothing. */
export function termProblems(list: readonly string[], terms: AccessTerms): string[] {
  return list.flatMap((term) => termProblem(term, terms) ?? []);
}

function termProblem(term: string, terms: AccessTerms): string | undefined {
  const [platform = "", kind = "", ...rest] = term.split(":");
  const shown = JSON.stringify(term.slice(0, 100));
  const known = Object.entries(terms).flatMap(([one, kinds]) =>
    Object.keys(kinds).map((each) => `${one}:${each}`),
  );
  const pattern = Object.hasOwn(terms, platform) ? terms[platform] : undefined;
  const form = pattern !== undefined && Object.hasOwn(pattern, kind) ? pattern[kind] : undefined;
  if (form === undefined) {
    const meant = nearestName(`${platform}:${kind}`, known);
    const values = { term: shown, known: known.map((one) => `${one}:<id>`).join(", ") };
    return meant === undefined
      ? translate("setting.problem.term-kind", values)
      : translate("setting.problem.term-kind.nearest", { ...values, nearest: `${meant}:<id>` });
  }
  if (form.test(rest.join(":"))) return undefined;
  return translate("setting.problem.term-id", { term: shown, platform, kind });
}
