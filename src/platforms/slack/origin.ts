import type { Actor } from "../../core/access.ts";
import type { Origin } from "../../core/events.ts";
import {
  isDirectMessages,
  toChannelPlace,
  toAuthorId,
  toChannelTerm,
  toTeamTerm,
  toUserTerm,
} from "./address.ts";
import type { People } from "./people.ts";
import type { SlackUserInfo } from "./web-api.ts";
import { currentLocale } from "../../words/translate.ts";

/** Who did something, as Slack's payload has it. */
export interface SlackActor {
  readonly user: string;
  /** Empty: outside of channels and conversations. */
  readonly channel: string;
  /** The workspace of the user, where the payload has it. */
  readonly team: string | undefined;
}

/** Who asks and from where, in the terms of the access rules. */
export interface Origins {
  /**
   * Somebody of another workspace, in a shared channel, is a stranger; guests are members. Where Slack does not describe
   * the user in time, the payload decides, and without a workspace there it is a stranger. Never throws.
   */
  originOf(actor: SlackActor): Promise<Origin>;
  /** The same with the name, for buttons. Never throws. */
  actorOf(actor: SlackActor): Promise<Actor>;
}

/** What may differ from one deployment to another. */
export interface OriginOptions {
  /** In channels, strangers count as members, though not as members of the workspace. Default false. */
  readonly admitsStrangers?: boolean | undefined;
}

/** For the workspace with this id. @see {@link Origins} */
export function createOrigins(
  people: People,
  teamId: string,
  { admitsStrangers = false }: OriginOptions = {},
): Origins {
  async function originOf({ user, channel, team }: SlackActor): Promise<Origin> {
    const info = await people.find(user);
    const isMember = info === undefined ? team === teamId : isInTeam(info, teamId);
    const home = info?.teamId ?? team;
    const isInChannel = channel !== "" && !isDirectMessages(channel);
    return {
      user: toUserTerm(user),
      server: toTeamTerm(teamId),
      ...(isMember || home === undefined ? {} : { home: toTeamTerm(home) }),
      ...(isInChannel
        ? { channel: toChannelTerm(channel), channelPlace: toChannelPlace(teamId, channel) }
        : {}),
      isMember: isMember || (admitsStrangers && isInChannel),
      isManager: isMember && info?.isAdmin === true,
    };
  }

  return {
    originOf,
    async actorOf(actor) {
      const [origin, name] = await Promise.all([originOf(actor), people.nameOf(actor.user)]);
      return {
        platform: "slack",
        author: { id: toAuthorId(teamId, actor.user), name, ...currentLocale() },
        origin,
      };
    },
  };
}

/** Also somebody of another workspace of the same organisation who is in this one. */
function isInTeam({ teamId: home, teams, isStranger }: SlackUserInfo, teamId: string): boolean {
  return !isStranger && (home === undefined || home === teamId || teams.includes(teamId));
}
