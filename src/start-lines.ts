import type { createAccess } from "./assistant/access/access.ts";
import type { OpenedGateway } from "./compose-gateway.ts";
import type { Config } from "./config.ts";
import type { Store } from "./conversations/open-store.ts";
import type { ParleyError } from "./core/errors.ts";
import type { HttpServer } from "./operations/http-server.ts";
import { adoptedProxies, describeProxies } from "./support/proxy.ts";

/** The parts that do not work, with the names of the start lines. */
export function toTroubleLines(
  config: Config,
  gateway: OpenedGateway,
  givenUp: ReadonlyMap<string, ParleyError>,
): string[] {
  const trouble = gateway.watch.trouble();
  return [
    ...config.platforms.flatMap(({ module }) => {
      const error = givenUp.get(module.id);
      return error === undefined ? [] : [`${module.title.padEnd(8)} ${error.message}`];
    }),
    ...(trouble === undefined ? [] : [`Gateway  ${gateway.describe()} ${trouble.text}`]),
  ];
}

/** The lines that an admin reads in the terminal after `npm start`. */
export function toStartLines(
  config: Config,
  parts: {
    readonly store: Store;
    readonly gateway: OpenedGateway;
    readonly server: HttpServer;
    readonly access: ReturnType<typeof createAccess>;
  },
): string[] {
  const { url } = parts.server;
  const warning = spendingWarning(config);
  const proxies = adoptedProxies();
  return [
    ...config.platforms.map(
      ({ module, values, isOn }) => `${module.title.padEnd(8)} ${module.startLine(values, { isOn, url })}`,
    ),
    `Access   ${parts.access.describe()}`,
    `Limits   ${describeLimits(config)}`,
    ...(warning === undefined ? [] : [`Warning  ${warning}`]),
    `Gateway  ${parts.gateway.describe()}`,
    ...(proxies === undefined ? [] : [`Proxy    ${describeProxies(proxies)}`]),
    `Store    ${parts.store.describe()}`,
    `Health   ${parts.server.url}/readyz, /healthz, /metrics`,
  ];
}

/** Describes in one line for the start message what limits use and spending. */
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

/** A warning if nothing limits spending. The sandbox needs none, because it costs nothing. */
export function spendingWarning(config: Config): string | undefined {
  const isSandbox = config.isGatewayEmbedded && config.GATEWAY_CONFIG === undefined;
  const { ALLOW, BUDGET_PERSON_DAY_USD: person, BUDGET_DAY_USD: all } = config;
  if (isSandbox || ALLOW.length > 0 || person !== undefined || all !== undefined) return undefined;
  return "nothing limits spending: set ALLOW, BUDGET_PERSON_DAY_USD or BUDGET_DAY_USD (docs/access.md)";
}
