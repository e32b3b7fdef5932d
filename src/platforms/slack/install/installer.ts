import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import {
  ClearStateStore,
  InstallProvider,
  InvalidStateError,
  type CallbackOptions,
  type Installation,
  type StateStore,
} from "@slack/oauth";
import type { Clock } from "../../../core/clock.ts";
import { isParleyError } from "../../../core/errors.ts";
import type { HttpHandler } from "../../../core/platform-module.ts";
import type { Claims, Records } from "../../../core/storage.ts";
import { type Log, createRareLog } from "../../../core/telemetry.ts";
import { systemClock } from "../../../support/clock.ts";
import { currentLanguage, translate, inLanguage } from "../../../words/translate.ts";
import { negotiateLanguage } from "../../../words/languages.ts";
import { installPath, redirectPath } from "../address.ts";
import type { Bolt } from "../transport/durable-app.ts";
import { slackErrorCode } from "../errors.ts";
import type { Installations, StoredInstallation } from "./installations.ts";
import { botScopes } from "./manifest.ts";

/** This is the app as Slack knows it, for installations in any workspace. */
export interface AppCredentials {
  readonly clientId: string;
  readonly clientSecret: string;
  /** Browsers reach this server here. By default Slack sends them to the first redirect URL of the app. */
  readonly publicUrl?: string | undefined;
}

interface InstallerOptions extends AppCredentials {
  readonly bolt: Bolt;
  readonly apiUrl: string;
  readonly installations: Installations;
  readonly records: Records;
  readonly claims: Claims;
  readonly clock: Clock;
  /** This is called when people have installed the app, with the id of the workspace or organisation. */
  readonly onInstalled: (id: string) => void;
  readonly log: Log;
}

/**
 * Returns what installs the app in workspaces, and keeps their tokens fresh: Slack's own installer over
 * Parley's store, with Parley's words and states for one use.
 */
