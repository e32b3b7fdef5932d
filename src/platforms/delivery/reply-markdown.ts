import type { ReplyContent } from "../../core/platform.ts";

/** The lead and the text as one Markdown document. */
export function toMarkdown({ lead = "", text }: ReplyContent): string {
  return lead === "" ? text : `${lead}\n\n${text}`;
}
