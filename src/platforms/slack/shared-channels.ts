import { LRUCache } from "lru-cache";
import type { Records } from "../../core/storage.ts";

/** Which workspaces with the app are in channels that several organisations share. */
export interface SharedChannels {
  /** An event of a shared channel came for this workspace. @throws ParleyError `store-unavailable` */
  note(channel: string, teamId: string): Promise<void>;
  /** Those that events came for. @throws ParleyError `store-unavailable` */
  teamsIn(channel: string): Promise<readonly string[]>;
  /** The app is no longer in the workspace. @throws ParleyError `store-unavailable` */
  leave(channel: string, teamId: string): Promise<void>;
}

const maxChannels = 1000;
const recordKey = (channel: string): string => `slack sharing ${channel}`;

/** Keeps ids in the store, and in memory: one read a channel, and a write for each workspace in it. */
export function createSharedChannels(records: Records): SharedChannels {
  const known = new LRUCache<string, readonly string[]>({ max: maxChannels });

  async function teamsIn(channel: string): Promise<readonly string[]> {
    const found = known.get(channel) ?? parse(await records.get(recordKey(channel)));
    known.set(channel, found);
    return found;
  }

  async function write(channel: string, teams: readonly string[]): Promise<void> {
    if (teams.length === 0) await records.delete(recordKey(channel));
    else await records.set(recordKey(channel), teams);
    known.set(channel, teams);
  }

  return {
    teamsIn,
    async note(channel, teamId) {
      if ((await teamsIn(channel)).includes(teamId)) return;
      // Another process may have added one meanwhile.
      known.delete(channel);
      await write(channel, [...(await teamsIn(channel)), teamId]);
    },
    async leave(channel, teamId) {
      known.delete(channel);
      const teams = await teamsIn(channel);
      if (teams.includes(teamId))
        await write(
          channel,
          teams.filter((id) => id !== teamId),
        );
    },
  };
}

function parse(record: unknown): readonly string[] {
  return Array.isArray(record) ? record.filter((id) => typeof id === "string") : [];
}
