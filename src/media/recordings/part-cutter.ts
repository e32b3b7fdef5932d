/** One part of a recording, as samples. */
export interface SamplePart {
  readonly fromSeconds: number;
  readonly samples: Int16Array<ArrayBuffer>;
}

/** How a recording is cut. */
export interface CutPlan {
  readonly sampleRate: number;
  /** No part is longer. */
  readonly maxSeconds: number;
  /** The length that the recording says it has. The parts are then about equally long. */
  readonly durationSeconds?: number | undefined;
}

/** Cuts samples into parts. */
export interface PartCutter {
  /** Takes the next samples, from -1 to 1, and returns the parts that are complete. */
  add(samples: Float32Array): SamplePart[];
  /** The last part. `undefined`: nothing is left. */
  end(): SamplePart | undefined;
}

/** A cut is made in the middle of the quietest half second of the last minute of a part; of short parts, the last 40 %. */
const searchedSecondsOf = (maxSeconds: number) => Math.min(60, maxSeconds * 0.4);
const windowsPerSecond = 20;
const quietWindows = 10;

/** So many parts a recording of that length is cut into. */
export function countParts(durationSeconds: number, maxSeconds: number): number {
  return Math.max(1, Math.ceil(durationSeconds / (maxSeconds - searchedSecondsOf(maxSeconds))));
}

/** @see {@link PartCutter} */
export function createPartCutter({ sampleRate, maxSeconds, durationSeconds }: CutPlan): PartCutter {
  const count = durationSeconds === undefined ? undefined : countParts(durationSeconds, maxSeconds);
  const maxSamples = Math.round(maxSeconds * sampleRate);
  const searched = Math.round(searchedSecondsOf(maxSeconds) * sampleRate);
  let pending = new Int16Array(Math.min(maxSamples, 1 << 20));
  let length = 0;
  let taken = 0;
  let cuts = 0;

  /** Where the search for a cut ends, in samples of the pending part. */
  function limit(): number {
    if (count === undefined || durationSeconds === undefined || cuts + 1 >= count) return maxSamples;
    const target = (durationSeconds * (cuts + 1) * sampleRate) / count - taken;
    return Math.min(maxSamples, Math.max(searched, Math.round(target + searched / 2)));
  }

  function append(samples: Float32Array): void {
    if (length + samples.length > pending.length) {
      const grown = new Int16Array(
        Math.min(maxSamples, Math.max(pending.length * 2, length + samples.length)),
      );
      grown.set(pending.subarray(0, length));
      pending = grown;
    }
    for (let at = 0; at < samples.length; at += 1) {
      const value = samples[at] ?? 0;
      pending[length + at] = Math.round(Math.max(-1, Math.min(1, value)) * 32_767);
    }
    length += samples.length;
  }

  function take(end: number): SamplePart {
    const part = { fromSeconds: taken / sampleRate, samples: pending.slice(0, end) };
    pending.copyWithin(0, end, length);
    length -= end;
    taken += end;
    cuts += 1;
    return part;
  }

  return {
    add(samples) {
      const parts: SamplePart[] = [];
      for (let at = 0; at < samples.length;) {
        const room = limit() - length;
        const next = samples.subarray(at, at + Math.max(0, room));
        append(next);
        at += next.length;
        if (length >= limit())
          parts.push(take(quietest(pending, Math.max(1, length - searched), length, sampleRate)));
      }
      return parts;
    },
    end: () => (length === 0 ? undefined : take(length)),
  };
}

/** The middle of the quietest half second between two samples. */
function quietest(samples: Int16Array, from: number, to: number, sampleRate: number): number {
  const size = Math.max(1, Math.floor(sampleRate / windowsPerSecond));
  const powers: number[] = [];
  for (let at = from; at + size <= to; at += size) {
    let power = 0;
    for (let index = at; index < at + size; index += 1) power += (samples[index] ?? 0) ** 2;
    powers.push(power);
  }
  let best = 0;
  let lowest = Number.POSITIVE_INFINITY;
  const width = Math.min(quietWindows, powers.length);
  for (let start = 0; start + width <= powers.length; start += 1) {
    const sum = powers.slice(start, start + width).reduce((total, power) => total + power, 0);
    if (sum >= lowest) continue;
    lowest = sum;
    best = start;
  }
  return powers.length === 0 ? to : from + Math.round((best + width / 2) * size);
}
