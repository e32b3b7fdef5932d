import { quote } from "./quote.ts";
import type { TimedWords } from "../../core/gateway.ts";
import { translate } from "../../words/translate.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { Reply, ReplyFile } from "../../core/platform.ts";

/** The longest transcript that is shown in a message: what Discord takes in one, with its quote marks. */
const maxShownTranscriptChars = 1500;

/** What of a transcript is shown in a message, and the file that has all of it. */
export interface ShownTranscript {
  readonly text: string;
  /** Absent: all of it is shown. */
  readonly file?: ReplyFile;
}

/**
 * A transcript for people: whole in the message, or its beginning there and all of it in a text file, with times where
 * they are known. @param name of the recording
 */
export function toShownTranscript(
  name: string,
  text: string,
  timed: readonly TimedWords[] = [],
): ShownTranscript {
  if (text.length <= maxShownTranscriptChars) return { text };
  const stem = name.replace(/\.[^.]*$/, "").replace(/[^\p{L}\p{N}._-]+/gu, "_") || "recording";
  const fileName = `${stem.slice(0, 60)}-transcript.txt`;
  const head = text.slice(0, maxShownTranscriptChars).replace(/(?<!\s)\s+\S*$/, "");
  const lines =
    timed.length === 0
      ? text
      : timed.map((words) => `[${toClock(words.fromSeconds)}] ${words.text}`).join("\n");
  return {
    text: `${head} …\n\n${translate("transcript.whole-in-file", { file: fileName })}`,
    file: {
      name: fileName,
      mediaType: "text/plain",
      bytes: Buffer.from(`${lines}\n`),
      altText: translate("transcript.of", { name }),
    },
  };
}

/** A transcript before the answer to it, in Markdown. */
export function toQuotedTranscript(text: string): string {
  return quote(translate("transcript.quoted", { text }));
}

/** Shows the files. One that the platform does not take is no failure of the answer: the notices say so. */
export async function attachTranscripts(
  reply: Pick<Reply, "attach">,
  files: readonly ReplyFile[],
  signal: AbortSignal,
): Promise<string[]> {
  const results = await Promise.allSettled(files.map((file) => reply.attach(file)));
  signal.throwIfAborted();
  return results.flatMap((result, index) =>
    result.status === "fulfilled"
      ? []
      : [
          translate("transcript.file-failed", {
            file: files[index]?.name ?? "",
            why: toNotice(result.reason),
          }),
        ],
  );
}

/** A time in a recording: `1:05`, `1:00:00`. */
export function toClock(seconds: number): string {
  const whole = Math.floor(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (value: number) => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}
