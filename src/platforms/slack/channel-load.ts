/** How many replies are being shown in each channel. */
export interface ChannelLoad {
  /** Returns what ends the reply's part in it; further calls have no effect. */
  enter(channel: string): () => void;
  /** So many that one post a second in a channel is not enough for their final texts. */
  isFull(channel: string): boolean;
}

/** @param most replies at the same time in one channel */
export function createChannelLoad(most: number): ChannelLoad {
  const counts = new Map<string, number>();
  return {
    enter(channel) {
      counts.set(channel, (counts.get(channel) ?? 0) + 1);
      let isIn = true;
      return () => {
        if (!isIn) return;
        isIn = false;
        const left = (counts.get(channel) ?? 1) - 1;
        if (left === 0) counts.delete(channel);
        else counts.set(channel, left);
      };
    },
    isFull: (channel) => (counts.get(channel) ?? 0) >= most,
  };
}
