import type { MessageContent } from "../delivery/edit-target.ts";
import { toFormSelect } from "./form-modal.ts";
import { cutText, escapeMarkdown, escapeText } from "./markdown.ts";
import type { SlackContent } from "./web-api.ts";

/** `action_id` of the Retry button. */
export const retryAction = "parley_retry";
/** `action_id` of a button that confirms a command. */
export const confirmAction = "parley_confirm";

type Block = SlackContent["blocks"][number];

/** In `plain_text` mentions, links and emphasis have no effect. */
const toPlain = (text: string) => ({ type: "plain_text", text: cutText(text, 3000), emoji: true });

const toSmallPrint = (text: string): Block => ({ type: "context", elements: [toPlain(text)] });

/** A paragraph of plain text; at most 3,000 characters are shown. */
export function toPlainSection(text: string): Block {
  return { type: "section", text: toPlain(text) };
}

/** One message of a reply. Its `text` is the fallback for notifications and screen readers. */
export function toSlackContent(content: MessageContent): SlackContent {
  const blocks: Block[] = [];
  const markdown = escapeMarkdown(content.text);
  const isOpen = content.state === "waiting" || content.state === "streaming";
  if (markdown.trim() !== "") blocks.push({ type: "markdown", text: markdown });
  const status = isOpen ? (content.status ?? (blocks.length === 0 ? "Thinking" : undefined)) : undefined;
  if (status !== undefined) blocks.push(toSmallPrint(`${status}…`));
  if (content.failure !== undefined) blocks.push(toPlainSection(`:warning: ${content.failure}`));
  if (content.notices !== undefined && content.notices.length > 0)
    blocks.push(toSmallPrint(content.notices.join("\n")));
  if (content.retryKey !== undefined) blocks.push(toButton(retryAction, "Retry", content.retryKey));
  if (content.confirm !== undefined) {
    const { label, key } = content.confirm;
    blocks.push(toButton(confirmAction, cutText(label, 75), key, { style: "danger" }));
  }
  blocks.push(...toFormSelect(content.forms ?? []));
  if (blocks.length === 0) blocks.push(toSmallPrint("Done."));
  const fallback = content.failure ?? status ?? content.notices?.[0] ?? "Done.";
  return { text: markdown.trim() === "" ? escapeText(cutText(fallback, 500)) : markdown, blocks };
}

function toButton(action: string, label: string, value: string, style: Block = {}): Block {
  return {
    type: "actions",
    elements: [
      {
        type: "button",
        action_id: action,
        text: { type: "plain_text", text: label },
        value,
        ...style,
      },
    ],
  };
}
