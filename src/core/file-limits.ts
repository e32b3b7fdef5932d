import type { Attachment } from "./events.ts";

/** Largest file that people may send, in bytes; of recordings see {@link maxRecordingBytes}. */
export const maxFileBytes = 25_000_000;
/** Largest recording, in bytes: it is transcribed in parts. An hour of MP3 at 128 kbit/s is 58 MB. */
export const maxRecordingBytes = 75_000_000;

/** Whether a file is a recording by what platform and sender claim, which only decides how much of it is taken. */
export function isClaimedSound({
  name,
  mediaType = "",
  durationMs,
}: Pick<Attachment, "name" | "mediaType" | "durationMs">): boolean {
  return (
    durationMs !== undefined ||
    /^(?:audio|video)\//.test(mediaType) ||
    /\.(?:mp3|m4a|mp4|ogg|oga|opus|wav|flac|aac|webm|aiff?|caf|amr)$/i.test(name)
  );
}
