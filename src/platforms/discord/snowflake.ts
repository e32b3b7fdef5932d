const discordEpochMs = 1_420_070_400_000;

/** The smallest id that Discord assigns at that time. @see https://docs.discord.com/developers/reference#snowflakes */
export function snowflakeAt(unixMs: number): bigint {
  return BigInt(Math.max(0, Math.floor(unixMs) - discordEpochMs)) << 22n;
}

/** When Discord assigned an id, in Unix milliseconds. */
export function snowflakeTime(id: string): number {
  return Number(BigInt(id) >> 22n) + discordEpochMs;
}
