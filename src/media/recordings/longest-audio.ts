import { bigEndian, latin1, littleEndian } from "../sniff.ts";

/** The first frames, or what describes them, begin before this. */
const headBytes = 65_536;
/** The smallest FLAC frame: its header, one constant channel and two checksums. */
const minFlacFrameBytes = 10;
/** Used where the file does not say: the largest block and the lowest usual rate. */
const worstFlac = { blockSamples: 65_535, rate: 8000 };

/**
 * Returns the longest that a recording can be, in seconds. Claimed durations are ignored, since headers can
 * lie. It is exact for PCM in WAV, where header and size leave no choice. For formats whose silence takes
 * almost no bytes it goes by the frames that they have or can hold, otherwise by the least bytes a second of
 * compressed speech.
 */
export function longestAudioSeconds(recording: Uint8Array, minBytesPerSecond: number): number {
  const bytes = Buffer.from(recording.buffer, recording.byteOffset, recording.byteLength);
  if (latin1(bytes, 0, 4) === "RIFF" && latin1(bytes, 8, 4) === "WAVE")
    return wavSeconds(bytes, minBytesPerSecond);
  // FLAC counts inside another container too, since a packet may hold several frames.
  const flac = flacSamplesOf(bytes);
  const ofFlac =
    flac === undefined ? 0 : ((bytes.length / minFlacFrameBytes) * flac.blockSamples) / flac.rate;
  return Math.max(bytes.length / minBytesPerSecond, countedSeconds(bytes) ?? 0, ofFlac);
}

/** Whether the bytes may be longer than compressed speech of that size: FLAC, or PCM of an odd rate. */
export function isSparse(bytes: Uint8Array, minBytesPerSecond: number): boolean {
  return longestAudioSeconds(bytes, minBytesPerSecond) > bytes.length / minBytesPerSecond;
}

/** The formats of WAV with a fixed number of bytes for each sample: PCM, A-law and µ-law. */
const fixedFormats = [1, 3, 6, 7];
/** The most samples that a byte of compressed WAV holds. */
const mostSamplesPerByte = 8;

/** Returns the seconds of a WAV. @see https://www.mmsp.ece.mcgill.ca/Documents/AudioFormats/WAVE/WAVE.html */
function wavSeconds(bytes: Buffer, minBytesPerSecond: number): number {
  for (let at = 12; at + 24 <= bytes.length;) {
    const size = bytes.readUInt32LE(at + 4);
    if (latin1(bytes, at, 4) === "fmt ") {
      const inExtension = bytes.readUInt16LE(at + 8) === 0xfffe && at + 34 <= bytes.length;
      const format = bytes.readUInt16LE(inExtension ? at + 32 : at + 8);
      const channels = bytes.readUInt16LE(at + 10);
      // Rates that nobody records with count too: a second of one sample is a second.
      const rate = Math.max(1, bytes.readUInt32LE(at + 12));
      const bits = bytes.readUInt16LE(at + 22);
      const isFixed = fixedFormats.includes(format) && channels >= 1 && [8, 16, 24, 32, 64].includes(bits);
      if (isFixed) return bytes.length / ((rate * channels * bits) / 8);
      return Math.max(bytes.length / minBytesPerSecond, (bytes.length * mostSamplesPerByte) / rate);
    }
    at += 8 + size + (size % 2);
  }
  return bytes.length * mostSecondsPerByte;
}

/** Returns a FLAC stream's largest block and rate. @see https://www.rfc-editor.org/rfc/rfc9639 */
function flacSamplesOf(bytes: Buffer): typeof worstFlac | undefined {
  const at = bytes.subarray(0, headBytes).indexOf("fLaC");
  if (at === -1) return undefined;
  const info = bytes.subarray(at + 4, at + 21);
  // The block that describes the stream comes first: type 0, 34 bytes.
  if (info.length < 17 || (info[0]! & 0x7f) !== 0 || info.readUIntBE(1, 3) !== 34) return worstFlac;
  return { blockSamples: info.readUInt16BE(6), rate: Math.max(1, info.readUIntBE(14, 3) >> 4) };
}

/** FLAC's frames hold most: 65,535 samples at the lowest usual rate, in ten bytes. */
const mostSecondsPerByte = 65_535 / 8000 / 10;
/** An AMR frame without data is one byte. */
const amrSecondsPerByte = 0.02;
/** The samples of an AAC frame before its rate is doubled. */
const aacSamples = 1024;
const aacRates = [96, 88.2, 64, 48, 44.1, 32, 24, 22.05, 16, 12, 11.025, 8, 7.35].map((khz) => khz * 1000);
/** These are Main, LC, SSR, LTP, SBR, LD and PS, but not the types whose frames are longer. */
const aacTypes = [1, 2, 3, 4, 5, 23, 29];
const mp3FrameSeconds = 1152 / 8000;
const maxOpusSeconds = 0.12;
/** An AMR sample in MP4 holds at most this many frames of 20 ms. */
const amrSampleSeconds = 15 * 0.02;
/** Real recordings have one stream, seldom a few. */
const maxHeaders = 64;

