/** A channel of a server as far as Parley uses it without a request. */
export interface IndexedChannel {
  readonly id: string;
  /** Discord's channel type. */
  readonly type: number;
  readonly name: string;
}

/** The channels of one server, immutable. About 25 bytes each, so that a bot in a million channels has room for them. */
export interface ChannelIndex {
  get(channelId: string): IndexedChannel | undefined;
  /** With a channel that was made or changed. */
  with(channel: IndexedChannel): ChannelIndex;
  without(channelId: string): ChannelIndex;
}

const separator = "\n";

/** Ids are snowflakes of Discord; anything else is left out. @see {@link ChannelIndex} */
export function createChannelIndex(channels: readonly IndexedChannel[]): ChannelIndex {
  const sorted = channels
    .filter(({ id }) => isSnowflake(id))
    .map((channel) => ({ ...channel, at: BigInt(channel.id) }))
    .sort((a, b) => (a.at < b.at ? -1 : 1));
  const ids = BigUint64Array.from(sorted, ({ at }) => at);
  const types = Uint8Array.from(sorted, ({ type }) => type);
  const names = Buffer.from(sorted.map(({ name }) => name.replaceAll(separator, " ")).join(separator));

  function indexOf(channelId: string): number {
    const wanted = BigInt(channelId);
    let low = 0;
    let high = ids.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const found = ids[middle] as bigint;
      if (found === wanted) return middle;
      if (found < wanted) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  /** All but one. */
  function others(channelId: string): IndexedChannel[] {
    const all = names.toString().split(separator);
    return all.flatMap((name, index) => {
      const id = (ids[index] ?? 0n).toString();
      return index >= ids.length || id === channelId ? [] : [{ id, type: types[index] ?? 0, name }];
    });
  }

  return {
    get(channelId) {
      const index = isSnowflake(channelId) ? indexOf(channelId) : -1;
      if (index === -1) return undefined;
      const name = names.toString().split(separator)[index] ?? "";
      return { id: channelId, type: types[index] ?? 0, name };
    },
    with: (channel) => createChannelIndex([...others(channel.id), channel]),
    without: (channelId) => createChannelIndex(others(channelId)),
  };
}

function isSnowflake(id: string): boolean {
  return /^\d{1,20}$/.test(id) && BigInt(id) < 1n << 64n;
}
