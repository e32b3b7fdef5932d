import type { Language } from "../words/languages.ts";
import type { SettingFacts } from "./command-services.ts";
import type { BudgetState, UsageRow } from "./spending.ts";

/** What concerns one person, outside of channels. */
export interface PersonOverview {
  /** What Parley speaks with them: as they have set it, else that of their client. */
  readonly language: Language;
  /** The settings in force for them, in that language. */
  readonly settings: readonly SettingFacts[];
  /** `YYYY-MM-DD`, UTC. */
  readonly today: string;
  /** What they have used in this month. */
  readonly usage: readonly UsageRow[];
  /** The budgets that apply to them. */
  readonly budgets: readonly BudgetState[];
}
