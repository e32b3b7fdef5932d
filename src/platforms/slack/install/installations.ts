import type { Installation, InstallationQuery, InstallationStore } from "@slack/bolt";
import type { Clock } from "../../../core/clock.ts";
import { isParleyError, ParleyError } from "../../../core/errors.ts";
import type { Json } from "../../../core/events.ts";
import type { Records } from "../../../core/storage.ts";
import { systemClock } from "../../../support/clock.ts";
import { backoffMs, backoffs, retry } from "../../../support/retry.ts";
import type { Identity } from "../transport/call.ts";

export interface StoredInstallation {
  readonly id: string;
  readonly installation: Installation;
  /** People installed the app last at this time, in Unix milliseconds. */
  readonly installedAt: number;
  /** An organisation lists its workspaces where the app was used. */
  readonly teams: readonly string[];
}

const recordKey = (id: string): string => `slack installation ${id}`;
/** The record with this key says which organisation's installation covers a workspace. */
const pointerKey = (teamId: string): string => `slack organisation ${teamId}`;

/** Tokens that Slack has issued are tried to be stored for so long, since Slack gives them out once. */
const saveWithinMs = 60_000;
/** The library exchanges a token two hours before it expires. */
const rewrittenBeforeMs = 2 * 60 * 60_000 + 60_000;

export type Installations = ReturnType<typeof createInstallations>;

/** Keeps installations in the store, which encrypts them. Failures throw `store-unavailable`. */
export function createInstallations(records: Records, clock: Clock = systemClock) {
  const fresh = new WeakSet<Installation>();

  /** Reads the installation with exactly that id. */
  async function read(id: string): Promise<StoredInstallation | undefined> {
    const record = await records.get(recordKey(id));
    return record === undefined ? undefined : (record as unknown as StoredInstallation);
  }

  /** Changes an installation, unless `change` returns `undefined`, over whatever another instance does. */
  async function update(
    id: string,
    change: (before: StoredInstallation | undefined) => StoredInstallation | undefined,
  ): Promise<StoredInstallation | undefined> {
    let changed: StoredInstallation | undefined;
    await records.update(recordKey(id), (record) => {
      changed = change(record as unknown as StoredInstallation | undefined);
      // JSON leaves out what is undefined.
      return changed && (JSON.parse(JSON.stringify(changed)) as Json);
    });
    return changed;
  }

  /** Finds the installation that covers a workspace, by its organisation where a payload names it. */
  async function find(teamId: string, enterpriseId?: string): Promise<StoredInstallation | undefined> {
    const own = await read(teamId);
    if (own !== undefined) return own;
    const pointer = enterpriseId ?? (await records.get(pointerKey(teamId)));
    const stored = typeof pointer === "string" ? await read(pointer) : undefined;
    if (stored === undefined || stored.teams.includes(teamId)) return stored;
    // Saved replies, and the end of the installation, know only the workspace and the organisation.
    await records.set(pointerKey(teamId), stored.id);
    // Another instance may have rotated the token, or erased the installation, meanwhile.
    return await update(stored.id, (now) => now && { ...now, teams: [...new Set([...now.teams, teamId])] });
  }

  const idOf = ({ isEnterpriseInstall, enterpriseId, teamId }: InstallationQuery<boolean>): string =>
    (isEnterpriseInstall ? enterpriseId : teamId) ?? "";

  async function save(installation: Installation): Promise<void> {
    const { team, enterprise, isEnterpriseInstall } = installation;
    const id = isEnterpriseInstall === true ? enterprise?.id : team?.id;
    if (id === undefined) throw new ParleyError("internal", "Slack's installation names no workspace");
    // Only the id of the person who installed the app is kept.
    const { id: userId } = installation.user;
    await update(id, (before) => ({
      id,
      installation: { ...installation, user: { id: userId, token: undefined, scopes: undefined } },
      installedAt: fresh.has(installation) || before === undefined ? clock.now() : before.installedAt,
      teams: before?.teams ?? [],
    }));
  }

  const store: InstallationStore = {
    storeInstallation: (installation) =>
      retry(() => save(installation), {
        deadline: clock.monotonic() + saveWithinMs,
        delayMs: (error, attempt) =>
          isParleyError(error, "store-unavailable") ? backoffMs(attempt, backoffs.moment) : undefined,
        clock,
      }),
    async fetchInstallation(query) {
      const stored = await read(idOf(query));
      if (stored === undefined) throw new ParleyError("platform-unauthorized", "the app is not installed");
      const { expiresAt = Infinity } = stored.installation.bot ?? {};
      // The library exchanges such a token next. Slack gives the new one out once, so the store must take it.
      if (expiresAt * 1000 - clock.now() <= rewrittenBeforeMs) await update(stored.id, (now) => now);
      return stored.installation;
    },
    deleteInstallation: (query) => records.delete(recordKey(idOf(query))),
  };

  return {
    store,
    /** Notes that the next `storeInstallation` with this object comes from people, not from a rotation. */
    noteNew: (installation: Installation) => void fresh.add(installation),
    find,
    read,
    async delete(id: string): Promise<void> {
      const stored = await read(id);
      for (const teamId of stored?.teams ?? []) await records.delete(pointerKey(teamId));
      await records.delete(recordKey(id));
    },
  };
}

/** Returns the bot in a workspace that an installation covers, and `undefined` where there is none. */
export function toIdentity({ installation }: StoredInstallation, teamId: string): Identity | undefined {
  const { bot } = installation;
  return bot === undefined ? undefined : { teamId, userId: bot.userId, botId: bot.id, scopes: bot.scopes };
}

/** This is the workspace that a payload is about, with its organisation where the payload names it. */
interface PayloadTeam {
  readonly teamId: string;
  readonly enterpriseId: string | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Returns the workspaces whose installation may be meant, the likeliest first. In a channel that two
 * workspaces share, a payload also names the workspace of the person, where the app need not be installed.
 * @see https://docs.slack.dev/apis/events-api#authorizations describes such payloads.
 */
export function teamsOfPayload(body: Fields): readonly PayloadTeam[] {
  const [authorization] = Array.isArray(body["authorizations"]) ? (body["authorizations"] as unknown[]) : [];
  const granted = fieldsOf(authorization);
  const [team, user, view, enterprise] = ["team", "user", "view", "enterprise"].map((name) =>
    fieldsOf(body[name]),
  ) as [Fields, Fields, Fields, Fields];
  const enterpriseId =
    textOf(granted["enterprise_id"]) ??
    textOf(body["enterprise_id"]) ??
    textOf(enterprise["id"]) ??
    textOf(team["enterprise_id"]);
  const ids = [
    textOf(granted["team_id"]),
    textOf(view["app_installed_team_id"]),
    textOf(body["team_id"]),
    textOf(team["id"]),
    textOf(user["team_id"]),
  ].filter((id) => id !== undefined);
  return [...new Set(ids)].map((teamId) => ({ teamId, enterpriseId }));
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
