/**
 * Codes with which Discord's gateway closes a connection for good: opened again as it was, it would be closed again,
 * and each attempt counts in the daily budget of session starts.
 * @see https://docs.discord.com/developers/topics/opcodes-and-status-codes#gateway-gateway-close-event-codes
 */
export const closeCodes = {
  authenticationFailed: 4004,
  invalidShard: 4010,
  shardingRequired: 4011,
  invalidApiVersion: 4012,
  invalidIntents: 4013,
  disallowedIntents: 4014,
} as const;

const permanent: ReadonlySet<number> = new Set(Object.values(closeCodes));

/** Whether a connection that was closed with a code must not be opened again as it was. */
export function isPermanent(code: number): boolean {
  return permanent.has(code);
}

/** Why a connection was closed for good, and how to mend it. */
export function toCloseReason(code: number): string {
  switch (code) {
    case closeCodes.authenticationFailed:
      return "Discord no longer accepts the token in DISCORD_TOKEN: reset it in the developer portal, put the new one there and restart (4004)";
    case closeCodes.invalidShard:
      return "Discord refuses the shard: make DISCORD_SHARDS and DISCORD_SHARD_IDS fit together, and restart (4010)";
    case closeCodes.shardingRequired:
      return "The bot is in too many servers for its shards: set DISCORD_SHARDS=auto, or more shards, and restart (4011)";
    case closeCodes.invalidApiVersion:
      return "Discord no longer serves this version of its gateway: update Parley (4012)";
    case closeCodes.invalidIntents:
      return "Discord does not know an intent that Parley asks for: update Parley (4013)";
    case closeCodes.disallowedIntents:
      return "Discord does not give the application an intent that Parley asks for: turn it on in the developer portal (4014)";
    default:
      return `Discord closed the connection (${code})`;
  }
}
