import { actionLabel } from "../../../core/error-messages.ts";
import type { types } from "@slack/bolt";
import { isReplyActionKind, type Press, type ReplyActionKind } from "../../../core/press.ts";
import { ParleyError } from "../../../core/errors.ts";
import type { ShownSource } from "../../../core/sources.ts";
import { isRating, type Rating } from "../../../core/storage.ts";
import { translate } from "../../../words/translate.ts";
import type { MessageContent } from "../../delivery/message-plan.ts";
import { isContentError } from "../errors.ts";
import { escapeMarkdown, cutText, escapeText } from "./escape-markdown.ts";
import { formAction, toFormSelect } from "../press/form-modal.ts";
import type { SlackContent } from "../transport/web-api.ts";

/** The Retry button has this `action_id`. */
export const retryAction = "parley_retry";
/** A button that confirms a command has this `action_id`. */
export const confirmAction = "parley_confirm";
/** The feedback buttons have this `action_id`. */
const feedbackAction = "parley_feedback";
/** The `action_id` of a button below an answer is this prefix and the action's kind. */
const actionPrefix = "parley_act:";
/** This matches the `action_id` of everything that {@link parsePress} knows. */
export const pressActions = new RegExp(
  `^(?:${[retryAction, confirmAction, feedbackAction, formAction].join("|")}|${actionPrefix}.*)$`,
);

/** The method `chat.update` takes 4,000 bytes. */
const maxTextBytes = 3900;
const maxSectionChars = 3000;
/** Slack refuses a longer value. */
const maxValueChars = 2000;

/** Returns the kind of action of an `action_id`, and `undefined` for those of another version. */
export function parseActionId(actionId: string): ReplyActionKind | undefined {
  const kind = actionId.slice(actionPrefix.length);
  return actionId.startsWith(actionPrefix) && isReplyActionKind(kind) ? kind : undefined;
}

/**
 * Returns what a person pressed or chose, and `undefined` for the buttons of another version.
 * @param value of the button, or of the chosen option
 */
export function parsePress(actionId: string, value: string): Press | undefined {
  if (actionId === retryAction) return { kind: "retry", key: value };
  if (actionId === confirmAction) return { kind: "confirm", key: value };
  if (actionId === formAction) return { kind: "settings", key: value };
  if (actionId === feedbackAction) {
    const [, rating = "", key = ""] = /^(\w+) (.+)$/s.exec(value) ?? [];
    return isRating(rating) ? { kind: rating, key } : undefined;
  }
  const kind = parseActionId(actionId);
  return kind === undefined ? undefined : { kind, key: value };
}

/** In `plain_text` mentions, links and emphasis have no effect. */
const toPlain = (text: string): types.PlainTextElement => ({
  type: "plain_text",
  text: cutText(text, maxSectionChars),
  emoji: true,
});

/** Words of the bot. Names in them are inline code, in which mentions, links and emphasis have no effect. */
function toWords(text: string): types.PlainTextElement | types.MrkdwnElement {
  const escaped = escapeText(cutText(text, maxSectionChars));
  if (!text.includes("`") || escaped.length > maxSectionChars) return toPlain(text);
  return { type: "mrkdwn", text: escaped, verbatim: true };
}

const toSmallPrint = (text: string): types.ContextBlock => ({ type: "context", elements: [toWords(text)] });

/** Returns a paragraph of plain text, of which at most 3,000 characters are shown. */
function toPlainSection(text: string): types.SectionBlock {
  return { type: "section", text: toPlain(text) };
}

/** Returns a message of the bot's words. */
export function toPlainContent(text: string): SlackContent {
  return { text: escapeText(text), blocks: [{ type: "section", text: toWords(text) }] };
}

/** A message is written in one of these forms. Those that Slack may refuse come first. */
export type ContentForm = (typeof contentForms)[number];
/**
 * The form `unrated` has no feedback buttons, `plain` no Markdown in its blocks, and `text` no blocks. The
 * form `refused` says only that Slack refuses the text.
 */
const contentForms = ["markdown", "unrated", "plain", "text", "refused"] as const;

/** Returns one message of a reply. Its `text` is the fallback for notifications and screen readers. */
export function toSlackContent(content: MessageContent, form: ContentForm = "markdown"): SlackContent {
  if (form === "refused") return { text: `:warning: ${translate("slack.refused-text")}`, blocks: [] };
  const isBlank = content.text.trim() === "";
  const status = toStatus(content, isBlank);
  if (form === "text") return { text: toTextAlone(content, status), blocks: [] };
  const markdown = escapeMarkdown(content.text);
  const blocks: types.KnownBlock[] = [];
  if (!isBlank) {
    if (form === "plain") blocks.push(...toPlainSections(content.text));
    else blocks.push({ type: "markdown", text: markdown });
  }
  blocks.push(...toSourceList(content.sources ?? []));
  if (status !== undefined) blocks.push(toSmallPrint(translate("delivery.status", { status })));
  if (content.failure !== undefined)
    blocks.push({ type: "section", text: toWords(`:warning: ${content.failure}`) });
  if (content.notices !== undefined && content.notices.length > 0)
    blocks.push(toSmallPrint(content.notices.join("\n")));
  const buttons = toButtons(content);
  if (buttons.length > 0) blocks.push({ type: "actions", elements: buttons });
  blocks.push(...toFormSelect(content.forms ?? []));
  if (form === "markdown") blocks.push(...toFeedback(content));
  if (blocks.length === 0) blocks.push(toSmallPrint(translate("delivery.done")));
  const fallback = content.failure ?? status ?? content.notices?.[0] ?? translate("delivery.done");
  return { text: isBlank ? escapeText(cutText(fallback, 500)) : markdown, blocks };
}

