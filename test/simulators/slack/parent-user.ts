import type { SlackMessage, Workspace } from "./workspace.ts";

/** Returns a message's fields about its thread. A reply has the author of the thread's root too. */
export function toThreadFields(workspace: Workspace, { channel, ts, threadTs }: SlackMessage) {
  if (threadTs === undefined) return {};
  const root = threadTs === ts ? undefined : workspace.findMessage(channel, threadTs);
  return { thread_ts: threadTs, ...(root === undefined ? {} : { parent_user_id: root.user }) };
}
