import { type AuthTestResponse, WebClient, type WebClientOptions } from "@slack/web-api";
import { right, wrong, type CheckContext, type Finding, warning, type Check } from "../../../core/checks.ts";
import { isParleyError } from "../../../core/errors.ts";
import { isLoopback } from "../../../support/http/client-address.ts";
import { eventsPath, publicApiUrl } from "../address.ts";
import { organisationToken, slackErrorCode, toParleyError } from "../errors.ts";
import { botScopes } from "./manifest.ts";

interface SlackCheckOptions {
  readonly botToken: string | undefined;
  readonly appToken: string | undefined;
  readonly signingSecret?: string | undefined;
  readonly publicUrl?: string | undefined;
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  readonly apiUrl?: string | undefined;
}

type Call = <T>(
  token: string | undefined,
  variable: string,
  method: string,
  send: (client: WebClient) => Promise<T>,
) => Promise<T>;

/** Parley works without these scopes; the text says what is missing then. */
const optionalScopes: Readonly<Record<string, string>> = {
  "assistant:write": "no status, no suggested prompts, no Stop button of Slack's",
};

const requestTimeoutMs = 10_000;
const apps = "https://api.slack.com/apps";

/**
 * Returns checks that run side by side: of the bot token with its scopes, of the app-level token with its
 * socket, or of what HTTP mode needs.
 */
export function createSlackChecks(options: SlackCheckOptions): Check[] {
  const { botToken, appToken, signingSecret, publicUrl, clientId, clientSecret } = options;
  const checks: Check[] = [];
  const add = (subject: string, run: (call: Call, context: CheckContext) => Promise<Finding[]>): void =>
    void checks.push({ subject, run: (context) => run(createCall(options, context), context) });
  if (botToken !== undefined) add("Bot token", (call) => checkBotToken(call, botToken, options));
  if (clientId !== undefined && clientSecret !== undefined)
    add("App", (call) => checkClient(call, clientId, clientSecret));
  if (appToken !== undefined) add("App token", (call, context) => checkAppToken(call, appToken, context));
  else if (signingSecret !== undefined)
    add("HTTP mode", () => Promise.resolve([checkSigningSecret(signingSecret), checkRequestUrl(publicUrl)]));
  return checks;
}

async function checkBotToken(
  call: Call,
  botToken: string,
  { appToken }: Pick<SlackCheckOptions, "appToken">,
): Promise<Finding[]> {
  let identity: AuthTestResponse;
  try {
    identity = await call(botToken, "SLACK_BOT_TOKEN", "auth.test", (client) => client.auth.test());
  } catch (error) {
    return [
      toFailure(
        "Bot token",
        error,
        `copy the Bot User OAuth Token again: OAuth & Permissions at ${apps}; after a reinstall it may be another`,
      ),
    ];
  }
  if (identity.is_enterprise_install === true)
    return [wrong("Bot token", organisationToken.problem, organisationToken.remedy)];
  const { user, team, bot_id: bot, response_metadata: metadata } = identity;
  const accepted = right("Bot token", `accepted: ${String(user)} in ${String(team)}`);
  const isSameApp = appToken === undefined ? [] : await checkSameApp(call, botToken, appToken, String(bot));
  return [accepted, ...toScopeFindings(metadata?.scopes ?? []), ...isSameApp];
}

/** Sends a code that nobody has, because Slack says first whether it knows the app. */
async function checkClient(call: Call, clientId: string, clientSecret: string): Promise<Finding[]> {
  try {
    const args = { client_id: clientId, client_secret: clientSecret, code: "doctor" };
    await call(undefined, "SLACK_CLIENT_SECRET", "oauth.v2.access", (client) => client.oauth.v2.access(args));
  } catch (error) {
    if (slackErrorCode(error) === "invalid_code") return [right("App", "Slack knows the app and its secret")];
    const remedy = `copy Client ID and Client Secret again: Basic Information at ${apps}`;
    return [toFailure("App", error, remedy)];
  }
  return [];
}

/** Returns nothing where Slack did not list the scopes. */
function toScopeFindings(scopes: readonly string[]): Finding[] {
  if (scopes.length === 0) return [];
  const missing = botScopes.filter((scope) => !scopes.includes(scope));
  if (missing.length === 0) return [right("Scopes", `all ${botScopes.length} of the manifest`)];
  const isOptional = missing.every((scope) => scope in optionalScopes);
  const effect = isOptional ? `: ${missing.map((scope) => optionalScopes[scope]).join("; ")}` : "";
  const remedy = `paste the manifest again (npm run slack:manifest) at ${apps} under App Manifest, then reinstall the app`;
  return [(isOptional ? warning : wrong)("Scopes", `the app lacks ${missing.join(", ")}${effect}`, remedy)];
}

