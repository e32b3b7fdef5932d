import type { TimedWords } from "../../core/gateway.ts";
import type { ReplyFile } from "../../core/platform.ts";
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

/** Larger tables than this are not made, so that no correction takes long. */
const maxCells = 4_000_000;

/**
 * The times of a transcript after its words were corrected. Words that both texts have keep their time, and
 * those between them share the time of the words that they replace.
 */
export function moveTimes(times: readonly WordTime[], before: string, after: string): readonly WordTime[] {
  if (times.length === 0) return times;
  const [old, fixed] = [wordsOf(before), wordsOf(after)];
  const same = [...findSame(old, fixed), [old.length, fixed.length] as const];
  const moved: WordTime[] = [];
  let word = 0;
  let next = 0;
  for (const time of times) {
    while (word < old.length && old[word]!.at < time.at) word += 1;
    while (same[next]![0] < word) next += 1;
    const [oldEnd, fixedEnd] = same[next]!;
    const [oldStart, fixedStart] = next === 0 ? [0, 0] : same[next - 1]!.map((index) => index + 1);
    const share = oldEnd === word ? 1 : (word - oldStart!) / (oldEnd - oldStart!);
    const at = fixed[fixedStart! + Math.round(share * (fixedEnd - fixedStart!))]?.at;
    if (at === undefined) continue;
    // Nothing is left of the words that had the time before.
    if (moved.at(-1)?.at === at) moved.pop();
    moved.push({ ...time, at });
  }
  return moved;
}

interface Word {
  readonly at: number;
  /** What words are compared by: without case and punctuation marks. */
  readonly key: string;
}

/** Words, and single characters of scripts that are written without spaces. */
const wordPattern =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}]|[^\s\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}]+/gu;

function wordsOf(text: string): readonly Word[] {
  return [...text.matchAll(wordPattern)].map(({ 0: word, index }) => ({
    at: index,
    key: word.toLowerCase().replaceAll(/[^\p{L}\p{M}\p{N}]/gu, "") || word,
  }));
}

/** The longest sequence of words that both texts have, as pairs of their indexes. */
function findSame(old: readonly Word[], fixed: readonly Word[]): (readonly [number, number])[] {
  const isSame = (one: number, other: number): boolean => old[one]!.key === fixed[other]!.key;
  const shorter = Math.min(old.length, fixed.length);
  let head = 0;
  while (head < shorter && isSame(head, head)) head += 1;
  let tail = 0;
  while (tail < shorter - head && isSame(old.length - 1 - tail, fixed.length - 1 - tail)) tail += 1;
  const pairs = Array.from({ length: head }, (_, index) => [index, index] as const);
  const [rows, columns] = [old.length - head - tail, fixed.length - head - tail];
  if (rows * columns <= maxCells) {
    const width = columns + 1;
    const lengths = new Uint16Array((rows + 1) * width);
    for (let row = rows - 1; row >= 0; row -= 1)
      for (let column = columns - 1; column >= 0; column -= 1)
        lengths[row * width + column] = isSame(head + row, head + column)
          ? lengths[(row + 1) * width + column + 1]! + 1
          : Math.max(lengths[(row + 1) * width + column]!, lengths[row * width + column + 1]!);
    for (let row = 0, column = 0; row < rows && column < columns;) {
      if (isSame(head + row, head + column)) pairs.push([head + row++, head + column++]);
      else if (lengths[(row + 1) * width + column]! >= lengths[row * width + column + 1]!) row += 1;
      else column += 1;
    }
  }
  for (let left = tail; left > 0; left -= 1) pairs.push([old.length - left, fixed.length - left]);
  return pairs;
}

/** The words of a transcript from one of its times to the next. The first also has what stands before it. */
function toCues({ text, times = [] }: Transcript) {
  return times
    .map(({ at, from, to }, index) => ({
      from,
      to,
      words: text
        .slice(index === 0 ? 0 : at, times[index + 1]?.at)
        .replaceAll(/\s+/g, " ")
        .trim(),
    }))
    .filter(({ words }) => words !== "");
}

/**
 * A transcript as files: as text, with times if they are known, and as subtitles if the gateway has told when
 * words end.
 */
export function toTranscriptFiles(transcript: Transcript): readonly ReplyFile[] {
  const hasEnds = transcript.times?.some(({ to }) => to !== undefined) === true;
  return [
    toFile(transcript, "txt", "text/plain", toLines(transcript)),
    ...(hasEnds ? [toFile(transcript, "srt", "application/x-subrip", toSubtitles(transcript))] : []),
  ];
}

function toLines(transcript: Transcript): string {
  const cues = toCues(transcript);
  if (cues.length === 0) return `${transcript.text}\n`;
  return cues.map(({ from, words }) => `[${toClock(from)}] ${words}\n`).join("");
}

function toSubtitles(transcript: Transcript): string {
  const cues = toCues(transcript);
  return cues
    .map(({ from, to, words }, index) => {
      const next = cues[index + 1]?.from ?? from + usualSeconds;
      const end = to ?? Math.max(next, from + 1);
      // An arrow in the words would look like another line of times.
      return `${index + 1}\n${toStamp(from)} --> ${toStamp(end)}\n${words.replaceAll("-->", "->")}\n`;
    })
    .join("\n");
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
export function toShownTranscript(transcript: Transcript): ShownTranscript {
  const { text } = transcript;
  if (text.length <= maxShownTranscriptChars) return { text };
  const [file] = toTranscriptFiles(transcript);
  const head = text.slice(0, maxShownTranscriptChars).replace(/(?<!\s)\s+\S*$/, "");
  return {
    text: `${head} …\n\n${translate("transcript.whole-in-file", { file: file!.name })}`,
    file: file!,
  };
}

/** A time in a recording, for example `1:05` or `1:00:00`. */
export function toClock(seconds: number): string {
  const whole = Math.floor(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (value: number) => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}
