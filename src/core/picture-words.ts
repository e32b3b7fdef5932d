import { translate } from "../words/translate.ts";

/** How many characters of a prompt a notice quotes at most. */
const maxQuotedChars = 80;

/** A picture in the words of a notice. */
export interface NamedPicture {
  /** Its position among the pictures of its message, from 1. `of` is their number. */
  readonly number: number;
  readonly of: number;
  /** The prompt or the alt text. A picture at an address has the address's host. */
  readonly prompt: string;
  /** When its message was written, in Unix milliseconds. */
  readonly at: number;
}

/** Notice that says from which picture a changed one was made. */
export function changedFromNotice(picture: NamedPicture): string {
  return translate("picture.changed-from", { picture: nameOf(picture) });
}

/** Notice that names the last picture that the model saw when it drew a picture unasked. */
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

/** The beginning of a prompt on one line, with at most 80 characters. */
export function shortened(prompt: string): string {
  const line = prompt.replaceAll(/\s+/g, " ").trim();
  return line.length <= maxQuotedChars
    ? line
    : `${line.slice(0, maxQuotedChars - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** Notice that the bytes of some pictures of a stored answer are gone. */
export function picturesMissingNotice(count: number): string {
  return translate("picture.missing", { count });
}

/** Notice that the answer is complete and stored, but its pictures cannot be posted. `why` is a sentence. */
export function picturesNotShownNotice(why: string): string {
  return translate("picture.not-shown", { why });
}
