import { toText, type Fields } from "./workspace.ts";

/** Slack's feedback buttons below a message. */
export interface SeenFeedback {
  readonly actionId: string;
  readonly good: { readonly label: string; readonly value: string };
  readonly bad: { readonly label: string; readonly value: string };
}

type Refuse = (problem: string) => void;

/**
 * Checks a block of feedback buttons.
 * @see https://docs.slack.dev/reference/block-kit/blocks/context-actions-block
 */
export function checkContextActions(block: Fields, at: string, refuse: Refuse): void {
  const elements = block["elements"];
  if (!Array.isArray(elements) || elements.length < 1 || elements.length > 5)
    return refuse(`context_actions takes 1 to 5 elements ${at}`);
  for (const element of elements as Fields[]) {
    if (element["type"] !== "feedback_buttons")
      refuse(`unsupported element ${toText(element["type"])} ${at}`);
    if (toText(element["action_id"]).length > 255) refuse(`action_id is at most 255 characters ${at}`);
    for (const name of ["positive_button", "negative_button"]) checkButton(element[name], at, refuse);
  }
}

function checkButton(value: unknown, at: string, refuse: Refuse): void {
  const button = (value ?? {}) as Fields;
  const text = (button["text"] ?? {}) as Fields;
  const words = toText(text["text"]);
  if (text["type"] !== "plain_text" || words.length < 1 || words.length > 75)
    refuse(`a feedback button has 1 to 75 characters of plain text ${at}`);
  const itsValue = button["value"];
  if (typeof itsValue !== "string" || itsValue.length < 1 || itsValue.length > 2000)
    refuse(`the value of a feedback button has 1 to 2000 characters ${at}`);
  if (toText(button["accessibility_label"]).length > 75)
    refuse(`accessibility_label is at most 75 characters ${at}`);
}

/** Returns the feedback buttons of a message's blocks. */
export function feedbackOf(blocks: readonly Fields[]): SeenFeedback | undefined {
  const [element] = blocks
    .filter(({ type }) => type === "context_actions")
    .flatMap(({ elements }) => elements as Fields[]);
  if (element === undefined) return undefined;
  const buttonOf = (name: string) => {
    const button = element[name] as Fields;
    return { label: toText((button["text"] as Fields)["text"]), value: toText(button["value"]) };
  };
  return {
    actionId: toText(element["action_id"]),
    good: buttonOf("positive_button"),
    bad: buttonOf("negative_button"),
  };
}
