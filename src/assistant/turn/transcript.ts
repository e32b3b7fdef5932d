import type { TimedWords } from "../../core/gateway.ts";
import type { ReplyFile } from "../../core/reply.ts";
import type { WordTime } from "../../core/storage.ts";
import { nextPiece } from "../../support/pieces.ts";
import { translate } from "../../words/translate.ts";

interface Transcript {
  readonly name: string;
  readonly text: string;
  readonly times?: readonly WordTime[];
}

/** The longest transcript in a message, which every platform accepts together with its quote marks. */
const maxShownTranscriptChars = 1500;
/** How far a segment's words may be from where they are expected, in characters. */
const maxAstray = 2000;
/** How long the last words of a transcript are shown without a known end. */
const usualSeconds = 5;

/** Finds timed words in the text that they belong to. Words that are not there have no time. */
export async function toTimes(text: string, timed: readonly TimedWords[]): Promise<readonly WordTime[]> {
  const times: WordTime[] = [];
  let end = 0;
  let latest = 0;
  for (const { text: words, fromSeconds, toSeconds } of timed) {
    await nextPiece();
    const at = text.slice(end, end + maxAstray + words.length).indexOf(words);
    if (words === "" || at < 0) continue;
    latest = Math.max(latest, fromSeconds);
    const isOver = toSeconds === undefined || toSeconds <= latest;
    times.push({ at: end + at, from: latest, ...(isOver ? {} : { to: toSeconds }) });
    end += at + words.length;
  }
  return times;
}

interface Cue {
  readonly from: number;
  readonly to: number | undefined;
  readonly words: string;
}

/** The words of a transcript from one of its times to the next. The first also has what stands before it. */
async function toCues({ text, times = [] }: Transcript): Promise<readonly Cue[]> {
  const cues: Cue[] = [];
  for (const [index, { at, from, to }] of times.entries()) {
    await nextPiece();
    const piece = text.slice(index === 0 ? 0 : at, times[index + 1]?.at);
    const words = piece.replaceAll(/\s+/g, " ").trim();
    if (words !== "") cues.push({ from, to, words });
  }
  return cues;
}

/**
 * A transcript as files: as text, with times if they are known, and as subtitles if the gateway has told when
 * words end.
 */
export async function toTranscriptFiles(transcript: Transcript): Promise<readonly ReplyFile[]> {
  const hasEnds = transcript.times?.some(({ to }) => to !== undefined) === true;
  const text = await toTextFile(transcript);
  return hasEnds
    ? [text, toFile(transcript, "srt", "application/x-subrip", await toSubtitles(transcript))]
    : [text];
}

async function toTextFile(transcript: Transcript): Promise<ReplyFile> {
  const cues = await toCues(transcript);
  const lines = cues.map(({ from, words }) => `[${toClock(from)}] ${words}\n`);
  return toFile(
    transcript,
    "txt",
    "text/plain",
    lines.length === 0 ? `${transcript.text}\n` : lines.join(""),
  );
}

async function toSubtitles(transcript: Transcript): Promise<string> {
  const cues = await toCues(transcript);
  const lines: string[] = [];
  for (const [index, { from, to, words }] of cues.entries()) {
    await nextPiece();
    const next = cues[index + 1]?.from ?? from + usualSeconds;
    const end = to ?? Math.max(next, from + 1);
    // An arrow in the words would look like another line of times.
    lines.push(`${index + 1}\n${toStamp(from)} --> ${toStamp(end)}\n${words.replaceAll("-->", "->")}\n`);
  }
  return lines.join("\n");
}

/** A time of a subtitle: `01:02:03,450`. */
function toStamp(seconds: number): string {
  const ms = Math.round(seconds * 1000);
  const pad = (value: number, digits = 2) => String(Math.floor(value)).padStart(digits, "0");
  return `${pad(ms / 3_600_000)}:${pad((ms / 60_000) % 60)}:${pad((ms / 1000) % 60)},${pad(ms % 1000, 3)}`;
}

function toFile({ name }: Transcript, extension: string, mediaType: string, text: string): ReplyFile {
  const stem = name.replace(/\.[^.]*$/, "").replace(/[^\p{L}\p{N}._-]+/gu, "_") || "recording";
  return {
    name: `${stem.slice(0, 60)}-transcript.${extension}`,
    mediaType,
    bytes: Buffer.from(text),
    altText: translate("transcript.of", { name }),
  };
}

/** The part of a transcript that a message shows, and the file with all of it. */
interface ShownTranscript {
  readonly text: string;
  /** It is absent if the message shows everything. */
  readonly file?: ReplyFile;
}

/** A transcript for people, which is either all in the message, or begins there and is complete in a file. */
export async function toShownTranscript(transcript: Transcript): Promise<ShownTranscript> {
  const { text } = transcript;
  if (text.length <= maxShownTranscriptChars) return { text };
  const file = await toTextFile(transcript);
  const head = text.slice(0, maxShownTranscriptChars).replace(/(?<!\s)\s+\S*$/, "");
  return {
    text: `${head} …\n\n${translate("transcript.whole-in-file", { file: file.name })}`,
    file,
  };
}

/** A time in a recording, for example `1:05` or `1:00:00`. */
export function toClock(seconds: number): string {
  const whole = Math.floor(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (value: number) => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}
