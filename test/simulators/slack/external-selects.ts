import type { MethodContext, OpenModal } from "./methods.ts";
import type { Interaction } from "./person.ts";
import { toText, type Fields } from "./workspace.ts";

type Refuse = (problem: string) => void;
type Option = { readonly text: Fields; readonly value: string };

/**
 * Checks a select that asks the app for its options.
 * @see https://docs.slack.dev/reference/block-kit/block-elements/select-menu-element#external_select
 */
export function checkExternalSelect(element: Fields, at: string, refuse: Refuse): void {
  const least = element["min_query_length"];
  if (least !== undefined && (typeof least !== "number" || least < 0)) refuse(`min_query_length ${at}`);
  if (element["options"] !== undefined) refuse(`an external_select has no options ${at}`);
  const initial = element["initial_option"] as Fields | undefined;
  const problem = initial === undefined ? undefined : problemOf(initial);
  if (problem !== undefined) refuse(`${problem} ${at}`);
}

function problemOf(option: Fields): string | undefined {
  const text = (option["text"] ?? {}) as Fields;
  const words = toText(text["text"]);
  if (text["type"] !== "plain_text" || words.length < 1 || words.length > 75)
    return "an option has 1 to 75 characters of plain text";
  const value = toText(option["value"]);
  return value.length < 1 || value.length > 150 ? "option value is 1 to 150 characters" : undefined;
}

/**
 * Returns what Slack refuses in the answer to a request for options, or `undefined` if it accepts it.
 * @see https://docs.slack.dev/reference/interaction-payloads/block_suggestion-payload
 */
export function checkSuggestions(ack: Fields): string | undefined {
  const { options } = ack;
  if (!Array.isArray(options)) return "options are needed";
  if (options.length > 100) return "at most 100 options";
  return (options as Fields[]).map(problemOf).find((problem) => problem !== undefined);
}

/** The options of {@link createSearch}. */
export interface SearchOptions {
  readonly context: MethodContext;
  readonly open: () => OpenModal;
  readonly common: () => Fields;
  readonly interact: (type: "interactive", payload: Fields) => Promise<Interaction>;
}

/** Creates a function that types into a select of the modal and returns the labels that the app offers. */
export function createSearch(options: SearchOptions): (label: string, typed: string) => Promise<string[]> {
  const { context, open, common, interact } = options;
  return async (label, typed) => {
    const modal = open();
    const blocks = modal.view["blocks"] as Fields[];
    const block = blocks.find((one) => (one["label"] as Fields | undefined)?.["text"] === label);
    const element = (block?.["element"] ?? {}) as Fields;
    if (block === undefined || element["type"] !== "external_select")
      throw new Error(`no select that is searched: "${label}"`);
    if (typed.length < Number(element["min_query_length"] ?? 3)) return [];
    // Over HTTP, Slack sends these requests to an address of their own.
    if (!context.installation.loadsOptions) throw new Error("the manifest has no options URL");
    const result = await interact("interactive", {
      ...common(),
      type: "block_suggestion",
      action_id: element["action_id"],
      block_id: block["block_id"],
      value: typed,
      container: { type: "view", view_id: modal.id },
      view: { ...modal.view, id: modal.id, team_id: context.workspace.teamId },
    });
    if (result.kind === "failed") throw new Error(`no options: ${result.reason}`);
    const found = (result.ack["options"] ?? []) as Option[];
    modal.loaded.set(toText(block["block_id"]), found);
    return found.map(({ text }) => toText(text["text"]));
  };
}
