import type { MethodContext } from "./methods.ts";
import type { SlackChannel } from "./workspace.ts";

/**
 * Tells the app that somebody joined a channel, if the app itself is in it.
 * @see https://docs.slack.dev/reference/events/member_joined_channel
 */
export function announceJoin(
  { workspace, hub, installation }: MethodContext,
  channel: SlackChannel,
  user: string,
  inviter?: string,
): void {
  if (!installation.subscribesTo("member_joined_channel")) return;
  if (!channel.members.has(workspace.botUserId)) return;
  hub.sendEvent({
    type: "member_joined_channel",
    user,
    channel: channel.id,
    channel_type: channel.kind === "group" ? "G" : "C",
    team: workspace.teamId,
    ...(inviter === undefined ? {} : { inviter }),
    event_ts: workspace.nextTs(),
  });
}
