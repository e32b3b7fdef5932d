import type { DocumentProblem, Omission } from "../../media/documents/document.ts";
import type { MessageKey } from "../../words/english.ts";
import { translate } from "../../words/translate.ts";

/** Sheets that are named of those that were cut. */
const maxNamedSheets = 5;

/** Why a document was not read, and what to do: the second half of "Not read: report.pdf (…)". */
export function documentProblem(problem: DocumentProblem): string {
  return translate(`document.${problem}`);
}

/** Kinds that are known and not read, by sniffed media type. */
const unreadKinds = {
  "application/x-encrypted-office": "document.encrypted",
  "application/msword": "document.old-word",
  "application/vnd.ms-excel": "document.old-excel",
  "application/vnd.ms-powerpoint": "document.old-powerpoint",
} as const satisfies Readonly<Record<string, MessageKey>>;

/** Why a file that is no picture, recording, text or document was not read. */
export function unreadKind(mediaType: string): string {
  return Object.hasOwn(unreadKinds, mediaType)
    ? translate(unreadKinds[mediaType as keyof typeof unreadKinds])
    : translate("file.other-type", { type: mediaType });
}

/** What was left out of a document, a sentence each. */
export function omissionNotices(name: string, omissions: readonly Omission[]): string[] {
  return omissions.map((omission) => toSentence(name, omission));
}

function toSentence(name: string, omission: Omission): string {
  switch (omission.kind) {
    case "pages":
    case "slides":
    case "sheets":
      return translate(`document.cut.${omission.kind}`, { name, read: omission.read, count: omission.count });
    case "blank-pages": {
      const { count, pages } = omission;
      if (count === 1) return translate("document.blank-page", { name, page: String(pages[0]) });
      const named = `${pages.join(", ")}${count > pages.length ? ", …" : ""}`;
      return translate("document.blank-pages", { name, count, pages: named });
    }
    case "pictures":
      return omission.count === undefined
        ? translate("document.pictures", { name })
        : translate("document.pictures.counted", { name, count: omission.count });
    case "rows":
      return omission.sheets.length === 0
        ? translate("document.rows", { name })
        : translate("document.rows.sheets", {
            name,
            sheets: omission.sheets.slice(0, maxNamedSheets).join(", "),
          });
    case "characters":
      return translate("file.text-cut", { name, max: omission.read });
  }
}
