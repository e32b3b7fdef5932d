import { z } from "zod";
import { definePlatform } from "../../core/platform-module.ts";
import { hostList, list, text } from "../../core/settings.ts";
import { isAddressOrNetwork } from "../../support/http/client-address.ts";
import { accountName } from "./accounts/accounts.ts";
import { bindProblem } from "./page-login.ts";

/** Describes the local page for the registry. */
export const web = definePlatform({
  id: "web",
  title: "Page",
  settings: {
    PAGE: {
      schema: z.enum(["auto", "on", "off"]).default("auto"),
      description: "`on`, `off`, or on when no platform is",
    },
    PAGE_HOSTS: {
      schema: hostList,
      description: "further names the page is reached by, behind a proxy",
    },
    PAGE_PASSWORD: {
      schema: text.min(8, "needs at least 8 characters").optional(),
      description: "opens the shared account; needed unless `HOST` is loopback or `PAGE_LOGIN=accounts`",
      isSecret: true,
    },
    PAGE_LOGIN: {
      schema: z.enum(["auto", "accounts"]).default("auto"),
      description: "`accounts`: nobody opens the page without an account of their own (`npm run account`)",
    },
    PAGE_TITLES: {
      schema: z.enum(["model", "first-words"]).default("model"),
      description:
        "the title of a chat: `model` asks its model once, which counts as usage; or `first-words`",
    },
    PAGE_TRUSTED_PROXIES: {
      schema: list
        .refine(
          (entries) => entries.every(isAddressOrNetwork),
          "must be IP addresses or networks (10.0.0.0/8)",
        )
        .default([]),
      description: "proxies whose `X-Forwarded-For` is believed: addresses or networks",
    },
  },
  accessTerms: { user: accountName },
  isOperatorsOwn: true,
  isOn: ({ PAGE }) => (PAGE === "auto" ? "alone" : PAGE === "on"),
  problems: ({ PAGE_LOGIN, PAGE_PASSWORD }) =>
    PAGE_LOGIN === "accounts" && PAGE_PASSWORD !== undefined
      ? ["PAGE_PASSWORD opens nothing where PAGE_LOGIN=accounts is set: remove one of them"]
      : [],
  startProblems(values, { host, isOn }) {
    const { PAGE_PASSWORD, PAGE_LOGIN } = values;
    // A password that is wrong in itself is absent, and was said to be wrong. There is one all the same.
    const isKnown = isOn && "PAGE_PASSWORD" in values;
    const problem = isKnown ? bindProblem(host, PAGE_PASSWORD, PAGE_LOGIN) : undefined;
    return problem === undefined ? [] : [problem];
  },
  startLine({ PAGE, PAGE_PASSWORD, PAGE_LOGIN }, { isOn, url }) {
    const password = PAGE_PASSWORD === undefined ? "" : "  (with password)";
    if (isOn) return `on   ${url}${PAGE_LOGIN === "accounts" ? "  (accounts only)" : password}`;
    return PAGE === "off" ? "off  PAGE=off" : "off  a platform is on; PAGE=on shows it as well";
  },
  tools: {},
  async load() {
    const { createWebPlatform } = await import("./platform.ts");
    return {
      create(
        { PAGE_HOSTS, PAGE_PASSWORD: password, PAGE_LOGIN: loginMode, PAGE_TITLES, PAGE_TRUSTED_PROXIES },
        dependencies,
      ) {
        const platform = createWebPlatform({
          ...dependencies,
          loginMode,
          hasTitles: PAGE_TITLES === "model" && !dependencies.gateway.isSandbox,
          trustedProxies: PAGE_TRUSTED_PROXIES,
          ...(password === undefined ? {} : { password }),
        });
        return {
          platform,
          handler: platform.handle,
          allowedHosts: PAGE_HOSTS,
          erasure: platform.erasure,
        };
      },
    };
  },
});
