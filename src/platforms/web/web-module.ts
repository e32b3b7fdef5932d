import { z } from "zod";
import { definePlatform } from "../../core/platform-module.ts";
import { list, text } from "../../core/settings.ts";
import { isAddressOrNetwork } from "./client-address.ts";
import { bindProblem } from "./guard.ts";

/** The local page for the registry. */
export const web = definePlatform({
  id: "web",
  title: "Page",
  settings: {
    PAGE: {
      schema: z.enum(["auto", "on", "off"]).default("auto"),
      description: "`on`, `off`, or on when no platform is",
    },
    PAGE_HOSTS: {
      schema: list.default([]),
      description: "further names the page is reached by, behind a proxy",
    },
    PAGE_PASSWORD: {
      schema: text.min(8, "needs at least 8 characters").optional(),
      description: "needed when `HOST` is not loopback and the page is on",
      isSecret: true,
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
  accessTerms: {},
  isOn: ({ PAGE }) => (PAGE === "auto" ? "alone" : PAGE === "on"),
  problems: () => [],
  startProblems({ PAGE_PASSWORD }, { host, isOn }) {
    const problem = isOn ? bindProblem(host, PAGE_PASSWORD) : undefined;
    return problem === undefined ? [] : [problem];
  },
  startLine({ PAGE, PAGE_PASSWORD }, { isOn, url }) {
    if (isOn) return `on   ${url}${PAGE_PASSWORD === undefined ? "" : "  (with password)"}`;
    return PAGE === "off" ? "off  PAGE=off" : "off  a platform is on; PAGE=on shows it as well";
  },
  tools: {},
  async load() {
    const [{ createWebPlatform }, { checkBind }] = await Promise.all([
      import("./platform.ts"),
      import("./guard.ts"),
    ]);
    return {
      create(
        { PAGE_HOSTS, PAGE_PASSWORD: password, PAGE_TRUSTED_PROXIES },
        { commands, log, dataDir, sealer, retentionMs, host, gateway },
      ) {
        checkBind(host, password);
        const platform = createWebPlatform({
          commands,
          log,
          dataDir,
          sealer,
          trustedProxies: PAGE_TRUSTED_PROXIES,
          ...(retentionMs === undefined ? {} : { retentionMs }),
          banner: () => ({ gateway: gateway.name, isSandbox: gateway.isSandbox }),
          ...(password === undefined ? {} : { password }),
        });
        return {
          platform,
          handler: (request, response, target) => platform.handle(request, response, target),
          allowedHosts: PAGE_HOSTS,
          erasure: platform.erasure,
        };
      },
    };
  },
});
