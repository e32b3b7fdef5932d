import type { MethodContext } from "./methods.ts";
import type { SlackMessage } from "./workspace.ts";

/** Slack clears a status line after so long. */
const statusLifeMs = 2 * 60_000;

/** The status line that people see below a thread; empty where there is none. */
export function statusIn({ statuses, clock }: MethodContext, channel: string, thread: string): string {
  const last = statuses.findLast((status) => status.channel === channel && status.thread === thread);
  return last === undefined || clock.now() - last.at > statusLifeMs ? "" : last.status;
}

/**
 * A message of the app clears the status line of its thread.
 * @see https://docs.slack.dev/reference/methods/assistant.threads.setStatus
 */
export function clearStatus(context: MethodContext, { channel, threadTs }: SlackMessage): void {
  if (threadTs === undefined || statusIn(context, channel, threadTs) === "") return;
  context.statuses.push({ channel, thread: threadTs, status: "", at: context.clock.now(), bySlack: true });
}
