import type { Clock } from "./clock.ts";
import type { SlackMessage } from "./workspace.ts";

/** About how long after its start Slack ends a stream, even an active one. Its text stays as it is. */
const streamLifeMs = 5 * 60_000;

/** Whether text can be appended to a message. */
export function isStreaming({ stream }: SlackMessage, clock: Clock): boolean {
  return stream?.open === true && clock.now() - stream.startedAt <= streamLifeMs;
}
