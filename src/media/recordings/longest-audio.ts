/** Where the first frames, or what describes them, begin at the latest. */
const headBytes = 65_536;
/** Of a FLAC frame: its header, one constant channel and two checksums. */
const minFlacFrameBytes = 10;
/** Where nothing is said of them: the largest block and the lowest usual rate. */
const worstFlac = { blockSamples: 65_535, rate: 8000 };

/**
 * The longest that a recording can be, in seconds. Claimed durations are ignored, since headers can lie. Exact for PCM
 * in WAV, where header and size leave no choice; of FLAC, whose silence takes almost no bytes, by the samples that its
 * frames can hold; otherwise by the least bytes a second of compressed speech.
 * @param head the recording, or its beginning
 */
export function longestAudioSeconds(
  sizeBytes: number,
  head: Uint8Array | undefined,
  minBytesPerSecond: number,
): number {
  const bytes = Buffer.from(head?.buffer ?? new ArrayBuffer(0), head?.byteOffset, head?.byteLength);
  const pcm = pcmBytesPerSecond(bytes);
  if (pcm !== undefined) return sizeBytes / pcm;
  const flac = flacSamplesOf(bytes);
  const byBytes = sizeBytes / minBytesPerSecond;
  if (flac === undefined) return byBytes;
  return Math.max(byBytes, ((sizeBytes / minFlacFrameBytes) * flac.blockSamples) / flac.rate);
}

/** Whether so many bytes may be longer than compressed speech of that size: FLAC, or PCM of a rate that nobody uses. */
export function isSparse(
  sizeBytes: number,
  head: Uint8Array | undefined,
  minBytesPerSecond: number,
): boolean {
  return longestAudioSeconds(sizeBytes, head, minBytesPerSecond) > sizeBytes / minBytesPerSecond;
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
  // Also of a rate that nobody records with: a second of one sample is a second.
  const isPcm = (format === 1 || format === 3) && channels >= 1 && rate >= 1;
  return isPcm && [8, 16, 24, 32, 64].includes(bits) ? (rate * channels * bits) / 8 : undefined;
}

/** Largest block and rate of a FLAC stream; decoders refuse larger blocks. @see https://www.rfc-editor.org/rfc/rfc9639 */
function flacSamplesOf(bytes: Buffer): typeof worstFlac | undefined {
  const at = bytes.subarray(0, headBytes).indexOf("fLaC");
  if (at === -1) return undefined;
  const info = bytes.subarray(at + 4, at + 21);
  // The block that describes the stream comes first: type 0, 34 bytes.
  if (info.length < 17 || (info[0]! & 0x7f) !== 0 || info.readUIntBE(1, 3) !== 34) return worstFlac;
  return { blockSamples: info.readUInt16BE(6), rate: Math.max(1, info.readUIntBE(14, 3) >> 4) };
}
