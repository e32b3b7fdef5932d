import type { CommandServices } from "../../core/command-services.ts";
import { ParleyError } from "../../core/errors.ts";
import { toUtcDay } from "../../support/utc-day.ts";
import type { TurnDependencies } from "../turn/turn.ts";
import type { CommandRun } from "./command-run.ts";
import { translate } from "../../words/translate.ts";

/** Most names that are looked up for one report: some platforms limit such requests. */
const maxNames = 100;

type UsageServices = Pick<CommandServices, "isAdmin" | "today" | "usage" | "budgets" | "namesOf">;

/** The services of one call that read usage and budgets. */
export function createUsageServices(dependencies: TurnDependencies, { call }: CommandRun): UsageServices {
  const { access, budgets, ledger, now } = dependencies;
  const isAdmin = (): boolean => access.isAdmin(call);

  return {
    isAdmin,
    today: () => toUtcDay(now()),
    async usage({ fromDay, toDay, ofEverybody = false }) {
      if (ofEverybody && !isAdmin()) {
        throw new ParleyError("invalid-option", "the usage of others is for admins", {
          detail: { command: call.name, problem: translate("usage.admins-only") },
        });
      }
      return await ledger.usage({ fromDay, toDay, ...(ofEverybody ? {} : { personId: call.author.id }) });
    },
    budgets: () => budgets.inForce({ ...call, personId: call.author.id }),
    async namesOf(ids) {
      const names = new Map<string, string>();
      const wanted = [...new Set(ids)].slice(0, maxNames);
      await Promise.all(
        wanted.map(async (id) => {
          const name = id === call.author.id ? call.author.name : await dependencies.nameOf(id);
          if (name !== undefined) names.set(id, name);
        }),
      );
      return names;
    },
  };
}
