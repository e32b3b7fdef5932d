import type { WebClient } from "@slack/web-api";
import type { Bolt } from "./bolt.ts";
import type { ApiAccess } from "./web-api.ts";

/** The bot token of one workspace. */
export interface TeamToken {
  /** Where it comes from, for errors: the name of a setting, or "the installation of the app". */
  readonly source: string;
  /** The current one. @throws ParleyError `platform-unauthorized` where there is none any more */
  current(): Promise<string>;
  /** Slack has refused the current token with this error code, or (`undefined`) accepted it. */
  used(refusal: string | undefined): void;
}

/** Calls with that token; each change of it makes a new client. */
export function createApiAccess(bolt: Bolt, token: TeamToken): ApiAccess {
  let made: { readonly token: string; readonly client: WebClient } | undefined;
  return {
    tokenSource: token.source,
    async client() {
      const current = await token.current();
      if (made?.token !== current) made = { token: current, client: bolt.createClient(current) };
      return made.client;
    },
    used: (refusal) => token.used(refusal),
  };
}