type CountSeconds = (bytes: Buffer) => number;

/**
 * Returns the longest that a recording's frames can be, in seconds, in formats whose frames can be almost
 * empty. They are counted in Ogg, WebM, MP4, ADTS and AMR. What cannot be counted counts as the longest of
 * any format. Claimed times are not read. Returns `undefined` for a format whose frames have a least size,
 * such as MP3.
 */
function countedSeconds(bytes: Buffer): number | undefined {
  const most = bytes.length * mostSecondsPerByte;
  const count = counterOf(bytes);
  if (count === undefined) return isUncounted(bytes) ? most : undefined;
  const seconds = count(bytes);
  return Number.isFinite(seconds) ? seconds : most;
}

function counterOf(bytes: Buffer): CountSeconds | undefined {
  if (latin1(bytes, 0, 4) === "OggS") return oggSeconds;
  if (bigEndian(bytes, 0, 4) === 0x1a45dfa3) return matroskaSeconds;
  if (["ftyp", "moov", "mdat", "moof", "styp", "free", "skip", "wide"].includes(latin1(bytes, 4, 4)))
    return mp4Seconds;
  if (latin1(bytes, 0, 5) === "#!AMR") return amrSeconds;
  // Decoders find the frames wherever they begin.
  return adtsSeconds(bytes) > 0 ? adtsSeconds : undefined;
}

const amrSeconds: CountSeconds = (bytes) => bytes.length * amrSecondsPerByte;

/** Whether it is a container of many formats, or with its own rates, that nobody sends as speech. */
function isUncounted(bytes: Buffer): boolean {
  const isTransportStream = bytes[0] === 0x47 && bytes[188] === 0x47;
  const starts = ["FORM", "caff", ".snd", "RF64", "BW64", "riff", "wvpk", "TTA1", "MAC ", "FLV\x01", "MPCK"];
  return starts.includes(latin1(bytes, 0, 4)) || bigEndian(bytes, 0, 4) === 0x3026b275 || isTransportStream;
}

/** Returns the seconds of an Opus packet. @see https://www.rfc-editor.org/rfc/rfc6716#section-3.1 */
function opusSeconds(bytes: Buffer, at: number): number {
  const toc = bytes[at] ?? 0;
  const config = toc >>> 3;
  const frameMs =
    config < 12
      ? [10, 20, 40, 60][config & 3]!
      : config < 16
        ? [10, 20][config & 1]!
        : 2.5 * 2 ** (config & 3);
  const frames = (toc & 3) === 0 ? 1 : (toc & 3) === 3 ? (bytes[at + 1] ?? 0) & 63 : 2;
  return Math.min(maxOpusSeconds, (frames * frameMs) / 1000);
}

/** Returns the longest frame that any of a codec's headers allows, or 0 without one. */
function longestFrame(bytes: Buffer, marker: string, frameSeconds: (at: number) => number): number {
  let longest = 0;
  let headers = 0;
  for (let at = bytes.indexOf(marker, 0, "latin1"); at !== -1; at = bytes.indexOf(marker, at + 1, "latin1")) {
    headers += 1;
    if (headers > maxHeaders) return Infinity;
    longest = Math.max(longest, frameSeconds(at));
  }
  return longest;
}

/** Returns a Vorbis frame's seconds. @see https://xiph.org/vorbis/doc/Vorbis_I_spec.html#x1-630004.2.2 */
const vorbisFrame = (bytes: Buffer): number =>
  longestFrame(
    bytes,
    "\x01vorbis",
    (at) => 2 ** ((bytes[at + 28] ?? 0) >>> 4) / 2 / littleEndian(bytes, at + 12, 4),
  );