/** Compares the apps of both tokens, since events of another app would never arrive. */
async function checkSameApp(call: Call, botToken: string, appToken: string, bot: string): Promise<Finding[]> {
  const [, , named = ""] = appToken.split("-");
  if (!/^A[A-Z\d]{6,}$/.test(named)) return [];
  try {
    const info = await call(botToken, "SLACK_BOT_TOKEN", "bots.info", (client) => client.bots.info({ bot }));
    const appId = info.bot?.app_id;
    if (appId === undefined || appId === named) return [];
    return [
      wrong(
        "App",
        `the bot token is of the app ${appId}, the app-level token of ${named}: events would not arrive`,
        `take both tokens from one app: ${apps}/${appId}/general`,
      ),
    ];
  } catch (error) {
    // The scope users:read may be missing, which the line about scopes has said. All other failures came up
    // at `auth.test`.
    if (isParleyError(error)) return [];
    throw error;
  }
}

async function checkAppToken(call: Call, appToken: string, context: CheckContext): Promise<Finding[]> {
  let url: string;
  try {
    const opened = await call(appToken, "SLACK_APP_TOKEN", "apps.connections.open", (client) =>
      client.apps.connections.open({}),
    );
    url = String(opened.url);
  } catch (error) {
    const code = slackErrorCode(error);
    const remedy =
      code === "not_allowed_token_type"
        ? "SLACK_APP_TOKEN takes the app-level token (xapp-…), SLACK_BOT_TOKEN the bot token (xoxb-…)"
        : code === "missing_scope"
          ? `make an app-level token with connections:write: Basic Information at ${apps}`
          : code === "socket_mode_disabled" || code === "forbidden_socket_mode"
            ? `turn on Socket Mode at ${apps}, or paste the manifest again`
            : `make a new app-level token with connections:write: Basic Information at ${apps}`;
    return [toFailure("App token", error, remedy)];
  }
  return [right("App token", "accepted"), await checkSocket(url, context)];
}

function toFailure(subject: string, error: unknown, remedy: string): Finding {
  if (!isParleyError(error)) throw error;
  const code = slackErrorCode(error);
  return code === undefined || error.code === "platform-unreachable" || code === "ratelimited"
    ? wrong(subject, error.message, "look at the network, a proxy and SLACK_API_URL, or try again later")
    : wrong(subject, error.message.replace(/\. Check \w+$/, ""), remedy);
}

function createCall({ apiUrl = publicApiUrl }: SlackCheckOptions, context: CheckContext): Call {
  const { noteDate, signal } = context;
  const request: NonNullable<WebClientOptions["fetch"]> = async (url, init) => {
    const response = await fetch(url, { ...(init as RequestInit), signal });
    noteDate("Slack", response.headers.get("date"));
    return response;
  };
  return async (token, variable, method, send) => {
    const client = new WebClient(token, {
      slackApiUrl: apiUrl,
      fetch: request,
      retryConfig: { retries: 0 },
      rejectRateLimitedCalls: true,
      timeout: requestTimeoutMs,
      logger: silentLogger,
    });
    try {
      return await send(client);
    } catch (error) {
      throw toParleyError(error, method, variable);
    }
  };
}

/** This logger drops the warnings that the client would print. */
const silentLogger: NonNullable<WebClientOptions["logger"]> = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  setLevel() {},
  setName() {},
  getLevel: () => "error" as ReturnType<NonNullable<WebClientOptions["logger"]>["getLevel"]>,
};

/** Checks the form of a signing secret. Only a request of Slack's shows whether it is right. */
function checkSigningSecret(secret: string): Finding {
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

/** Checks the public address without calling it, since the bot would have to run. */
function checkRequestUrl(publicUrl: string | undefined): Finding {
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

/**
 * Checks whether the socket of Socket Mode can be reached. Without `isLive` only its host is connected to: an
 * open socket takes part in the bot's work, and a command that Slack sends to it is lost. With `isLive` the
 * socket is opened until Slack's hello.
 */
export async function checkSocket(url: string, { signal, isLive }: CheckContext): Promise<Finding> {
  const { host, hostname, port, protocol } = new URL(url);
  const isSecure = protocol === "wss:";
  try {
    if (isLive) {
      await waitForHello(url, signal);
      return right("Socket", `opened at ${hostname}`);
    }
    // Whatever it answers, it can be reached.
    await fetch(`${isSecure ? "https" : "http"}://${host}`, { signal, redirect: "manual" });
    return right("Socket", `${hostname} can be reached`);
  } catch (error) {
    const { code, name } = (error instanceof TypeError ? error.cause : error) as NodeJS.ErrnoException;
    const reason = code ?? name;
    return wrong(
      "Socket",
      `no connection to ${hostname} (${reason})`,
      `let this machine connect to ${hostname}:${isSecure ? 443 : port}, WebSocket included, in the firewall or proxy`,
    );
  }
}

function waitForHello(url: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url);
    const close = (): void => socket.close();
    signal.addEventListener("abort", close, { once: true });
    socket.addEventListener("message", () => {
      resolve();
      close();
    });
    socket.addEventListener("error", () => reject(new Error("refused")));
    socket.addEventListener("close", () => {
      signal.removeEventListener("abort", close);
      reject(new Error("closed before hello"));
    });
  });
}
