import type { Clock } from "./clock.ts";
import type { SlackMessage } from "./workspace.ts";

/** Slack ends a stream about so long after its start, also an active one; its message stays as it is then. */
export const streamLifeMs = 5 * 60_000;

/** Whether text can be appended to a message. */
export function isStreaming({ stream }: SlackMessage, clock: Clock): boolean {
  return stream?.open === true && clock.now() - stream.startedAt <= streamLifeMs;
}
