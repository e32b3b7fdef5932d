import { right, warning, wrong, type Finding } from "../../core/checks.ts";
import { isLoopback } from "../../support/loopback.ts";
import { eventsPath } from "./paths.ts";

const apps = "https://api.slack.com/apps";

/** Whether the text has the form of a signing secret; only a request of Slack's shows whether it is the right one. */
export function checkSigningSecret(secret: string): Finding {
  if (/^[\da-f]{32}$/i.test(secret))
    return right(
      "Signing",
      "the secret has the form of Slack's; the first request shows whether it is the app's",
    );
  return warning(
    "Signing",
    "SLACK_SIGNING_SECRET does not have the form of Slack's: 32 characters of 0-9 and a-f",
    `copy the Signing Secret again, not the client secret: Basic Information at ${apps}`,
  );
}

/** Whether Slack can send requests to the public address. It is not called: that would need the bot to run. */
export function checkRequestUrl(publicUrl: string | undefined): Finding {
  if (publicUrl === undefined)
    return warning(
      "Requests",
      `SLACK_PUBLIC_URL is not set: Slack must reach POST ${eventsPath} of this server over https`,
      "set SLACK_PUBLIC_URL, and paste the manifest (npm run slack:manifest) that has the addresses then",
    );
  const { protocol, hostname } = new URL(publicUrl);
  if (protocol === "https:" || isLoopback(hostname))
    return right("Requests", `expected at ${publicUrl.replace(/(?<!\/)\/+$/, "")}${eventsPath}`);
  return wrong(
    "Requests",
    "SLACK_PUBLIC_URL begins with http://: Slack sends requests to https addresses only",
    "put a proxy with a certificate in front (deploy/nginx.conf, deploy/Caddyfile)",
  );
}