/** Counts every Ogg page, even in damaged parts. @see https://www.rfc-editor.org/rfc/rfc3533 */
function oggSeconds(bytes: Buffer): number {
  const hasOpus = bytes.includes("OpusHead");
  const frame = Math.max(
    vorbisFrame(bytes),
    longestFrame(
      bytes,
      "\x7fFLAC",
      (at) => bigEndian(bytes, at + 19, 2) / (bigEndian(bytes, at + 27, 3) >>> 4),
    ),
    longestFrame(
      bytes,
      "Speex   ",
      (at) =>
        (littleEndian(bytes, at + 56, 4) * littleEndian(bytes, at + 64, 4)) / littleEndian(bytes, at + 36, 4),
    ),
  );
  if (!hasOpus && frame === 0) return Infinity;
  let seconds = 0;
  let steps = 0;
  for (let page = bytes.indexOf("OggS"); page !== -1; page = bytes.indexOf("OggS", page + 4)) {
    const segments = bytes[page + 26] ?? 0;
    // Real files have no pages in the tables of pages.
    steps += segments;
    if (steps > 2 * bytes.length) return Infinity;
    let packet = page + 27 + segments;
    // A packet that goes on from the page before was counted there.
    let isNew = ((bytes[page + 5] ?? 0) & 1) === 0;
    for (let at = page + 27; at < page + 27 + segments; at += 1) {
      if (isNew) seconds += Math.max(frame, hasOpus ? opusSeconds(bytes, packet) : 0);
      const lacing = bytes[at] ?? 0;
      packet += lacing;
      isNew = lacing < 255;
    }
  }
  return seconds;
}

/** Counts every header, wherever it is. One in 16,000 other bytes looks like one. */
function adtsSeconds(bytes: Buffer): number {
  let seconds = 0;
  let hasTwo = false;
  for (let at = bytes.indexOf(0xff); at !== -1; at = bytes.indexOf(0xff, at + 1)) {
    const rate = aacRates[((bytes[at + 2] ?? 0xff) >>> 2) & 15];
    if (((bytes[at + 1] ?? 0) & 0xf6) !== 0xf0 || rate === undefined) continue;
    seconds += (((bytes[at + 6] ?? 0) & 3) + 1) * (aacSamples / rate);
    const length = (bigEndian(bytes, at + 3, 3) >>> 5) & 0x1fff;
    hasTwo ||= length >= 7 && (bigEndian(bytes, at + length, 2) & 0xfff6) === 0xfff0;
  }
  return hasTwo ? seconds : 0;
}

/** @param at the place of an AudioSpecificConfig. @see https://wiki.multimedia.cx/index.php/MPEG-4_Audio */
function aacFrame(bytes: Buffer, at: number): number {
  const bits = bigEndian(bytes, at, 2);
  const rate = aacRates[(bits >>> 7) & 15];
  return rate !== undefined && aacTypes.includes(bits >>> 11) ? aacSamples / rate : Infinity;
}

/** Counts the samples that an MP4's tables claim, wherever they are. Only the sound is not searched. */
function mp4Seconds(bytes: Buffer): number {
  let samples = 0;
  let frame = 0;
  let boxes = 0;
  for (let at = 0; at + 8 <= bytes.length;) {
    boxes += 1;
    const short = bigEndian(bytes, at, 4);
    const size = short === 1 ? bigEndian(bytes, at + 10, 6) : short === 0 ? bytes.length - at : short;
    if (size < 8 || boxes > 100_000) return Infinity;
    const content = bytes.subarray(at + 8, at + size);
    if (!["mdat", "free", "skip", "wide"].includes(latin1(bytes, at + 4, 4))) {
      // After the id come version and flags, the size of all samples, and how many there are.
      for (const table of ["stsz", "stz2"])
        samples += sumOver(content, table, (found) => bigEndian(content, found + 12, 4));
      samples += sumOver(content, "trun", (found) => bigEndian(content, found + 8, 4));
      frame = Math.max(
        frame,
        longestFrame(content, "stsd", (found) => mp4Frame(content, found + 4)),
      );
    }
    at += size;
  }
  return frame === 0 ? Infinity : samples * frame;
}

function sumOver(bytes: Buffer, marker: string, countAt: (at: number) => number): number {
  let sum = 0;
  for (let at = bytes.indexOf(marker); at !== -1; at = bytes.indexOf(marker, at + 4)) sum += countAt(at);
  return sum;
}

/** Returns the frame of a sample description with one entry. @param at the place behind its id */
function mp4Frame(bytes: Buffer, at: number): number {
  const entry = latin1(bytes, at + 12, 4);
  if (bigEndian(bytes, at + 4, 4) !== 1) return Infinity;
  if (entry === "mp4a") return esdsFrame(bytes, bytes.indexOf("esds", at));
  if (entry === "alac") {
    const cookie = bytes.indexOf("alac", at + 16);
    const frame = bigEndian(bytes, cookie + 8, 4) / bigEndian(bytes, cookie + 28, 4);
    return cookie === -1 ? Infinity : frame;
  }
  if (entry === "Opus") return maxOpusSeconds;
  if (entry === "samr" || entry === "sawb") return amrSampleSeconds;
  if (entry === ".mp3") return mp3FrameSeconds;
  // A picture's track has no sound.
  return ["avc1", "hvc1", "hev1", "mp4v", "jpeg", "png ", "text", "tx3g"].includes(entry) ? 0 : Infinity;
}

