import { z } from "zod";
import { definePlatform } from "../../core/platform-module.ts";
import { hostList, list, text } from "../../core/settings.ts";
import { isAddressOrNetwork, isVast } from "../../support/http/client-address.ts";
import { accountName } from "./accounts/accounts.ts";
import { bindProblem } from "./page-login.ts";

/** Describes the local page for the registry. */
export const web = definePlatform({
  id: "web",
  title: "Page",
  settings: {
    PAGE: {
      schema: z.enum(["auto", "on", "off"]).default("auto"),
      description: "`on`, `off`, or `auto`: on when no platform is",
      question: { text: "Show it (on, off; auto: only without Discord and Slack)" },
    },
    PAGE_HOSTS: {
      schema: hostList,
      description: "further names the page is reached by, such as `chat.example.org`, separated by commas",
    },
    PAGE_PASSWORD: {
      schema: text.min(8, "needs at least 8 characters").optional(),
      description: "opens the shared account; needed unless `HOST` is loopback or `PAGE_LOGIN=accounts`",
      note: "8 characters or more. Who has it sees all chats of the shared account, and is an admin of the page.",
      isSecret: true,
      question: {
        text: "Password of the page, 8 characters or more (empty: none)",
        when: (inForce, isOn) => isOn && inForce("PAGE_LOGIN") !== "accounts",
      },
    },
    PAGE_LOGIN: {
      schema: z.enum(["auto", "accounts"]).default("auto"),
      description: "`accounts`: nobody opens the page without an account of their own (`npm run account`)",
      note: "auto: where there are accounts, a login is needed; PAGE_PASSWORD opens the shared account beside them.",
      question: {
        text: "Does everybody have an account of their own (npm run account), instead of one password for all?",
        when: (_, isOn) => isOn,
        yes: { value: "accounts", is: (login) => login === "accounts" },
      },
    },
    PAGE_TITLES: {
      schema: z.enum(["model", "first-words"]).default("model"),
      description:
        "the title of a chat: `model` asks its model once, which counts as usage; or `first-words`",
      note: "The sandbox always takes the first words.",
    },
    PAGE_TRUSTED_PROXIES: {
      schema: list
        .refine(
          (entries) => entries.every(isAddressOrNetwork),
          "must be IP addresses or networks (10.0.0.0/8)",
        )
        .refine(
          (entries) => !entries.some(isVast),
          "trusts a large part of the internet, from which everybody could name any address as theirs and guess passwords without delay: list the proxy's own address",
        )
        .default([]),
      description: "proxies whose `X-Forwarded-For` is believed: addresses or networks",
      note: "It names the client, for the delay after wrong passwords. Empty: the connection's own address counts.",
    },
  },
  setup: {
    intro: `Chats in the browser (docs/using.md). In a container it listens to all addresses, and needs a password or
accounts, as everywhere where other machines reach it.`,
    checkedBy: "Settings",
    asks: ["PAGE", "HOST", "PAGE_LOGIN", "PAGE_PASSWORD"],
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
