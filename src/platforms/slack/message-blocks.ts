import { actionLabels, isReplyActionKind, type ReplyActionKind } from "../../core/reply-actions.ts";
import type { MessageContent } from "../delivery/edit-target.ts";
import { toFormSelect } from "./form-modal.ts";
import { escapeMarkdown } from "./escape-markdown.ts";
import { cutText, escapeText } from "./markdown.ts";
import type { SlackContent } from "./web-api.ts";

/** `action_id` of the Retry button. */
export const retryAction = "parley_retry";
/** `action_id` of a button that confirms a command. */
export const confirmAction = "parley_confirm";

/** What the `action_id` of a button below an answer begins with; the action's kind follows. */
const actionPrefix = "parley_act:";
/** Matches the `action_id` of every button below an answer. */
export const answerActions = new RegExp(`^${actionPrefix}`);
/** A longer value is refused. */
const maxValueChars = 2000;

/** The kind of action of an `action_id`. `undefined`: it is none, or one of another version. */
export function parseActionId(actionId: string): ReplyActionKind | undefined {
  const kind = actionId.slice(actionPrefix.length);
  return actionId.startsWith(actionPrefix) && isReplyActionKind(kind) ? kind : undefined;
}

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
  const buttons = toButtons(content);
  if (buttons.length > 0) blocks.push({ type: "actions", elements: buttons });
  blocks.push(...toFormSelect(content.forms ?? []));
  if (blocks.length === 0) blocks.push(toSmallPrint("Done."));
  const fallback = content.failure ?? status ?? content.notices?.[0] ?? "Done.";
  return { text: markdown.trim() === "" ? escapeText(cutText(fallback, 500)) : markdown, blocks };
}

function toButtons({ retryKey, confirm, actions = [] }: MessageContent): Block[] {
  return [
    ...(retryKey === undefined ? [] : [toButton(retryAction, "Retry", retryKey)]),
    ...(confirm === undefined
      ? []
      : [toButton(confirmAction, cutText(confirm.label, 75), confirm.key, { style: "danger" })]),
    ...actions
      .filter(({ key }) => key.length <= maxValueChars)
      .map(({ kind, key }) => toButton(actionPrefix + kind, actionLabels[kind], key)),
  ];
}

function toButton(action: string, label: string, value: string, style: Block = {}): Block {
  return { type: "button", action_id: action, text: { type: "plain_text", text: label }, value, ...style };
}
