import type { App } from "@slack/bolt";
import type { ModelOperation } from "../../core/gateway.ts";
import type { Receiver } from "../../core/platform.ts";
import { translate } from "../../words/translate.ts";
import { cutText } from "./markdown.ts";

type Fields = Readonly<Record<string, unknown>>;

/** What the `action_id` of a select of models begins with; the operation follows. */
const actionPrefix = "parley_model:";
/** @see https://docs.slack.dev/reference/block-kit/block-elements/select-menu-element#external_select */
const limits = { options: 100, textChars: 75, valueChars: 150 };
/** Of the option that stands for nothing: a chosen one cannot be taken back. No model is called so. */
export const noModel = "parley:none";

/** What a select of models shows at first. */
export interface ModelSelectOptions {
  /** The model that is chosen. Empty: none. */
  readonly value: string;
  /** What applies while none is chosen. Default: nothing is shown. */
  readonly otherwise?: string;
}

/**
 * A select that asks for models as the person types. `undefined`: its value does not fit, and a text input must take it.
 */
export function toModelSelect(
  operation: ModelOperation | undefined,
  { value, otherwise }: ModelSelectOptions,
): Fields | undefined {
  if (value.length > limits.valueChars) return undefined;
  const initial =
    value !== ""
      ? toOption(value, value)
      : otherwise === undefined
        ? undefined
        : toOption(noModel, otherwise);
  return {
    type: "external_select",
    action_id: actionPrefix + (operation ?? ""),
    // Without it Slack asks from the third character on.
    min_query_length: 0,
    placeholder: toPlain(translate("slack.models.search"), 150),
    ...(initial === undefined ? {} : { initial_option: initial }),
  };
}

/** Registers what these selects offer: from memory, since Slack waits three seconds. */
export function registerModelSelects(
  app: App,
  { receiver }: { readonly receiver: Pick<Receiver, "suggestModels"> },
): void {
  app.options(new RegExp(`^${actionPrefix}`), async ({ options, ack }) => {
    const { action_id: actionId, value: typed } = options as unknown as {
      readonly action_id: string;
      readonly value: string;
    };
    const operation = toOperation(actionId.slice(actionPrefix.length));
    const found = receiver.suggestModels(typed, { max: limits.options - 1, operation });
    const none = typed === "" ? [toOption(noModel, translate("slack.models.none"))] : [];
    const models = found.filter((id) => id.length <= limits.valueChars).map((id) => toOption(id, id));
    await ack({ options: [...none, ...models] as never });
  });
}

function toOperation(word: string): ModelOperation | undefined {
  return (["chat", "image", "transcription"] as const).find((operation) => operation === word);
}

const toPlain = (text: string, maxChars: number) => ({ type: "plain_text", text: cutText(text, maxChars) });
const toOption = (value: string, label: string) => ({ text: toPlain(label, limits.textChars), value });