export function createInstaller(options: InstallerOptions) {
  const { bolt, apiUrl, clientId, clientSecret, publicUrl, installations, onInstalled, log } = options;
  const warnRarely = createRareLog(log, () => options.clock.monotonic());
  const redirectUri =
    publicUrl === undefined ? undefined : publicUrl.replace(/(?<!\/)\/+$/, "") + redirectPath;
  const urlOptions = { scopes: [...botScopes], ...(redirectUri === undefined ? {} : { redirectUri }) };
  const provider = new InstallProvider({
    clientId,
    clientSecret,
    installationStore: installations.store,
    stateStore: createInstallStates(clientSecret, options),
    stateCookieName: "parley-slack-state",
    stateCookieExpirationSeconds: stateLifeMs / 1000,
    authorizationUrl: new URL("../../oauth/v2/authorize", apiUrl).href,
    renderHtmlForInstallPath: (url) => toHtml(beginPage(url)),
    clientOptions: bolt.clientOptions(),
    logger: bolt.logger,
  });

  async function authorize({ id, installation: { isEnterpriseInstall = false } }: StoredInstallation) {
    try {
      return await provider.authorize(
        isEnterpriseInstall
          ? { isEnterpriseInstall: true, enterpriseId: id, teamId: undefined }
          : { isEnterpriseInstall: false, teamId: id, enterpriseId: undefined },
      );
    } catch (error) {
      throw (error as { readonly original?: unknown }).original ?? error;
    }
  }

  const callbackOptions: CallbackOptions = {
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

  /** This handles the requests of {@link installPath} and {@link redirectPath}. */
  const handler: HttpHandler = async (request, response, { path }) => {
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
  };

  return {
    handler,
    /**
     * Returns the bot's token. Slack's SDK exchanges it two hours before it expires, and logs a failure.
     * @throws ParleyError `platform-unauthorized` where the app is not installed, `store-unavailable`
     */
    tokenOf: async (installed: StoredInstallation): Promise<string | undefined> => {
      const found = await authorize(installed);
      if ((found.botTokenExpiresAt ?? Infinity) * 1000 > options.clock.now()) return found.botToken;
      // Slack accepts a refresh token once. Another instance may have exchanged it at this moment.
      await options.clock.sleep(otherExchangeMs);
      return (await authorize(installed)).botToken;
    },
  };
}

/** An instance exchanges a token and stores the new one in less than this time. */
const otherExchangeMs = 1000;

/** A person may take so long to approve the app. */
const stateLifeMs = 10 * 60_000;

/**
 * Returns proofs that an installation was begun here. Each is accepted once, within ten minutes, by any
 * instance. They are signed, so that a page that anybody may open stores nothing. The library's own store
 * does not keep which of them were used, and this one does.
 * @param secret is the same for all instances
 */
export function createInstallStates(
  secret: string,
  {
    records,
    claims,
    clock = systemClock,
  }: { readonly records: Records; readonly claims: Claims; readonly clock?: Clock },
): StateStore {
  const signed = new ClearStateStore(secret, stateLifeMs / 1000);
  /** A store for one process grants every claim, so that this set remembers what is in use. */
  const using = new Set<string>();
  // The library's time is not used, because the clock of this machine may step.
  const now = (): Date => new Date(clock.now());

  /**
   * Returns whether the state has not been used before.
   * @throws ParleyError `store-unavailable`
   */
  async function use(key: string): Promise<boolean> {
    if (using.has(key)) return false;
    using.add(key);
    try {
      if ((await records.get(key)) !== undefined) return false;
      if (!(await claims.claim(key, stateLifeMs))) return false;
      await records.set(key, true, stateLifeMs);
      return true;
    } finally {
      using.delete(key);
    }
  }

  return {
    generateStateParam: (installOptions) => signed.generateStateParam(installOptions, now()),
    async verifyStateParam(_now, state) {
      const installOptions = await signed.verifyStateParam(now(), state);
      const id = createHash("sha256").update(state).digest("base64url");
      if (await use(`slack state ${id}`)) return installOptions;
      throw new InvalidStateError("the state was used before");
    },
  };
}

/** Returns the page before the installation. Slack asks for approval at `url`. */
function beginPage(url: string): InstallPage {
  return {
    title: translate("slack.install.begin.title"),
    text: translate("slack.install.begin.text"),
    link: { href: url, label: translate("slack.install.begin.link") },
  };
}

function installedPage({ team, enterprise }: Installation): InstallPage {
  const name = team?.name ?? enterprise?.name;
  return {
    title: translate("slack.install.done.title"),
    text:
      name === undefined
        ? translate("slack.install.done.unnamed")
        : translate("slack.install.done.text", { team: name }),
  };
}

/** This says what went wrong to the person who installs the app. The `reason` is for the log. */
interface InstallFailure {
  readonly status: number;
  readonly reason: string;
  readonly page: InstallPage;
}

/** Explains why an installation failed. It quotes nothing that the browser sent. */
function toInstallFailure(error: unknown): InstallFailure {
  const code = slackErrorCode(error) ?? codeOf(error);
  const say = (status: number, kind: "failed" | "link", text: string): InstallFailure => ({
    status,
    reason: code,
    page: {
      title: translate(`slack.install.${kind}.title`),
      text,
      link: { href: installPath, label: translate("slack.install.again") },
    },
  });
  if (isParleyError(error, "store-unavailable"))
    return say(503, "failed", translate("slack.install.failed.store"));
  switch (code) {
    case "slack_oauth_invalid_state":
    case "slack_oauth_missing_state":
      return say(400, "link", translate("slack.install.link.used"));
    case "slack_oauth_missing_code":
      return say(400, "link", translate("slack.install.link.incomplete"));
    case "slack_oauth_installer_authorization_error":
      return say(400, "failed", translate("slack.install.failed.cancelled"));
    case "invalid_code":
    case "code_already_used":
      return say(400, "failed", translate("slack.install.failed.code"));
    case "invalid_client_id":
    case "bad_client_secret":
    case "bad_redirect_uri":
      return say(500, "failed", translate("slack.install.failed.settings", { code }));
    default:
      return say(502, "failed", translate("slack.install.failed.other"));
  }
}

function codeOf(error: unknown): string {
  const { code } = (typeof error === "object" && error !== null ? error : {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : "unknown";
}

interface InstallPage {
  readonly title: string;
  readonly text: string;
  readonly link?: { readonly href: string; readonly label: string };
}

/** These headers keep the page from being framed or cached, and its address from other sites. */
const headers: Readonly<Record<string, string>> = {
  "Content-Type": "text/html; charset=utf-8",
  "Cache-Control": "no-store",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "Content-Security-Policy":
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
};

/** Sets the headers of every page, also where Slack's SDK sends it. */
function setPageHeaders(response: ServerResponse): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
}

function sendPage(response: ServerResponse, status: number, page: InstallPage): void {
  setPageHeaders(response);
  response.writeHead(status);
  response.end(toHtml(page));
}

/** Returns the page as HTML. */
function toHtml({ title, text, link }: InstallPage): string {
  const button = link === undefined ? "" : `<p><a href="${escape(link.href)}">${escape(link.label)}</a></p>`;
  return `<!doctype html><html lang="${currentLanguage()}"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escape(title)}</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:32rem;margin:4rem auto;padding:0 1rem}
a{display:inline-block;padding:.6rem 1rem;border-radius:.4rem;background:#0f766e;color:#fff;text-decoration:none}</style>
<h1>${escape(title)}</h1><p>${escape(text)}</p>${button}</html>
`;
}

function escape(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}
