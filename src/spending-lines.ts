import type { Config } from "./config.ts";

/** What limits use and spending, in one line for the start message. */
export function describeLimits(config: Config): string {
  const { TURNS_PERSON_MINUTE: turns, BUDGET_PERSON_DAY_USD: person, BUDGET_DAY_USD: all } = config;
  return [
    turns === 0
      ? "any number of requests"
      : `${turns} ${turns === 1 ? "request" : "requests"} a minute and person`,
    ...(person === undefined ? [] : [`$${person} a day and person`]),
    ...(all === undefined ? [] : [`$${all} a day in all`]),
    ...(config.MODELS_ALLOWED.length === 0 ? [] : [`models ${config.MODELS_ALLOWED.join(", ")}`]),
  ].join("; ");
}

/** A warning where nothing limits what is spent. `undefined`: something does, or the sandbox costs nothing. */
export function spendingWarning(config: Config): string | undefined {
  const isSandbox = config.isGatewayEmbedded && config.GATEWAY_CONFIG === undefined;
  const { ALLOW, BUDGET_PERSON_DAY_USD: person, BUDGET_DAY_USD: all } = config;
  if (isSandbox || ALLOW.length > 0 || person !== undefined || all !== undefined) return undefined;
  return "nothing limits spending: set ALLOW, BUDGET_PERSON_DAY_USD or BUDGET_DAY_USD (docs/access.md)";
}
