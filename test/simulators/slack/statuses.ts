import type { MethodContext } from "./methods.ts";
import type { SlackMessage } from "./workspace.ts";

/** How long after its last change Slack clears a status line. */
const statusLifeMs = 2 * 60_000;

/** Returns the status line that people see below a thread, or an empty string if there is none. */
export function statusIn({ statuses, clock }: MethodContext, channel: string, thread: string): string {
  const last = statuses.findLast((status) => status.channel === channel && status.thread === thread);
  return last === undefined || clock.now() - last.at > statusLifeMs ? "" : last.status;
}

/**
 * Clears the status line of a thread after a message of the app in it.
 * @see https://docs.slack.dev/reference/methods/assistant.threads.setStatus
 */
export function clearStatus(context: MethodContext, { channel, threadTs }: SlackMessage): void {
  if (threadTs === undefined || statusIn(context, channel, threadTs) === "") return;
  context.statuses.push({ channel, thread: threadTs, status: "", at: context.clock.now(), bySlack: true });
}
