import type { WebClient } from "@slack/web-api";
import type { Log } from "../../../core/telemetry.ts";
import { isTokenRefusal, slackErrorCode, toParleyError } from "../errors.ts";
import type { Bolt } from "./durable-app.ts";

export interface Identity {
  readonly teamId: string;
  readonly userId: string;
  readonly botId: string;
  /** The bot's user name, where Slack has just told it. */
  readonly name?: string;
  /** This is the address of the workspace, with which addresses of its messages begin. */
  readonly url?: string;
  /** The token is of a whole organisation, and names no workspace. */
  readonly isOrganisation?: true;
  /** The token has these scopes. They are empty if Slack did not list them. */
  readonly scopes: readonly string[];
}

export interface TeamToken {
  /** Errors name this source of the token: the name of a setting, or "the installation of the app". */
  readonly source: string;
  /**
   * Returns the current token.
   * @throws ParleyError `platform-unauthorized` where there is none any more
   */
  current(): Promise<string>;
  /** Notes Slack's error code where it has refused the current token, else `undefined`. */
  used(refusal: string | undefined): void;
}

export type Call = ReturnType<typeof createCall>;

/** Returns what calls the Web API with the current token. Failures are ParleyErrors; nothing is retried. */
export function createCall(bolt: Bolt, token: TeamToken, log: Log) {
  let made: { readonly token: string; readonly client: WebClient } | undefined;
  return async <T>(method: string, send: (client: WebClient) => Promise<T>): Promise<T> => {
    const current = await token.current();
    if (made?.token !== current) made = { token: current, client: bolt.createClient(current) };
    try {
      const response = await send(made.client);
      token.used(undefined);
      return response;
    } catch (error) {
      const failure = toParleyError(error, method, token.source);
      const code = slackErrorCode(failure);
      if (code !== undefined && isTokenRefusal(code)) token.used(code);
      log.debug({ method, code: failure.code, ...failure.detail }, "Slack call failed");
      throw failure;
    }
  };
}

export async function identify(call: Call): Promise<Identity> {
  const response = await call("auth.test", (client) => client.auth.test());
  return {
    teamId: String(response.team_id),
    userId: String(response.user_id),
    botId: String(response.bot_id),
    ...(response.user === undefined ? {} : { name: response.user }),
    ...(response.url === undefined ? {} : { url: response.url }),
    ...(response.is_enterprise_install === true ? { isOrganisation: true } : {}),
    scopes: response.response_metadata?.scopes ?? [],
  };
}
