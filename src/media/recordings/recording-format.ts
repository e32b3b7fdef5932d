import type { IFormat } from "music-metadata";

/** A recording as `sniff` detected it. */
export interface Recording {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly mediaType: string;
  readonly container: string;
}

/** What a recording's headers say. `duration` is in seconds. Headers can lie. */
export type RecordingFormat = Pick<IFormat, "codec" | "sampleRate" | "numberOfChannels" | "duration">;

/** A decoder of `audio-decode`. */
export type Decoder =
  | "opus"
  | "oga"
  | "m4a"
  | "webm"
  | "mp3"
  | "wav"
  | "flac"
  | "aac"
  | "aiff"
  | "caf"
  | "amr";

/** The decoder of each container that `sniff` knows. */
const decoders: Readonly<Record<string, Decoder>> = {
  ogg: "oga",
  mp4: "m4a",
  webm: "webm",
  matroska: "webm",
  mp3: "mp3",
  wav: "wav",
  flac: "flac",
  adts: "aac",
  aiff: "aiff",
  amr: "amr",
  caf: "caf",
};

/** Returns the decoder of a recording. @throws Error where there is none */
export function decoderOf(container: string, { codec = "" }: RecordingFormat): Decoder {
  const usual = decoders[container];
  if (usual === undefined) throw new Error("no decoder");
  if (usual !== "oga") return usual;
  return /opus/i.test(codec) ? "opus" : /flac/i.test(codec) ? "flac" : usual;
}

/** Reads a recording's headers in a worker, as hostile files make the library loop. @throws Error */
export async function readFormat(bytes: Uint8Array<ArrayBuffer>, mimeType: string): Promise<RecordingFormat> {
  const { codec, sampleRate, numberOfChannels, duration } = await parse(bytes, mimeType);
  return {
    ...(codec === undefined ? {} : { codec }),
    ...(sampleRate === undefined ? {} : { sampleRate }),
    ...(numberOfChannels === undefined ? {} : { numberOfChannels }),
    ...(duration === undefined ? {} : { duration }),
  };
}

async function parse(bytes: Uint8Array<ArrayBuffer>, mimeType: string): Promise<Partial<IFormat>> {
  const { parseBuffer } = await import("music-metadata");
  try {
    return (await parseBuffer(bytes, { mimeType }, { duration: true, skipCovers: true })).format;
  } catch (error) {
    // Browsers record WebM clusters of unknown length, which this reader rejects and the decoder accepts.
    if (mimeType !== "audio/webm") throw error;
    return Buffer.from(bytes.buffer).includes("A_OPUS") ? { codec: "Opus", sampleRate: 48_000 } : {};
  }
}
