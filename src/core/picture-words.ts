import { translate } from "../words/translate.ts";

/** Longest beginning of a prompt that a notice quotes, in characters. */
const maxQuotedChars = 80;

/** A picture as a notice names it. */
export interface NamedPicture {
  /** Its position among the pictures of its message, from 1, and how many there are. */
  readonly number: number;
  readonly of: number;
  /** The prompt or the alt text; of a picture at an address its host. */
  readonly prompt: string;
  /** When its message was written, in Unix milliseconds. */
  readonly at: number;
}

/** Which picture a changed one was made from. */
export function changedFromNotice(picture: NamedPicture): string {
  return translate("picture.changed-from", { picture: nameOf(picture) });
}

/** The last picture that a model had before it when it drew by itself. */
export function lastShownNotice(picture: NamedPicture): string {
  return translate("picture.last-shown", { picture: nameOf(picture) });
}

function nameOf({ number, of, prompt, at }: NamedPicture): string {
  const named = {
    prompt: shortened(prompt),
    at: new Date(at).toISOString().slice(0, 16).replace("T", " "),
  };
  return of === 1
    ? translate("picture.one", named)
    : translate("picture.several", { ...named, number, count: of });
}

/** The beginning of a prompt on one line, of at most 80 characters. */
export function shortened(prompt: string): string {
  const line = prompt.replaceAll(/\s+/g, " ").trim();
  return line.length <= maxQuotedChars
    ? line
    : `${line.slice(0, maxQuotedChars - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** Pictures of a stored answer whose bytes are not kept any more. */
export function picturesMissingNotice(count: number): string {
  return translate("picture.missing", { count });
}

/** The answer is complete and stored, and its pictures cannot be posted. `why`: a sentence. */
export function picturesNotShownNotice(why: string): string {
  return translate("picture.not-shown", { why });
}
