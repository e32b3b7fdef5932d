import type { Installation } from "@slack/bolt";
import { isParleyError } from "../../core/errors.ts";
import { translate } from "../../words/translate.ts";
import { slackErrorCode } from "./errors.ts";
import type { InstallPage } from "./install-page.ts";
import { installPath } from "./paths.ts";

/** Before the installation. `url`: where Slack asks for approval. */
export function beginPage(url: string): InstallPage {
  return {
    title: translate("slack.install.begin.title"),
    text: translate("slack.install.begin.text"),
    link: { href: url, label: translate("slack.install.begin.link") },
  };
}

/** After it. */
export function installedPage({ team, enterprise }: Installation): InstallPage {
  const name = team?.name ?? enterprise?.name;
  return {
    title: translate("slack.install.done.title"),
    text:
      name === undefined
        ? translate("slack.install.done.unnamed")
        : translate("slack.install.done.text", { team: name }),
  };
}

/** What went wrong, for the person who installs. `reason`: for the log. */
export interface InstallFailure {
  readonly status: number;
  readonly reason: string;
  readonly page: InstallPage;
}

/** Explains why an installation failed. Quotes nothing that the browser sent. */
export function toInstallFailure(error: unknown): InstallFailure {
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