function toStatus({ state, status }: MessageContent, isBlank: boolean): string | undefined {
  if (state !== "waiting" && state !== "streaming") return undefined;
  return status ?? (isBlank ? translate("delivery.thinking") : undefined);
}

/** All words of a message without blocks; those around the text only where they fit. */
function toTextAlone(
  { text, sources = [], failure, notices = [] }: MessageContent,
  status: string | undefined,
): string {
  const around = [
    ...sources.map(({ number, label, url }) => `${number}. ${label}: ${url}`),
    ...(status === undefined ? [] : [translate("delivery.status", { status })]),
    ...(failure === undefined ? [] : [`:warning: ${failure}`]),
    ...notices,
  ];
  const all = escapeText([text, ...around].filter((words) => words.trim() !== "").join("\n"));
  if (all === "") return translate("delivery.done");
  return Buffer.byteLength(all) <= maxTextBytes || text.trim() === "" ? all : escapeText(text);
}

/** Returns sections of at most 3,000 characters, cut at the ends of lines where there are any. */
function toPlainSections(text: string): types.SectionBlock[] {
  const sections: types.SectionBlock[] = [];
  for (let rest = text; rest.trim() !== "";) {
    const head = rest.slice(0, maxSectionChars).replace(/[\uD800-\uDBFF]$/, "");
    const lineEnd = rest.length > head.length ? head.lastIndexOf("\n") : -1;
    const piece = lineEnd > 0 ? head.slice(0, lineEnd) : head;
    if (piece.trim() !== "") sections.push(toPlainSection(piece));
    rest = rest.slice(piece.length);
  }
  return sections;
}

/**
 * Sends a message in the first form that Slack accepts, beginning with `first`. Only errors about the content
 * lead to the next form.
 * @throws the last error
 */
export async function sendInForm<T>(
  content: MessageContent,
  send: (content: SlackContent, form: ContentForm) => Promise<T>,
  first: ContentForm = "markdown",
): Promise<T> {
  for (const form of contentForms.slice(contentForms.indexOf(first))) {
    if (form === "unrated" && toFeedback(content).length === 0 && first !== form) continue;
    try {
      return await send(toSlackContent(content, form), form);
    } catch (error) {
      if (!isContentError(error) || form === contentForms.at(-1)) throw error;
    }
  }
  throw new ParleyError("internal", "no form of a message to send");
}

/** `block_id` of an answer's sources. */
export const sourcesBlock = "parley_sources";

/** In rich text nothing but the elements themselves is a link, a mention or an emphasis. */
function toSourceList(sources: readonly ShownSource[]): types.RichTextBlock[] {
  const [first] = sources;
  if (first === undefined) return [];
  const words = (text: string): types.RichTextText => ({ type: "text", text });
  const items = sources.map(({ url, label, host }): types.RichTextSection => ({
    type: "rich_text_section",
    elements: [{ type: "link", url, text: label }, ...(host === undefined ? [] : [words(` (${host})`)])],
  }));
  // The package's type does not know `offset`, the number of items before the first.
  const list: types.RichTextList & { readonly offset: number } = {
    type: "rich_text_list",
    style: "ordered",
    offset: first.number - 1,
    elements: items,
  };
  const title: types.RichTextText = {
    type: "text",
    text: translate("sources.title"),
    style: { bold: true },
  };
  return [
    {
      type: "rich_text",
      block_id: sourcesBlock,
      elements: [{ type: "rich_text_section", elements: [title] }, list],
    },
  ];
}

/** Returns the bytes of a source with the JSON around it. */
export function bytesOfSource({ url, label, host = "" }: ShownSource): number {
  return Buffer.byteLength(`${url}${label}${host}`) + 20;
}

function toButtons({ retryKey, confirm, actions = [] }: MessageContent): types.Button[] {
  return [
    ...(retryKey === undefined ? [] : [toButton(retryAction, translate("button.retry"), retryKey)]),
    ...(confirm === undefined
      ? []
      : [{ ...toButton(confirmAction, cutText(confirm.label, 75), confirm.key), style: "danger" as const }]),
    ...actions
      .filter(({ kind, key }) => kind !== "good" && kind !== "bad" && key.length <= maxValueChars)
      .map(({ kind, key }) => toButton(actionPrefix + kind, actionLabel(kind), key)),
  ];
}

function toButton(action: string, label: string, value: string): types.Button {
  return { type: "button", action_id: action, text: { type: "plain_text", text: label }, value };
}

/**
 * Returns Slack's feedback buttons for a finished answer that is stored, and nothing for others.
 * @see https://docs.slack.dev/reference/block-kit/block-elements/feedback-buttons-element describes them.
 */
function toFeedback({ actions = [], state }: MessageContent): types.ContextActionsBlock[] {
  const key = actions.find(({ kind }) => kind === "good")?.key;
  if (state !== "finished" || key === undefined || key.length > maxValueChars - 10) return [];
  const toButton = (rating: Rating): types.FeedbackButtons["positive_button"] => {
    const label = actionLabel(rating);
    return {
      text: { type: "plain_text", text: label },
      value: `${rating} ${key}`,
      accessibility_label: label,
    };
  };
  const element: types.FeedbackButtons = {
    type: "feedback_buttons",
    action_id: feedbackAction,
    positive_button: toButton("good"),
    negative_button: toButton("bad"),
  };
  return [{ type: "context_actions", elements: [element] }];
}
