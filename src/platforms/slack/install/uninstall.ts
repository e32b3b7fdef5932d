import type { ConversationHistory, Receiver } from "../../../core/receiver.ts";
import type { Log } from "../../../core/telemetry.ts";
import { toAuthorId, toChannelPlace, toChannelTerm, toTeamTerm, toConversationPrefix } from "../address.ts";
import { type Installations, teamsOfPayload } from "./installations.ts";

interface UninstallerOptions {
  readonly installations: Installations;
  readonly receiver: Pick<Receiver, "changed">;
  readonly history: Pick<ConversationHistory, "conversations" | "history">;
  /** This is called for each workspace before anything of it is erased. */
  readonly forget: (teamId: string) => void;
  readonly log: Log;
}

/** People whose settings are looked for are found in so many messages of one conversation. */
const maxMessagesRead = 1000;

/** Takes everything of a workspace out when people remove the app there, or revoke its token. */
export function createUninstaller(options: UninstallerOptions) {
  const { installations, receiver, history, forget, log } = options;
  const running = new Map<string, Promise<void>>();

  async function eraseTeam(teamId: string): Promise<void> {
    forget(teamId);
    const people = new Set<string>();
    const channels = new Set<string>();
    // Conversations come first: what they say about channels and people is needed below.
    await deleteConversations(`slack:${teamId}:`, receiver, history, async (conversationId) => {
      channels.add(conversationId.split(":")[2] ?? "");
      const messages = await history.history(conversationId, { maxMessages: maxMessagesRead });
      for (const { author } of messages) if (author !== undefined) people.add(author.id);
    });
    await receiver.changed({ kind: "delete-place", place: toTeamTerm(teamId) });
    // Settings are held under these names.
    for (const channel of channels) {
      await receiver.changed({ kind: "delete-place", place: toChannelPlace(teamId, channel) });
      // Settings may also be held under the name that access rules have for the channel.
      await receiver.changed({ kind: "delete-place", place: toChannelTerm(channel) });
    }
    for (const person of people) await receiver.changed({ kind: "delete-place", place: person });
    // This includes people who are in no conversation.
    await receiver.changed({ kind: "delete-people", idPrefix: toAuthorId(teamId, "") });
    log.info({ team: teamId }, "Slack app removed: everything of the workspace is erased");
  }

  async function end(teamId: string, enterpriseId: string | undefined, at: number): Promise<void> {
    const own = await installations.read(teamId);
    const ofOrganisation =
      own === undefined && enterpriseId !== undefined ? await installations.read(enterpriseId) : undefined;
    const stored = own ?? ofOrganisation;
    // Slack may deliver the event late, after people have installed the app anew.
    if (stored !== undefined && stored.installedAt > at) return;
    for (const id of new Set([teamId, ...(ofOrganisation?.teams ?? [])])) await eraseTeam(id);
    // The installation goes last: until then a redelivery finds out which workspaces are meant.
    if (stored !== undefined) await installations.delete(stored.id);
  }

  return {
    /**
     * Returns the work that a payload's end of an installation leads to, and `undefined` for other payloads.
     * The work may be repeated, and rejects where the store fails.
     */
    ending(body: Readonly<Record<string, unknown>>): (() => Promise<void>) | undefined {
      if (!isEnd(body["event"])) return undefined;
      const [team] = teamsOfPayload(body);
      if (team === undefined) return undefined;
      const at = Number(body["event_time"] ?? 0) * 1000 + 999;
      return async () => {
        // Two events tell of the end, and Slack sends each again where this takes long.
        const work = running.get(team.teamId) ?? end(team.teamId, team.enterpriseId, at);
        running.set(team.teamId, work);
        try {
          await work;
        } finally {
          running.delete(team.teamId);
        }
      };
    },
  };
}

/** Returns whether an event says that the bot has no token any more. Tokens of people are not used. */
export function isEnd(event: unknown): boolean {
  const { type, tokens } = (event ?? {}) as {
    readonly type?: unknown;
    readonly tokens?: { readonly bot?: unknown };
  };
  if (type === "app_uninstalled") return true;
  return type === "tokens_revoked" && Array.isArray(tokens?.bot) && tokens.bot.length > 0;
}

/**
 * Reports a deleted channel to the receiver. Conversations that are stored without `within` are found by the
 * channel in their ids.
 * @throws ParleyError `store-unavailable`
 */
export async function reportDeletedChannel(
  channel: string,
  teamId: string,
  receiver: Pick<Receiver, "changed">,
  history: Pick<ConversationHistory, "conversations">,
): Promise<void> {
  await receiver.changed({ kind: "delete-place", place: toChannelPlace(teamId, channel) });
  await deleteConversations(toConversationPrefix(teamId, channel), receiver, history);
  // The settings of the channel are held under the name that access rules have for it.
  await receiver.changed({ kind: "delete-place", place: toChannelTerm(channel) });
}

/**
 * Reports every conversation whose id begins with `prefix` as deleted, and calls `before` with each first.
 * @throws ParleyError `store-unavailable`
 */
async function deleteConversations(
  prefix: string,
  receiver: Pick<Receiver, "changed">,
  history: Pick<ConversationHistory, "conversations">,
  before: (conversationId: string) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const reported = new Set<string>();
  for (;;) {
    // The list is limited: what is behind its end comes up when its first part is deleted.
    const listed = await history.conversations(prefix);
    const left = listed.filter(({ conversationId }) => !reported.has(conversationId));
    if (left.length === 0) return;
    for (const { conversationId } of left) {
      reported.add(conversationId);
      await before(conversationId);
      await receiver.changed({ kind: "delete-conversation", conversationId });
    }
  }
}
