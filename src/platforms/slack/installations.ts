import type { Installation, InstallationQuery, InstallationStore } from "@slack/bolt";
import type { Clock } from "../../core/clock.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Json } from "../../core/events.ts";
import type { Records } from "../../core/storage.ts";
import { systemClock } from "../../support/clock.ts";
import type { Identity } from "./web-api.ts";

/** The app in one workspace, or in a whole organisation. */
export interface StoredInstallation {
  /** Of the workspace or of the organisation. */
  readonly id: string;
  readonly installation: Installation;
  /** When people installed it last, in Unix milliseconds. */
  readonly installedAt: number;
  /** Of an organisation: its workspaces where the app was used. */
  readonly teams: readonly string[];
}

/** Where the app is installed: by workspace, or by organisation. Failures throw `store-unavailable`. */
export interface Installations {
  /** The part that Slack's SDK calls. */
  readonly store: InstallationStore;
  /** The next `storeInstallation` with this object is people's, not a rotation of its token. */
  noteNew(installation: Installation): void;
  /** The installation that covers a workspace. `enterpriseId`: of its organisation, where a payload says so. */
  find(teamId: string, enterpriseId?: string): Promise<StoredInstallation | undefined>;
  /** The one of that id itself. */
  read(id: string): Promise<StoredInstallation | undefined>;
  delete(id: string): Promise<void>;
}

const recordKey = (id: string): string => `slack installation ${id}`;
/** Says which organisation's installation covers a workspace. */
const pointerKey = (teamId: string): string => `slack organisation ${teamId}`;

/** Keeps installations in the store, which encrypts them. */
export function createInstallations(records: Records, clock: Clock = systemClock): Installations {
  const fresh = new WeakSet<Installation>();

  async function read(id: string): Promise<StoredInstallation | undefined> {
    const record = await records.get(recordKey(id));
    return record === undefined ? undefined : (record as unknown as StoredInstallation);
  }

  async function write(stored: StoredInstallation): Promise<void> {
    // Through JSON, which leaves out what is undefined.
    await records.set(recordKey(stored.id), JSON.parse(JSON.stringify(stored)) as Json);
  }

  async function find(teamId: string, enterpriseId?: string): Promise<StoredInstallation | undefined> {
    const own = await read(teamId);
    if (own !== undefined) return own;
    const pointer = enterpriseId ?? (await records.get(pointerKey(teamId)));
    const stored = typeof pointer === "string" ? await read(pointer) : undefined;
    if (stored === undefined || stored.teams.includes(teamId)) return stored;
    // Saved replies, and the end of the installation, know the workspace and the organisation alone.
    const noted = { ...stored, teams: [...stored.teams, teamId] };
    await records.set(pointerKey(teamId), stored.id);
    await write(noted);
    return noted;
  }

  const idOf = ({ isEnterpriseInstall, enterpriseId, teamId }: InstallationQuery<boolean>): string =>
    (isEnterpriseInstall ? enterpriseId : teamId) ?? "";

  async function save(installation: Installation): Promise<void> {
    const { team, enterprise, isEnterpriseInstall } = installation;
    const id = isEnterpriseInstall === true ? enterprise?.id : team?.id;
    if (id === undefined) throw new ParleyError("internal", "Slack's installation names no workspace");
    const before = await read(id);
    // Of the person who installed it only the id is kept.
    const { id: userId } = installation.user;
    await write({
      id,
      installation: { ...installation, user: { id: userId, token: undefined, scopes: undefined } },
      installedAt: fresh.has(installation) || before === undefined ? clock.now() : before.installedAt,
      teams: before?.teams ?? [],
    });
  }

  return {
    store: {
      storeInstallation: (installation) => save(installation),
      async fetchInstallation(query) {
        const stored = await read(idOf(query));
        if (stored === undefined) throw new ParleyError("platform-unauthorized", "the app is not installed");
        return stored.installation;
      },
      deleteInstallation: (query) => records.delete(recordKey(idOf(query))),
    },
    noteNew: (installation) => void fresh.add(installation),
    find,
    read,
    async delete(id) {
      const stored = await read(id);
      for (const teamId of stored?.teams ?? []) await records.delete(pointerKey(teamId));
      await records.delete(recordKey(id));
    },
  };
}

/** The bot in a workspace that an installation covers. `undefined`: it has no bot. */
export function toIdentity({ installation }: StoredInstallation, teamId: string): Identity | undefined {
  const { bot } = installation;
  return bot === undefined ? undefined : { teamId, userId: bot.userId, botId: bot.id, scopes: bot.scopes };
}
