/** Loudness of a recording over time. Levels are in dBFS: 0 is full scale, -100 stands for digital silence. */
export interface Loudness {
  readonly seconds: number;
  readonly channels: number;
  readonly averageDb: number;
  readonly peakDb: number;
  /** One character an interval, low to high. */
  readonly sparkline: string;
  readonly intervalSeconds: number;
  /** At least half a second below -50 dBFS; from and to in seconds. */
  readonly silences: readonly { readonly from: number; readonly to: number }[];
}

const windowSeconds = 0.1;
const silenceDb = -50;
const minSilenceWindows = 5;
const maxMarks = 40;
const marks = "▁▂▃▄▅▆▇█";

/** Measures samples block by block, so that a recording is never in memory as a whole. */
export function createLoudnessMeter() {
  const windowPowers: number[] = [];
  let [sum, samples, peak, seconds, channelCount] = [0, 0, 0, 0, 0];
  return {
    seconds: () => seconds,
    add(channels: readonly Float32Array[], sampleRate: number): void {
      const length = channels[0]?.length ?? 0;
      const perWindow = Math.max(1, Math.round(sampleRate * windowSeconds));
      for (let at = 0; at < length; at += 1) {
        for (const channel of channels) {
          const power = (channel[at] ?? 0) ** 2;
          sum += power / channels.length;
          if (power > peak) peak = power;
        }
        samples += 1;
        if (samples < perWindow) continue;
        windowPowers.push(sum / perWindow);
        [sum, samples] = [0, 0];
      }
      channelCount = Math.max(channelCount, channels.length);
      if (length > 0) seconds += length / sampleRate;
    },
    result(): Loudness {
      const powers = samples > 0 ? [...windowPowers, sum / samples] : windowPowers;
      const perMark = Math.max(1, Math.ceil(powers.length / maxMarks));
      const levels = Array.from({ length: Math.ceil(powers.length / perMark) }, (_, mark) =>
        toDb(mean(powers.slice(mark * perMark, (mark + 1) * perMark))),
      );
      return {
        seconds,
        channels: channelCount,
        averageDb: toDb(mean(powers)),
        peakDb: toDb(peak),
        sparkline: levels.map(toMark).join(""),
        intervalSeconds: perMark * windowSeconds,
        silences: findSilences(powers, seconds),
      };
    },
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

function toDb(power: number): number {
  return power <= 1e-10 ? -100 : Math.round(100 * Math.log10(power)) / 10;
}

/** From -60 dBFS up. */
function toMark(db: number): string {
  const rank = Math.floor(((db + 60) / 60) * marks.length);
  return marks[Math.min(Math.max(rank, 0), marks.length - 1)] ?? "";
}

function findSilences(powers: readonly number[], seconds: number): Loudness["silences"] {
  const loud = [...powers.keys(), powers.length].filter((at) => toDb(powers[at] ?? 1) >= silenceDb);
  return loud
    .map((to, at) => ({ from: (loud[at - 1] ?? -1) + 1, to }))
    .filter(({ from, to }) => to - from >= minSilenceWindows)
    .map(({ from, to }) => ({ from: from * windowSeconds, to: Math.min(to * windowSeconds, seconds) }));
}
