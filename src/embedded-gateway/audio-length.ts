/** Compressed speech has at least 8 kbit/s. Claimed durations are ignored, since headers can lie. */
const minBytesPerSecond = 1000;

/**
 * The longest that a recording can be, in seconds: its size at 8 kbit/s; exact for PCM in WAV, where header and size
 * leave no choice.
 * @param head the recording, or its beginning
 */
export function estimateAudioSeconds(sizeBytes: number, head?: Buffer): number {
  return sizeBytes / ((head === undefined ? undefined : pcmBytesPerSecond(head)) ?? minBytesPerSecond);
}

/** @see https://www.mmsp.ece.mcgill.ca/Documents/AudioFormats/WAVE/WAVE.html */
function pcmBytesPerSecond(head: Buffer): number | undefined {
  const isWav = head.length >= 36 && head.toString("latin1", 0, 4) === "RIFF";
  if (!isWav || head.toString("latin1", 8, 16) !== "WAVEfmt ") return undefined;
  const [format, channels, rate, bits] = [
    head.readUInt16LE(20),
    head.readUInt16LE(22),
    head.readUInt32LE(24),
    head.readUInt16LE(34),
  ];
  const isPcm = format === 1 || format === 3;
  const isUsual = channels >= 1 && channels <= 8 && rate >= 8000 && rate <= 192_000;
  return isPcm && isUsual && [8, 16, 24, 32].includes(bits) ? (rate * channels * bits) / 8 : undefined;
}
