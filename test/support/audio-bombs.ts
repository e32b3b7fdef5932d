const u16 = (value: number): number[] => [(value >>> 8) & 255, value & 255];
const u32 = (value: number): number[] => [...u16(value >>> 16), ...u16(value & 0xffff)];
const ascii = (text: string): number[] => Array.from(text, (letter) => letter.charCodeAt(0));

function box(id: string, ...contents: readonly (readonly number[] | Uint8Array)[]): Buffer {
  const content = Buffer.concat(contents.map((one) => Buffer.from(one)));
  return Buffer.concat([Buffer.from([...u32(content.length + 8), ...ascii(id)]), content]);
}

/** A frame of AAC silence, stereo, 1,024 samples. */
const silentAac = [0x21, 0x00, 0x49, 0x90, 0x02, 0x19, 0x00, 0x23, 0x80];

/**
 * Makes an M4A of silent AAC frames at 44.1 kHz whose headers claim ten seconds. With 465,000 frames (4 MB)
 * it lasts three hours. The tables stand behind the sound, so that a decoder gets all of it at once.
 */
export function m4aBomb(frames: number): Buffer {
  const ftyp = box("ftyp", ascii("M4A "), u32(0), ascii("M4A isom"));
  const mdat = box("mdat", Buffer.concat(Array.from({ length: frames }, () => Buffer.from(silentAac))));
  const matrix = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000].flatMap((value) => u32(value));
  const claimed = [...u32(44_100), ...u32(441_000)];
  const mvhd = box(
    "mvhd",
    u32(0),
    u32(0),
    u32(0),
    claimed,
    u32(0x10000),
    u16(0x100),
    Array.from({ length: 10 }, () => 0),
    matrix,
    Array.from({ length: 24 }, () => 0),
    u32(2),
  );
  const tkhd = box(
    "tkhd",
    u32(3),
    u32(0),
    u32(0),
    u32(1),
    u32(0),
    u32(441_000),
    u32(0),
    u32(0),
    u32(0),
    u16(0x100),
    u16(0),
    matrix,
    u32(0),
    u32(0),
  );
  const mdhd = box("mdhd", u32(0), u32(0), u32(0), claimed, u16(0x55c4), u16(0));
  const hdlr = box("hdlr", u32(0), u32(0), ascii("soun"), u32(0), u32(0), u32(0), [0]);
  // This is an ES descriptor with a decoder configuration of MPEG-4 audio: AAC-LC, 44.1 kHz, stereo.
  const decoder = [4, 17, 0x40, 0x15, 0, 0, 0, ...u32(128_000), ...u32(128_000), 5, 2, 0x12, 0x10];
  const esds = box("esds", u32(0), [3, 3 + decoder.length + 3, 0, 1, 0], decoder, [6, 1, 2]);
  const mp4a = box(
    "mp4a",
    u32(0),
    u16(0),
    u16(1),
    u32(0),
    u32(0),
    u16(2),
    u16(16),
    u32(0),
    u16(44_100),
    u16(0),
    esds,
  );
  const stbl = box(
    "stbl",
    box("stsd", u32(0), u32(1), mp4a),
    box("stts", u32(0), u32(1), u32(frames), u32(1024)),
    box("stsc", u32(0), u32(1), u32(1), u32(frames), u32(1)),
    box("stsz", u32(0), u32(silentAac.length), u32(frames)),
    box("stco", u32(0), u32(1), u32(ftyp.length + 8)),
  );
  const minf = box("minf", box("smhd", u32(0), u32(0)), stbl);
  const trak = box("trak", tkhd, box("mdia", mdhd, hdlr, minf));
  return Buffer.concat([ftyp, mdat, box("moov", mvhd, trak)]);
}

/** Makes FLAC of constant blocks. A frame of 40 bytes decodes to 65,535 samples of eight channels. */
export function flacBomb(frames: number): Buffer {
  const rate = 44_100;
  // The bits are: sample rate (20), channels - 1 (3), bits - 1 (5), upper bits of the number of samples (4).
  const packed = [
    rate >>> 12,
    (rate >>> 4) & 255,
    ((rate & 15) << 4) | (7 << 1) | 0,
    (15 << 4) | 0,
    ...u32(rate * 10),
  ];
  const info = [
    ...u16(65_535),
    ...u16(65_535),
    0,
    0,
    0,
    0,
    0,
    0,
    ...packed,
    ...Array.from({ length: 16 }, () => 0),
  ];
  const head = Buffer.from([...ascii("fLaC"), 0x80, 0, 0, 34, ...info]);
  const blocks = Array.from({ length: frames }, (_, number) => {
    const header = [0xff, 0xf8, 0x79, 0x78, ...utf8Number(number), ...u16(65_534)];
    const body = [...header, crc(header, 8, 0x07), ...Array.from({ length: 8 }, () => [0, 0, 1]).flat()];
    return Buffer.from([...body, ...u16(crc(body, 16, 0x8005))]);
  });
  return Buffer.concat([head, ...blocks]);
}

