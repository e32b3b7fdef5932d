import type { PersonOverview } from "../../src/core/person-overview.ts";

/** Of a person who has used and set nothing. */
export const emptyOverview: PersonOverview = {
  language: "en",
  settings: [],
  today: "2026-11-22",
  usage: [],
  budgets: [],
};
