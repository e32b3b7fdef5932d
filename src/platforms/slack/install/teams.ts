import type { DeliveryState } from "../../../core/platform.ts";
import { parseAddress, teamOfAddress } from "../address.ts";
import { botScopes } from "./manifest.ts";
import { createTeam, type Team, type TeamSurroundings } from "../team.ts";
import { isEnd } from "./uninstall.ts";
import { createCall, identify, type Identity, type TeamToken } from "../transport/web-api.ts";

export interface Teams {
  loaded(teamId: string): Team | undefined;
  /** Returns the workspace where a channel was last seen. */
  withChannel(channel: string): Team | undefined;
  /**
   * Finds a workspace.
   * @throws ParleyError `platform-unauthorized` where the app is not installed there
   */
  find(teamId: string): Promise<Team>;
  /** Resolves to the workspace whose app handles a payload, and to `undefined` where it is nobody's. */
  handling(body: Record<string, unknown>): Promise<Team | undefined>;
  all(): readonly Team[];
  /** Returns what follows where the payload ends an installation, and otherwise `undefined`. */
  ending(body: Record<string, unknown>): (() => Promise<void>) | undefined;
  /** Returns why Slack refuses the bot token of the settings, as its last call showed. */
  refusal(): string | undefined;
}

/**
 * Opens the one workspace of `SLACK_BOT_TOKEN`.
 * @throws ParleyError `platform-unauthorized`, `platform-unreachable`
 */
export async function openSingleTeam(botToken: string, around: TeamSurroundings): Promise<Teams> {
  const { bolt, log } = around;
  let refusal: string | undefined;
  let isReady = false;
  const token: TeamToken = {
    source: "SLACK_BOT_TOKEN",
    current: () => Promise.resolve(botToken),
    used(found) {
      if (found !== undefined && refusal === undefined && isReady)
        log.error({ slackError: found }, "Slack no longer accepts SLACK_BOT_TOKEN: install the app again");
      refusal = found;
    },
  };
  const identity = await identify(createCall(bolt, token, log));
  const team = createTeam(identity, token, around);
  warnOfMissingScopes(identity, around);
  isReady = true;
  return {
    loaded: () => team,
    withChannel: () => team,
    find: () => Promise.resolve(team),
    handling: (body) => Promise.resolve(isOfOthers(body, team.id) ? undefined : team),
    all: () => [team],
    // What is stored stays, because a new token is for the same people.
    ending: (body) =>
      isEnd(body["event"]) && body["team_id"] === team.id
        ? async () => token.used("token_revoked")
        : undefined,
    refusal: () => refusal,
  };
}

/** Returns whether an event is about other workspaces alone, where a distributed app is installed too. */
function isOfOthers({ authorizations }: Record<string, unknown>, teamId: string): boolean {
  if (!Array.isArray(authorizations) || authorizations.length === 0) return false;
  return (authorizations as readonly { readonly team_id?: unknown }[]).every(
    ({ team_id: id }) => typeof id === "string" && id !== teamId,
  );
}

export function warnOfMissingScopes({ scopes, teamId }: Identity, { log }: TeamSurroundings): void {
  const missing = scopes.length === 0 ? [] : botScopes.filter((scope) => !scopes.includes(scope));
  if (missing.length === 0) return;
  log.warn(
    { team: teamId, missing },
    "the Slack app lacks scopes: update it from `npm run slack:manifest` and reinstall it",
  );
}

/** Returns what waits in all workspaces. Each has a bound of its own, as it has limits of its own. */
export function deliveryOf(teams: () => readonly Team[]): DeliveryState {
  return {
    isFull(saved) {
      const address = parseAddress(saved);
      const team = teams().find(({ id }) => id === teamOfAddress(address));
      return team !== undefined && (team.isCrowded(address.channel) || team.delivery.isFull());
    },
    waiting() {
      const all = teams().flatMap(({ delivery }) => delivery.waiting());
      const alike = Map.groupBy(all, ({ method, urgency }) => `${method} ${urgency}`);
      return Array.from(alike.values(), (counted) => ({
        ...counted[0]!,
        count: counted.reduce((sum, { count }) => sum + count, 0),
      }));
    },
  };
}