/** Returns an AAC frame's seconds. @see https://wiki.multimedia.cx/index.php/MPEG-4_Systems */
function esdsFrame(bytes: Buffer, esds: number): number {
  if (esds === -1) return Infinity;
  let at = esds + 8;
  /** Enters a descriptor of this tag, whose length takes one to four bytes. */
  const enter = (tag: number, skipped: number): boolean => {
    if (bytes[at] !== tag) return false;
    at += 1;
    for (let left = 3; left > 0 && ((bytes[at] ?? 0) & 0x80) !== 0; left -= 1) at += 1;
    at += 1 + skipped;
    return true;
  };
  if (!enter(3, 3) || !enter(4, 0)) return Infinity;
  const type = bytes[at] ?? 0;
  if (type === 0x69 || type === 0x6b) return mp3FrameSeconds;
  at += 13;
  return [0x40, 0x66, 0x67, 0x68].includes(type) && enter(5, 0) ? aacFrame(bytes, at) : Infinity;
}

const ids = {
  segment: 0x18538067,
  cluster: 0x1f43b675,
  blockGroup: 0xa0,
  tracks: 0x1654ae6b,
  track: 0xae,
  codec: 0x86,
  codecPrivate: 0x63a2,
  encodings: 0x6d80,
  block: 0xa1,
  simpleBlock: 0xa3,
};
const parents = [ids.segment, ids.cluster, ids.blockGroup, ids.tracks, ids.track];

/** Damaged or packed files count as uncounted. @see https://www.rfc-editor.org/rfc/rfc9559 */
function matroskaSeconds(bytes: Buffer): number {
  const ends = [bytes.length];
  const codecs = new Set<string>();
  let aac = 0;
  let opus = 0;
  let frames = 0;
  for (let at = 0; at < bytes.length;) {
    while (at >= ends.at(-1)!) ends.pop();
    const idLength = Math.clz32(bytes[at] ?? 0) - 23;
    const sizeAt = at + idLength;
    const sizeLength = Math.clz32(bytes[sizeAt] ?? 0) - 23;
    const id = bigEndian(bytes, at, Math.min(idLength, 4));
    const content = sizeAt + sizeLength;
    if (idLength > 4 || sizeLength > 8 || content > ends.at(-1)!) return Infinity;
    const isUnknown = bytes
      .subarray(sizeAt, content)
      .every((byte, index) => byte === (index === 0 ? 2 ** (9 - sizeLength) - 1 : 255));
    const tail = Math.min(sizeLength - 1, 6);
    const first = sizeLength === 8 ? 0 : (bytes[sizeAt] ?? 0) & (2 ** (8 - sizeLength) - 1);
    const end = content + first * 256 ** tail + bigEndian(bytes, content - tail, tail);
    const isParent = parents.includes(id);
    if (isUnknown ? !isParent : end > ends.at(-1)!) return Infinity;
    if (id === ids.encodings) return Infinity;
    if (id === ids.codec) codecs.add(latin1(bytes, content, Math.min(end - content, 32)).split("\0", 1)[0]!);
    if (id === ids.codecPrivate) aac = Math.max(aac, aacFrame(bytes, content));
    if (id === ids.block || id === ids.simpleBlock) {
      // These are the track's number, two bytes of time, and flags, of which two tell of several frames.
      const flags = content + (Math.clz32(bytes[content] ?? 0) - 23) + 2;
      const count = ((bytes[flags] ?? 0) & 6) === 0 ? 1 : (bytes[flags + 1] ?? 0) + 1;
      frames += count;
      opus += count === 1 ? opusSeconds(bytes, flags + 1) : count * maxOpusSeconds;
    }
    if (isParent && !isUnknown) ends.push(end);
    at = isParent ? content : end;
  }
  const secondsOf = (codec: string): number => {
    if (codec === "A_OPUS") return opus;
    if (codec === "A_VORBIS") return frames * (vorbisFrame(bytes) || Infinity);
    if (codec === "A_AAC") return frames * (aac || Infinity);
    if (codec === "A_MPEG/L3") return frames * mp3FrameSeconds;
    return codec.startsWith("A_") ? Infinity : 0;
  };
  return codecs.size === 0 ? Infinity : Math.max(...[...codecs].map((codec) => secondsOf(codec)));
}
