import { LRUCache } from "lru-cache";
import type { Clock } from "../../core/clock.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Claims, Records } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import { systemClock } from "../../support/clock.ts";
import { toConversationId } from "./address.ts";
import {
  type Installations,
  type StoredInstallation,
  createInstallations,
  toIdentity,
  sharedEventOf,
  teamsOfPayload,
  type SharedEvent,
  createSharedChannels,
  type TeamToken,
} from "./installations.ts";
import { type AppCredentials, createInstaller } from "./installer.ts";
import { mentions } from "./read-message.ts";
import { createTeam, type Team, type TeamSurroundings } from "./team.ts";
import { warnOfMissingScopes, type Teams } from "./teams.ts";
import { createUninstaller } from "./uninstall.ts";
import { createRecent } from "../../support/recent.ts";

/** What {@link openInstalledTeams} needs besides what all workspaces share. */
interface InstalledTeamsOptions {
  readonly app: AppCredentials;
  readonly records: Records;
  readonly claims: Claims;
  /** The workspace of `SLACK_BOT_TOKEN`, where one is set: it needs no installation. */
  readonly own: Teams | undefined;
}

/** Every workspace where people have installed the app. */
interface InstalledTeams extends Teams {
  readonly handler: ReturnType<typeof createInstaller>["handler"];
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
  const teamOfChannel = createRecent<string>(maxChannels);
  /** Told of once, that the app is not installed there. */
  const unknown = createRecent(maxTeams);

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

  function create(found: StoredInstallation, teamId: string): Team | undefined {
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
    const team = createTeam(identity, token, { ...around, log: log.child({ team: teamId }) });
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

/** What {@link createInstalledToken} needs. */
interface InstalledTokenOptions {
  readonly found: StoredInstallation;
  readonly installations: Pick<Installations, "read">;
  readonly claims: Claims;
  /** Exchanges the refresh token of an installation and stores what Slack returns. */
  readonly rotate: (installation: StoredInstallation) => Promise<void>;
  /** Default: the time of this process. */
  readonly clock?: Clock | undefined;
  readonly log: Log;
}

/** Another instance may have rotated the token, or people may have installed the app anew. */
const readAgainMs = 10 * 60_000;
/** After Slack has refused it. */
const readAgainAfterRefusalMs = 5000;
/** Rotation begins so long before the token expires. */
const rotateBeforeMs = 2 * 60 * 60_000;
/** How long one instance has for it, and when a failed one is tried again. */
const rotationMs = 60_000;
/** How long an expired token waits for the instance that rotates it. */
const waitForOthersMs = 10_000;

/** The token of an installation: read from the store, and rotated in time by one instance of all. */
export function createInstalledToken(options: InstalledTokenOptions): TeamToken {
  const { installations, claims, rotate, clock = systemClock, log } = options;
  const { id } = options.found;
  let stored: StoredInstallation | undefined = options.found;
  let readAt = clock.monotonic();
  let triedAt = Number.NEGATIVE_INFINITY;
  let isRefused = false;
  let reading: Promise<void> | undefined;

  async function read(): Promise<void> {
    try {
      stored = await installations.read(id);
      readAt = clock.monotonic();
    } catch (error) {
      // What is known is used on.
      log.warn({ err: error }, "installation not read");
    }
  }

  const leftMs = (): number => msToExpiry(stored, clock);

  /** One instance exchanges the refresh token, which Slack accepts once; the others read what it has stored. */
  async function rotateOnce(): Promise<void> {
    if (clock.monotonic() - triedAt < rotationMs && leftMs() > 0) return;
    triedAt = clock.monotonic();
    await read();
    if (stored === undefined || leftMs() > rotateBeforeMs) return;
    if (await claims.claim(`slack rotation ${id}`, rotationMs)) {
      await rotate(stored);
      await read();
      if (leftMs() <= rotateBeforeMs) log.warn({ installation: id }, "Slack's token not rotated");
      return;
    }
    // The old token is accepted until it expires.
    const deadline = clock.monotonic() + waitForOthersMs;
    while (stored !== undefined && leftMs() <= 0 && clock.monotonic() < deadline) {
      await clock.sleep(250);
      await read();
    }
  }

  async function renew(): Promise<void> {
    const age = clock.monotonic() - readAt;
    if (leftMs() <= rotateBeforeMs) await rotateOnce();
    else if (age > readAgainMs || (isRefused && age > readAgainAfterRefusalMs)) await read();
  }

  return {
    source: "the installation of the app",
    async current() {
      reading ??= renew().finally(() => {
        reading = undefined;
      });
      await reading;
      const token = stored?.installation.bot?.token;
      if (token !== undefined) return token;
      throw new ParleyError("platform-unauthorized", "the app is not installed in this workspace any more");
    },
    used(refusal) {
      if (refusal !== undefined && !isRefused)
        log.error(
          { installation: id, slackError: refusal },
          "Slack no longer accepts the token of a workspace",
        );
      isRefused = refusal !== undefined;
    },
  };
}

function msToExpiry(stored: StoredInstallation | undefined, clock: Clock): number {
  const expiresAt = stored?.installation.bot?.expiresAt;
  return expiresAt === undefined ? Infinity : expiresAt * 1000 - clock.now();
}
