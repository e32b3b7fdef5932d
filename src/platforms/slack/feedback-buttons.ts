import type { MessageContent } from "../delivery/edit-target.ts";
import { isRating, type Rating } from "../../core/feedback.ts";
import { translate } from "../../words/translate.ts";
import type { SlackContent } from "./web-api.ts";

/** `action_id` of the feedback buttons. */
export const feedbackAction = "parley_feedback";
/** A longer value is refused. */
const maxValueChars = 2000;

/**
 * Slack's feedback buttons below a finished answer that is stored; nothing below others.
 * @see https://docs.slack.dev/reference/block-kit/block-elements/feedback-buttons-element
 */
export function toFeedback({ actions = [], state }: MessageContent): SlackContent["blocks"] {
  const key = actions.find(({ kind }) => kind === "details")?.key;
  if (state !== "finished" || key === undefined || key.length > maxValueChars - 10) return [];
  const toButton = (rating: Rating) => {
    const label = translate(`slack.feedback.${rating}`);
    const text = { type: "plain_text", text: label };
    return { text, value: `${rating} ${key}`, accessibility_label: label };
  };
  const element = {
    type: "feedback_buttons",
    action_id: feedbackAction,
    positive_button: toButton("good"),
    negative_button: toButton("bad"),
  };
  return [{ type: "context_actions", elements: [element] }];
}

/** The rating and the answer's key of a pressed button's value. `undefined`: it is of another version. */
export function parseFeedback(value: string): { readonly rating: Rating; readonly key: string } | undefined {
  const [, rating = "", key = ""] = /^(\w+) (.+)$/s.exec(value) ?? [];
  return isRating(rating) ? { rating, key } : undefined;
}
