import type { PersonOverview } from "../../src/core/receiver.ts";

/** The overview of a person who has used and set nothing. */
export const emptyOverview: PersonOverview = {
  language: "en",
  settings: [],
  today: "2026-11-22",
  usage: [],
  budgets: [],
};
