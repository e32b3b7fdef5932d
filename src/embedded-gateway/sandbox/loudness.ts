/** A stretch of time, in seconds. */
interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** How loud a recording is, and when. Levels are in dBFS: 0 is the loudest that fits, -100 stands for nothing. */
export interface Loudness {
  readonly seconds: number;
  readonly channels: number;
  readonly averageDb: number;
  readonly peakDb: number;
  /** One character an interval, low to high. */
  readonly sparkline: string;
  /** Length of such an interval, in seconds. */
  readonly intervalSeconds: number;
  /** Stretches of at least half a second below -50 dBFS. */
  readonly silences: readonly Stretch[];
}

const windowSeconds = 0.1;
const silenceDb = -50;
const minSilenceSeconds = 0.5;
const maxMarks = 40;
const marks = "▁▂▃▄▅▆▇█";

/** Measures samples block by block, so that a long recording is never whole in memory. */
export interface LoudnessMeter {
  add(channels: readonly Float32Array[], sampleRate: number): void;
  readonly seconds: number;
  result(): Loudness;
}

export function createLoudnessMeter(): LoudnessMeter {
  /** Mean power of each window. */
  const powers: number[] = [];
  let sum = 0;
  let inWindow = 0;
  let peak = 0;
  let seconds = 0;
  let channelCount = 0;
  return {
    get seconds() {
      return seconds;
    },
    add: (channels, sampleRate) => {
      const [first] = channels;
      if (first === undefined || sampleRate <= 0) return;
      channelCount = Math.max(channelCount, channels.length);
      const perWindow = Math.max(1, Math.round(sampleRate * windowSeconds));
      for (let at = 0; at < first.length; at += 1) {
        let power = 0;
        for (const channel of channels) {
          const value = channel[at] ?? 0;
          power += value * value;
          const level = Math.abs(value);
          if (level > peak) peak = level;
        }
        sum += power / channels.length;
        inWindow += 1;
        if (inWindow === perWindow) {
          powers.push(sum / perWindow);
          sum = 0;
          inWindow = 0;
        }
      }
      seconds += first.length / sampleRate;
    },
    result: () => {
      const all = inWindow > 0 ? [...powers, sum / inWindow] : powers;
      const perMark = Math.max(1, Math.ceil(all.length / maxMarks));
      const levels = Array.from({ length: Math.ceil(all.length / perMark) }, (_, mark) =>
        toDb(mean(all.slice(mark * perMark, (mark + 1) * perMark))),
      );
      return {
        seconds,
        channels: channelCount,
        averageDb: toDb(mean(all)),
        peakDb: toDb(peak * peak),
        sparkline: levels.map(toMark).join(""),
        intervalSeconds: perMark * windowSeconds,
        silences: findSilences(all, seconds),
      };
    },
  };
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function toDb(power: number): number {
  return power <= 1e-10 ? -100 : Math.round(10 * Math.log10(power) * 10) / 10;
}

/** From -60 dBFS up. */
function toMark(db: number): string {
  const rank = Math.floor(((db + 60) / 60) * marks.length);
  return marks[Math.min(Math.max(rank, 0), marks.length - 1)] ?? "▁";
}

function findSilences(powers: readonly number[], seconds: number): Stretch[] {
  const found: Stretch[] = [];
  let start: number | undefined;
  for (let at = 0; at <= powers.length; at += 1) {
    const isSilent = at < powers.length && toDb(powers[at] ?? 0) < silenceDb;
    if (isSilent) start ??= at;
    else if (start !== undefined) {
      const stretch = { from: start * windowSeconds, to: Math.min(at * windowSeconds, seconds) };
      if (stretch.to - stretch.from >= minSilenceSeconds - 0.001) found.push(stretch);
      start = undefined;
    }
  }
  return found;
}
