import type { SlackMessage, Workspace } from "./workspace.ts";

/** The thread's fields of a message; of a reply with the author of the thread's root. */
export function toThreadFields(workspace: Workspace, { channel, ts, threadTs }: SlackMessage) {
  if (threadTs === undefined) return {};
  const root = threadTs === ts ? undefined : workspace.findMessage(channel, threadTs);
  return { thread_ts: threadTs, ...(root === undefined ? {} : { parent_user_id: root.user }) };
}
