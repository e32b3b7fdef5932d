import { LRUCache } from "lru-cache";
import { ParleyError } from "../../core/errors.ts";
import type { Claims, Records } from "../../core/storage.ts";
import { toConversationId } from "./address.ts";
import { createInstalledToken } from "./installed-token.ts";
import { createInstallations, toIdentity, type StoredInstallation } from "./installations.ts";
import { createInstaller, type AppCredentials, type Installer } from "./installer.ts";
import { sharedEventOf, teamsOfPayload, type SharedEvent } from "./payload-teams.ts";
import { mentions } from "./plain-text.ts";
import { createSharedChannels } from "./shared-channels.ts";
import { createTeam, type Team, type TeamSurroundings } from "./team.ts";
import { warnOfMissingScopes, type Teams } from "./teams.ts";
import { createUninstaller } from "./uninstall.ts";

/** What {@link openInstalledTeams} needs besides what all workspaces share. */
export interface InstalledTeamsOptions {
  readonly app: AppCredentials;
  readonly records: Records;
  readonly claims: Claims;
  /** The workspace of `SLACK_BOT_TOKEN`, where one is set: it needs no installation. */
  readonly own: Teams | undefined;
}

/** Every workspace where people have installed the app. */
export interface InstalledTeams extends Teams {
  readonly handler: Installer["handler"];
}

/** Of workspaces that were quiet for longest, nothing is in memory. */
const maxTeams = 200;
const maxPeople = 500;
/** Channels whose workspace is known, for their names. */
const maxChannels = 5000;

/** @see {@link InstalledTeams} */
export function openInstalledTeams(
  { app, records, claims, own }: InstalledTeamsOptions,
  surroundings: TeamSurroundings,
): InstalledTeams {
  const around = { ...surroundings, maxPeople };
  const { bolt, apiUrl, receiver, history, clock, log } = around;
  const installations = createInstallations(records, clock);
  const loaded = new LRUCache<string, Team>({ max: maxTeams, dispose: (team) => team.release() });
  const installationOf = new WeakMap<Team, string>();
  const loading = new Map<string, Promise<Team | undefined>>();
  const teamOfChannel = new LRUCache<string, string>({ max: maxChannels });
  /** Told of once, that the app is not installed there. */
  const unknown = new LRUCache<string, true>({ max: maxTeams });

  const installer = createInstaller({
    ...app,
    bolt,
    apiUrl,
    installations,
    records,
    claims,
    clock,
    onInstalled(id) {
      // The bot may be another user now. What is being shown goes on with the old one.
      for (const [teamId, team] of loaded.entries())
        if (installationOf.get(team) === id) loaded.delete(teamId);
      unknown.clear();
    },
    log,
  });
  const shared = createSharedChannels(records);
  const uninstaller = createUninstaller({
    installations,
    shared,
    receiver,
    history,
    forget: (teamId) => void loaded.delete(teamId),
    log,
  });

  async function create(found: StoredInstallation, teamId: string): Promise<Team | undefined> {
    const identity = toIdentity(found, teamId);
    if (identity === undefined) return undefined;
    const token = createInstalledToken({
      found,
      installations,
      claims,
      rotate: (stored) => installer.rotate(stored),
      clock,
      log,
    });
    const team = await createTeam(identity, token, { ...around, log: log.child({ team: teamId }) });
    warnOfMissingScopes(identity, around);
    installationOf.set(team, found.id);
    loaded.set(teamId, team);
    return team;
  }

  /**
   * Of an event in a channel that several workspaces with the app share Slack names any of them. It is for the bot that is
   * mentioned, else for the one whose thread it is in.
   * @see https://docs.slack.dev/apis/events-api#authorizations
   */
  async function responsible({ channel, root, text }: SharedEvent, named: Team): Promise<Team> {
    await shared.note(channel, named.id);
    const ids = (await shared.teamsIn(channel)).filter((id) => id !== named.id);
    if (ids.length === 0) return named;
    const loaded = await Promise.all(ids.map((id) => load(id)));
    const teams = [named, ...loaded.filter((team) => team !== undefined)];
    const mentioned = teams.find(({ botUserId }) => mentions(text, botUserId));
    if (mentioned !== undefined) return mentioned;
    for (const team of teams) {
      const answers = await receiver.answersTo(toConversationId(team.id, channel, root), {});
      if (answers !== undefined) return team;
    }
    return named;
  }

  function inMemory(teamId: string): Team | undefined {
    const [only] = own?.all() ?? [];
    // Files that were accepted when there was only one workspace name none.
    return only !== undefined && (teamId === only.id || teamId === "") ? only : loaded.get(teamId);
  }

  async function load(teamId: string, enterpriseId?: string): Promise<Team | undefined> {
    const known = inMemory(teamId);
    if (known !== undefined) return known;
    const begun = loading.get(teamId);
    if (begun !== undefined) return await begun;
    const work = installations
      .find(teamId, enterpriseId)
      .then((found) => (found === undefined ? undefined : create(found, teamId)))
      .finally(() => loading.delete(teamId));
    loading.set(teamId, work);
    return await work;
  }

  return {
    handler: installer.handler,
    loaded: inMemory,
    withChannel(channel) {
      const teamId = teamOfChannel.get(channel);
      return teamId === undefined ? undefined : inMemory(teamId);
    },
    async find(teamId) {
      const team = await load(teamId);
      if (team !== undefined) return team;
      throw new ParleyError("platform-unauthorized", `the app is not installed in the workspace ${teamId}`);
    },
    async handling(body) {
      const candidates = teamsOfPayload(body);
      for (const { teamId, enterpriseId } of candidates) {
        const team = await load(teamId, enterpriseId);
        if (team === undefined) continue;
        const channel = channelOf(body);
        if (channel !== undefined) teamOfChannel.set(channel, teamId);
        const sharedEvent = sharedEventOf(body);
        return sharedEvent === undefined ? team : await responsible(sharedEvent, team);
      }
      const [{ teamId } = { teamId: "" }] = candidates;
      if (!unknown.has(teamId))
        log.warn({ team: teamId }, "event of a workspace where the app is not installed: ignored");
      unknown.set(teamId, true);
      return undefined;
    },
    all: () => [...(own?.all() ?? []), ...loaded.values()],
    ending(body) {
      const erase = uninstaller.ending(body);
      const revoke = own?.ending(body);
      return erase === undefined ? undefined : () => Promise.all([erase(), revoke?.()]).then(() => {});
    },
    refusal: () => own?.refusal(),
  };
}

function channelOf(body: Readonly<Record<string, unknown>>): string | undefined {
  const event = body["event"] as { readonly channel?: unknown } | undefined;
  const channel = event?.channel ?? body["channel_id"];
  return typeof channel === "string" ? channel : undefined;
}
