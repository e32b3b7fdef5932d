import type { HTTPReceiver } from "@slack/bolt";
import type { Clock } from "../../core/clock.ts";
import { createRareLog } from "../../support/rare-log.ts";
import { ParleyError } from "../../core/errors.ts";
import type { HttpHandler } from "../../core/platform-module.ts";
import type { Claims, Records } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import { negotiateLanguage } from "../../words/languages.ts";
import { inLanguage } from "../../words/translate.ts";
import type { Bolt } from "./bolt.ts";
import { beginPage, installedPage, toInstallFailure } from "./install-words.ts";
import { sendPage, setPageHeaders, toHtml } from "./install-page.ts";
import { createInstallStates, stateLifeMs } from "./install-state.ts";
import type { Installations, StoredInstallation } from "./installations.ts";
import { botScopes } from "./manifest.ts";
import { installPath, redirectPath } from "./paths.ts";

/** The app as Slack knows it, for installations in any workspace. */
export interface AppCredentials {
  readonly clientId: string;
  readonly clientSecret: string;
  /** Where browsers reach this server. Default: Slack sends them to the first redirect URL of the app. */
  readonly publicUrl?: string | undefined;
}

/** What {@link createInstaller} needs. */
export interface InstallerOptions extends AppCredentials {
  readonly bolt: Bolt;
  readonly apiUrl: string;
  readonly installations: Installations;
  readonly records: Records;
  readonly claims: Claims;
  readonly clock: Clock;
  /** Called when people have installed the app; the id is that of the workspace or organisation. */
  readonly onInstalled: (id: string) => void;
  readonly log: Log;
}

/** Installs the app in workspaces, and keeps their tokens fresh. */
export interface Installer {
  /** Of {@link installPath} and {@link redirectPath}. */
  readonly handler: HttpHandler;
  /** Exchanges the refresh token and stores the new ones. A failure is logged by Slack's SDK. */
  rotate(stored: StoredInstallation): Promise<void>;
}

/** Slack's own installer over our store, with one-time states and words of our own. */
export function createInstaller(options: InstallerOptions): Installer {
  const { bolt, apiUrl, clientId, clientSecret, publicUrl, installations, onInstalled, log } = options;
  const warnRarely = createRareLog(log, () => options.clock.monotonic());
  const states = createInstallStates(clientSecret, options);
  const redirectUri =
    publicUrl === undefined ? undefined : publicUrl.replace(/(?<!\/)\/+$/, "") + redirectPath;
  const urlOptions = { scopes: [...botScopes], ...(redirectUri === undefined ? {} : { redirectUri }) };
  const { installer } = new bolt.sdk.HTTPReceiver({
    // It takes no events.
    signingSecret: "none",
    signatureVerification: false,
    logger: bolt.logger,
    clientId,
    clientSecret,
    scopes: [...botScopes],
    installationStore: installations.store,
    installerOptions: {
      clientOptions: bolt.clientOptions(),
      authorizationUrl: new URL("../oauth/v2/authorize", apiUrl).href,
      stateCookieName: "parley-slack-state",
      stateCookieExpirationSeconds: stateLifeMs / 1000,
      renderHtmlForInstallPath: (url) => toHtml(beginPage(url)),
      stateStore: {
        generateStateParam: () => Promise.resolve(states.create()),
        async verifyStateParam(_now, state) {
          if (!(await states.use(state))) throw invalidState();
          return urlOptions;
        },
      },
    },
  });
  if (installer === undefined) throw new ParleyError("internal", "Slack's SDK made no installer");
  const provider = installer;

  const callbackOptions: Parameters<Provider["handleCallback"]>[2] = {
    afterInstallation(installation) {
      installations.noteNew(installation);
      return Promise.resolve(true);
    },
    success(installation, _options, _request, response) {
      const { team, enterprise, isEnterpriseInstall = false } = installation;
      const id = (isEnterpriseInstall ? enterprise?.id : team?.id) ?? "";
      log.info({ installation: id, isEnterpriseInstall }, "Slack app installed");
      onInstalled(id);
      sendPage(response, 200, installedPage(installation));
    },
    failure(error, _options, _request, response) {
      const { status, reason, page } = toInstallFailure(error);
      warnRarely(String(status), { status, reason }, "Slack installation failed");
      sendPage(response, status, page);
    },
  };

  return {
    async handler(request, response, { path }) {
      if (path !== installPath && path !== redirectPath) return false;
      if (request.method !== "GET") {
        response.writeHead(405, { Allow: "GET" });
        response.end();
        return true;
      }
      setPageHeaders(response);
      await inLanguage(negotiateLanguage(request.headers["accept-language"]), () =>
        path === installPath
          ? provider.handleInstallPath(request, response, {}, urlOptions)
          : provider.handleCallback(request, response, callbackOptions),
      );
      return true;
    },
    async rotate({ id, installation: { isEnterpriseInstall = false } }) {
      await provider.authorize(
        isEnterpriseInstall
          ? { isEnterpriseInstall: true, enterpriseId: id, teamId: undefined }
          : { isEnterpriseInstall: false, teamId: id, enterpriseId: undefined },
      );
    },
  };
}

type Provider = NonNullable<HTTPReceiver["installer"]>;

/** As Slack's SDK names it. */
function invalidState(): Error {
  return Object.assign(new Error("the state is not valid any more"), { code: "slack_oauth_invalid_state" });
}
