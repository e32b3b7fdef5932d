import type { Clock } from "../../core/clock.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Command } from "../../core/command.ts";
import type { DeliveryState } from "../../core/platform.ts";
import type { ConversationHistory, Receiver } from "../../core/receiver.ts";
import type { Log, Meter } from "../../core/telemetry.ts";
import { type SlackAddress, parseAddress, teamOfAddress } from "./address.ts";
import { createAppHome } from "./press/app-home.ts";
import type { Bolt } from "./transport/durable-app.ts";
import { createCommandCalls } from "./intake/commands.ts";
import { createCall, type Identity, type TeamToken, identify } from "./transport/call.ts";
import { createWorkspaceLimits } from "./transport/lanes.ts";
import { createSlackApi } from "./transport/web-api.ts";
import { organisationToken, withoutLookupTime } from "./errors.ts";
import { createFiles } from "./intake/files.ts";
import { createIncoming } from "./intake/incoming.ts";
import type { TeamHandlers } from "./listeners.ts";
import { createCallerNotices, createRefusalNotices, createWelcome } from "./press/notices.ts";
import { createOrigins, type OriginOptions, createPeople } from "./people.ts";
import { createSlackReplies, type ReplyMemory } from "./reply/replies.ts";
import { createSlackLookUp } from "./intake/missed.ts";
import { createMessageReader } from "./intake/read-message.ts";
import { createRoomReader, toMessageLink } from "./intake/read-room.ts";
import { botScopes } from "./install/manifest.ts";
import { isEnd } from "./install/uninstall.ts";

export interface TeamSurroundings extends OriginOptions {
  readonly bolt: Bolt;
  readonly apiUrl: string;
  readonly commands: ReadonlyMap<string, Command>;
  readonly commandPrefix: string;
  readonly receiver: Receiver;
  readonly history: ConversationHistory;
  readonly log: Log;
  readonly meter?: Meter | undefined;
  readonly memory: ReplyMemory;
  readonly clock: Clock;
  /**
   * This keeps which channels were welcomed, and until when all was heard. By default nobody is welcomed and
   * nothing is looked up. It must outlast the process.
   */
  readonly kept?: Parameters<typeof createWelcome>[0]["kept"];
}

/** This is the bot in one workspace: its identity, its token, its limits, and what it shows there. */
export type Team = ReturnType<typeof createTeam>;

/** Slack waits three seconds for the acknowledgement of an invitation. */
const welcomeLookupMs = 2000;
/** Returns the bot in the workspace of `identity`. It makes no call. */
export function createTeam(identity: Identity, token: TeamToken, around: TeamSurroundings) {
  const { bolt, apiUrl, memory, clock, log, meter } = around;
  const { teamId } = identity;
  const limits = createWorkspaceLimits({ clock, meter });
  const api = createSlackApi(createCall(bolt, token, log), limits, clock);
  const people = createPeople({
    lookUp: (id) => api.userInfo(id),
    lookUpChannel: (id) => api.publicChannelName(id),
    log,
    clock,
  });
  const read = createMessageReader({ api, identity, names: people, log });
  const readRoom = createRoomReader({ api, identity, names: people, read, clock });
  const files = createFiles({ api, token: () => token.current(), apiUrl });
  const replies = createSlackReplies({ ...around, api, limits, identity });
  const origins = createOrigins(people, teamId, around);
  const refusals = createRefusalNotices(api, log, clock);
  const its = { ...around, api, teamId, identity, people, names: people, read, origins, refusals };
  const closing = new AbortController();
  const incoming = createIncoming({
    ...its,
    isOwnRemoval: (ts) => replies.replaced.isOwn(ts),
    mayFindIn: (channel) => lookUp?.mayFindIn(channel) === true,
    saveTitle: (key, title) => void memory.titles.set(key, title),
  });
  const lookUp =
    around.kept === undefined
      ? undefined
      : createSlackLookUp({ ...its, incoming, records: around.kept.records, signal: closing.signal });
  const handlers: TeamHandlers = {
    ...its,
    incoming,
    calls: createCommandCalls(its),
    notices: createCallerNotices(api, log),
    home: createAppHome(its),
    // A welcome is worth the wait: nobody has asked for it.
    welcome: createWelcome({
      ...its,
      kept: around.kept,
      languageOf: (id) => withoutLookupTime(() => people.languageOf(id, welcomeLookupMs)),
    }),
    replaceUrls: memory.replaceUrls,
  };
  return {
    ...replies,
    id: teamId,
    botUserId: identity.userId,
    /** The bot posts its messages under this id. */
    botId: identity.botId,
    /** These handle what Slack delivers about this workspace. */
    handlers,
    /** Calls wait here for room under the limits of this workspace. */
    delivery: limits,
    files,
    /** The address of a message in the channel or thread, unless the workspace's is not known. */
    linkTo: (at: SlackAddress, key: string) => toMessageLink(identity, at, key),
    readRoom: (...asked: Parameters<typeof readRoom>) => withoutLookupTime(() => readRoom(...asked)),
    /** Resolves to the name of a user. It never throws. */
    userName: async (user: string) => (await withoutLookupTime(() => people.find(user)))?.name,
    /** Is called every half minute while Slack is connected. It looks up what nobody heard. */
    heard: async () => withoutLookupTime(async () => lookUp?.heard()),
    /** Looks for no messages any more. */
    pause: () => closing.abort(new ParleyError("stopping", "the Slack platform is stopping")),
    /** Removes no messages any more. */
    stop: () => replies.replaced.close(),
    /** Aborts downloads. */
    close: () => files.close(),
  };
}

export interface Teams {
  loaded(teamId: string): Team | undefined;
  /** Returns the workspace where a channel was last seen. */
  withChannel(channel: string): Team | undefined;
  /**
   * Finds a workspace.
   * @throws ParleyError `platform-unauthorized` where the app is not installed there
   */
  find(teamId: string): Promise<Team>;
  /** Resolves to the workspace that a payload is about, and to `undefined` where it is nobody's. */
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
  if (identity.isOrganisation === true)
    throw new ParleyError("config", `${organisationToken.problem}: ${organisationToken.remedy}`);
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
