import type { Clock } from "../../../core/clock.ts";
import { isParleyError, ParleyError } from "../../../core/errors.ts";
import type { Claims, Records } from "../../../core/storage.ts";
import type { Log } from "../../../core/telemetry.ts";
import { systemClock } from "../../../support/clock.ts";
import { type StoredInstallation, createInstallations, toIdentity, teamsOfPayload } from "./installations.ts";
import { type AppCredentials, createInstaller } from "./installer.ts";
import type { TeamToken } from "../transport/call.ts";
import { createTeam, type Team, type TeamSurroundings, warnOfMissingScopes, type Teams } from "../team.ts";
import { createUninstaller } from "./uninstall.ts";
import { createRecent } from "../../../support/recent.ts";

interface InstalledTeamsOptions {
  readonly app: AppCredentials;
  readonly records: Records;
  readonly claims: Claims;
  /** This is the workspace of `SLACK_BOT_TOKEN`, where one is set. It needs no installation. */
  readonly own: Teams | undefined;
}

/** So many workspaces where the app is not installed are remembered. */
const maxUnknown = 200;
/** The workspaces of so many channels are known, for the channels' names. */
const maxChannels = 5000;

/** Returns all workspaces where people have installed the app, and where they install it. */
export function openInstalledTeams(
  { app, records, claims, own }: InstalledTeamsOptions,
  around: TeamSurroundings,
): Teams & Pick<ReturnType<typeof createInstaller>, "handler"> {
  const { bolt, apiUrl, receiver, history, clock, log } = around;
  const installations = createInstallations(records, clock);
  const loaded = new Map<string, Team>();
  const installationOf = new WeakMap<Team, string>();
  const loading = new Map<string, Promise<Team | undefined>>();
  const teamOfChannel = createRecent<string>(maxChannels);
  /** The log was told once that the app is not installed in these workspaces. */
  const unknown = createRecent(maxUnknown);

  const installer = createInstaller({
    ...app,
    bolt,
    apiUrl,
    installations,
    records,
    claims,
    clock,
    onInstalled(id) {
      // The bot may be another user now. Replies that are being shown go on with the old one.
      for (const [teamId, team] of loaded.entries())
        if (installationOf.get(team) === id) loaded.delete(teamId);
      unknown.clear();
    },
    log,
  });
  const uninstaller = createUninstaller({
    installations,
    receiver,
    history,
    forget: (teamId) => void loaded.delete(teamId),
    log,
  });

  function create(found: StoredInstallation, teamId: string): Team | undefined {
    const identity = toIdentity(found, teamId);
    if (identity === undefined) return undefined;
    const token = createInstalledToken({ found, tokenOf: installer.tokenOf, clock, log });
    const team = createTeam(identity, token, { ...around, log: log.child({ team: teamId }) });
    warnOfMissingScopes(identity, around);
    installationOf.set(team, found.id);
    loaded.set(teamId, team);
    return team;
  }

  function inMemory(teamId: string): Team | undefined {
    const [only] = own?.all() ?? [];
    // Files name no workspace where they were accepted for the only one.
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
        return team;
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

interface InstalledTokenOptions {
  readonly found: StoredInstallation;
  /** Reads the token of an installation, and exchanges it where it expires soon. */
  readonly tokenOf: (installation: StoredInstallation) => Promise<string | undefined>;
  readonly clock?: Clock | undefined;
  readonly log: Log;
}

/** The token is read again after so long, since it expires, and people may have installed the app anew. */
const readAgainMs = 10 * 60_000;
/** The token is read again after so long where Slack has refused it. */
const readAgainAfterRefusalMs = 5000;

/** Returns the token of an installation. */
export function createInstalledToken(options: InstalledTokenOptions): TeamToken {
  const { found, tokenOf, clock = systemClock, log } = options;
  let token = found.installation.bot?.token;
  let readAt = Number.NEGATIVE_INFINITY;
  let isRefused = false;
  let reading: Promise<void> | undefined;

  async function read(): Promise<void> {
    try {
      token = await tokenOf(found);
    } catch (error) {
      if (isParleyError(error, "platform-unauthorized")) token = undefined;
      // Else the token that is known stays in use.
      else log.warn({ err: error }, "installation not read");
    }
    readAt = clock.monotonic();
  }

  return {
    source: "the installation of the app",
    async current() {
      const isOld = clock.monotonic() - readAt > (isRefused ? readAgainAfterRefusalMs : readAgainMs);
      if (isOld)
        reading ??= read().finally(() => {
          reading = undefined;
        });
      await reading;
      if (token !== undefined) return token;
      throw new ParleyError("platform-unauthorized", "the app is not installed in this workspace any more");
    },
    used(refusal) {
      if (refusal !== undefined && !isRefused)
        log.error(
          { installation: found.id, slackError: refusal },
          "Slack no longer accepts the token of a workspace",
        );
      isRefused = refusal !== undefined;
    },
  };
}
