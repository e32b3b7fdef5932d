import type { CommandServices } from "../../core/command-services.ts";
import type { TurnDependencies } from "../turn/turn.ts";
import type { CommandRun } from "./command-run.ts";
import { defaultLanguage, toLanguage } from "../../words/languages.ts";
import { translate } from "../../words/translate.ts";

/** Most admins whose names are looked up. */
const maxAdmins = 20;

/** The service of one call that `/help` uses. */
export function createHelpServices(
  { budgets, nameOf, help }: TurnDependencies,
  { call, platform }: CommandRun,
): Pick<CommandServices, "help"> {
  return {
    async help() {
      const terms = help.admins.filter((term) => term.startsWith(`${platform.id}:`)).slice(0, maxAdmins);
      const { commandPrefix, speaking, hasMessageMenus, hasLocalNames } = platform.guide;
      return {
        commandPrefix,
        speaking,
        hasMessageMenus,
        namesIn: hasLocalNames ? toLanguage(call.author.locale) : defaultLanguage,
        turnsPersonMinute: help.turnsPersonMinute,
        allowedModels: help.allowedModels,
        retentionDays: help.retentionDays,
        budgets: await budgets.inForce({ ...call, personId: call.author.id }),
        admins: await Promise.all(terms.map(async (term) => toAdmin(term, await nameOf(term)))),
      };
    },
  };
}

/** A person by name; of a role, channel or server, everybody in it. */
function toAdmin(term: string, name: string | undefined): string {
  const [, kind = "", id = ""] = term.split(":");
  const shown = name ?? `${kind} ${id}`;
  return kind === "user" ? shown : translate("help.everybody-of", { name: shown });
}
