/** What recognisers work with; more only makes the upload larger. */
const maxSampleRate = 16_000;

/** Converts decoded blocks to one channel of at most 16 kHz; lower rates are kept. */
export interface MonoConverter {
  readonly sampleRate: number;
  convert(channels: readonly Float32Array[]): Float32Array;
}

/** Samples between two of the target are averaged, also across blocks. @param sampleRate of the source */
export function createMonoConverter(sampleRate: number): MonoConverter {
  const ratio = Math.max(1, sampleRate / maxSampleRate);
  let sum = 0;
  let weight = 0;
  return {
    sampleRate: Math.round(sampleRate / ratio),
    convert(channels) {
      const length = channels[0]?.length ?? 0;
      const result = new Float32Array(Math.ceil((length + weight) / ratio) + 1);
      let written = 0;
      for (let at = 0; at < length; at += 1) {
        let value = 0;
        for (const channel of channels) value += (channel[at] ?? 0) / channels.length;
        let left = 1;
        // A source sample belongs to two of the target in parts.
        while (weight + left >= ratio) {
          const share = ratio - weight;
          result[written] = (sum + value * share) / ratio;
          written += 1;
          left -= share;
          sum = 0;
          weight = 0;
        }
        sum += value * left;
        weight += left;
      }
      return result.subarray(0, written);
    },
  };
}
