import type { MessageContent } from "../delivery/edit-target.ts";
import { cutText, escapeMarkdown, escapeText } from "./markdown.ts";
import type { SlackContent } from "./web-api.ts";

/** The Retry button's `action_id`. */
export const retryAction = "parley_retry";
/** That of a button that confirms. */
export const confirmAction = "parley_confirm";

type Block = SlackContent["blocks"][number];

/** `plain_text` shows everything as it is: no mention, link or emphasis lives in it. */
const plain = (text: string) => ({ type: "plain_text", text: cutText(text, 3000), emoji: true });

const small = (text: string): Block => ({ type: "context", elements: [plain(text)] });

/** Draws one message of a reply. The text is also the fallback, for notifications and screen readers. */
export function toSlackContent(content: MessageContent): SlackContent {
  const blocks: Block[] = [];
  const markdown = escapeMarkdown(content.text);
  const isOpen = content.state === "waiting" || content.state === "growing";
  if (markdown.trim() !== "") blocks.push({ type: "markdown", text: markdown });
  const status = isOpen ? (content.status ?? (blocks.length === 0 ? "Thinking" : undefined)) : undefined;
  if (status !== undefined) blocks.push(small(`${status}…`));
  if (content.failure !== undefined)
    blocks.push({ type: "section", text: plain(`:warning: ${content.failure}`) });
  if (content.notices !== undefined && content.notices.length > 0)
    blocks.push(small(content.notices.join("\n")));
  if (content.retryKey !== undefined) blocks.push(toButton(retryAction, "Retry", content.retryKey));
  if (content.confirm !== undefined) {
    const { label, key } = content.confirm;
    blocks.push(toButton(confirmAction, cutText(label, 75), key, { style: "danger" }));
  }
  if (blocks.length === 0) blocks.push(small("Done."));
  const fallback = content.failure ?? status ?? content.notices?.[0] ?? "Done.";
  return { text: markdown.trim() === "" ? escapeText(cutText(fallback, 500)) : markdown, blocks };
}

function toButton(action: string, label: string, value: string, look: Block = {}): Block {
  return {
    type: "actions",
    elements: [
      {
        type: "button",
        action_id: action,
        text: { type: "plain_text", text: label },
        value,
        ...look,
      },
    ],
  };
}