function utf8Number(value: number): number[] {
  return [...Buffer.from(String.fromCodePoint(value))];
}

function crc(bytes: readonly number[], bits: 8 | 16, polynomial: number): number {
  const top = 1 << (bits - 1);
  const mask = bits === 8 ? 0xff : 0xffff;
  let value = 0;
  for (const byte of bytes) {
    value ^= byte << (bits - 8);
    for (let bit = 0; bit < 8; bit += 1)
      value = ((value & top) === 0 ? value << 1 : (value << 1) ^ polynomial) & mask;
  }
  return value;
}

/** Makes an Ogg page of `packets` shorter than 255 bytes each. Its checksum is not set. */
function oggPage(flags: number, number: number, packets: readonly (readonly number[])[]): Buffer {
  const le32 = (value: number): number[] => u32(value).toReversed();
  const granule = [...le32(0), ...le32(0)];
  const lacing = packets.map(({ length }) => length);
  return Buffer.from([
    ...ascii("OggS"),
    0,
    flags,
    ...granule,
    ...le32(1),
    ...le32(number),
    ...le32(0),
    packets.length,
    ...lacing,
    ...packets.flat(),
  ]);
}

/** Two frames of 60 ms without a byte of sound. */
const emptyOpus = [0x1b, 0x02];

/** Makes Ogg/Opus of empty packets. Each lasts 120 ms and takes three bytes. */
export function opusBomb(packets: number): Buffer {
  const head = [...ascii("OpusHead"), 1, 1, 0, 0, 0x80, 0xbb, 0, 0, 0, 0, 0];
  const tags = [...ascii("OpusTags"), 0, 0, 0, 0, 0, 0, 0, 0];
  const pages = [oggPage(2, 0, [head]), oggPage(0, 1, [tags])];
  for (let left = packets; left > 0; left -= 255)
    pages.push(
      oggPage(
        0,
        pages.length,
        Array.from({ length: Math.min(255, left) }, () => emptyOpus),
      ),
    );
  return Buffer.concat(pages);
}

function element(id: readonly number[], ...contents: readonly (readonly number[] | Uint8Array)[]): Buffer {
  const content = Buffer.concat(contents.map((one) => Buffer.from(one)));
  return Buffer.concat([
    Buffer.from([...id, 0x10 | (content.length >>> 24), ...u32(content.length).slice(1)]),
    content,
  ]);
}

/** Makes WebM of blocks of 256 empty Opus packets. With `packed` they use Matroska's own compression. */
export function webmBomb(blocks: number, packed = false): Buffer {
  const track = element(
    [0xae],
    element([0xd7], [1]),
    element([0x83], [2]),
    element([0x86], ascii("A_OPUS")),
    ...(packed ? [element([0x6d, 0x80], element([0x62, 0x40]))] : []),
  );
  const block = element([0xa3], [0x81, 0, 0, 0x84, 255], Array.from({ length: 256 }, () => emptyOpus).flat());
  const unknown = [0x01, 255, 255, 255, 255, 255, 255, 255];
  return Buffer.concat([
    element([0x1a, 0x45, 0xdf, 0xa3], element([0x42, 0x82], ascii("webm"))),
    Buffer.from([0x18, 0x53, 0x80, 0x67, ...unknown]),
    element([0x16, 0x54, 0xae, 0x6b], track),
    ...Array.from({ length: blocks }, () => [
      Buffer.from([0x1f, 0x43, 0xb6, 0x75, ...unknown]),
      block,
    ]).flat(),
  ]);
}

/** Makes AAC with ADTS headers. Each frame of sixteen bytes is half a second of silence at 8 kHz. */
export function adtsBomb(frames: number): Buffer {
  const length = 7 + silentAac.length;
  const header = [
    0xff,
    0xf1,
    0x40 | (11 << 2),
    0x80 | (length >>> 11),
    (length >>> 3) & 255,
    ((length & 7) << 5) | 31,
    0xff,
  ];
  const frame = Buffer.from([...header, ...silentAac]);
  return Buffer.concat(Array.from({ length: frames }, () => frame));
}
