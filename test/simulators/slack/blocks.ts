import { checkExternalSelect } from "./external-selects.ts";
import { checkContextActions } from "./feedback.ts";
import { checkRichText } from "./rich-text.ts";
import { checkCellChars, checkMarkdownTables, checkTable } from "./tables.ts";
import { SlackApiError, type Fields, toText } from "./workspace.ts";

const knownBlocks = new Set([
  "section",
  "markdown",
  "context",
  "actions",
  "header",
  "divider",
  "image",
  "rich_text",
  "table",
]);

/**
 * Checks the blocks of a message. No markdown block may contain one of the `refused` words.
 * @throws SlackApiError `invalid_blocks`
 * @see https://docs.slack.dev/reference/block-kit/blocks
 */
export function checkMessageBlocks(blocks: readonly Fields[], refused: readonly string[] = []): void {
  const refuse = (problem: string) => {
    throw new SlackApiError("invalid_blocks", { response_metadata: { messages: [`[ERROR] ${problem}`] } });
  };
  checkIds(blocks, refuse);
  if (blocks.length > 50) refuse("no more than 50 items allowed [json-pointer:/blocks]");
  let markdownChars = 0;
  let cellChars = 0;
  blocks.forEach((block, index) => {
    const at = `[json-pointer:/blocks/${index}]`;
    const type = toText(block["type"]);
    if (!knownBlocks.has(type) && type !== "context_actions") refuse(`unsupported type: ${type} ${at}`);
    if (type === "markdown") {
      const text = block["text"];
      if (typeof text !== "string" || text === "") return refuse(`markdown needs text ${at}`);
      if (refused.some((words) => text.includes(words))) refuse(`failed to match any allowed schemas ${at}`);
      markdownChars += text.length;
      cellChars += checkMarkdownTables(text, at, refuse);
    }
    if (type === "section") {
      if (block["text"] === undefined && block["fields"] === undefined) refuse(`section needs text ${at}`);
      if (block["text"] !== undefined) checkText(block["text"], 3000, at, refuse);
    }
    if (type === "header") checkText(block["text"], 150, at, refuse, ["plain_text"]);
    if (type === "context") checkContext(block, at, refuse);
    if (type === "actions") checkActions(block, at, refuse);
    if (type === "context_actions") checkContextActions(block, at, refuse);
    if (type === "rich_text") checkRichText(block, at, refuse);
    if (type === "table") cellChars += checkTable(block, at, refuse);
  });
  checkCellChars(cellChars, refuse);
  if (markdownChars > 12_000) refuse("markdown blocks exceed 12000 characters together");
}

type Refuse = (problem: string) => void;

function checkIds(blocks: readonly Fields[], refuse: Refuse): void {
  if (!Array.isArray(blocks)) return refuse("blocks must be an array");
  const ids = blocks.flatMap((block) => (block["block_id"] === undefined ? [] : [toText(block["block_id"])]));
  if (new Set(ids).size !== ids.length) refuse("block_id must be unique");
  if (ids.some((id) => id.length < 1 || id.length > 255)) refuse("block_id is 1 to 255 characters");
}

function checkText(
  value: unknown,
  maxChars: number,
  at: string,
  refuse: Refuse,
  types: readonly string[] = ["plain_text", "mrkdwn"],
): void {
  const text = (value ?? {}) as Fields;
  if (!types.includes(toText(text["type"]))) refuse(`text must be ${types.join(" or ")} ${at}`);
  const words = text["text"];
  if (typeof words !== "string" || words.length < 1) return refuse(`must be more than 0 characters ${at}`);
  if (words.length > maxChars) refuse(`must be less than ${maxChars + 1} characters ${at}`);
}

function checkContext(block: Fields, at: string, refuse: Refuse): void {
  const elements = block["elements"];
  if (!Array.isArray(elements) || elements.length < 1 || elements.length > 10)
    return refuse(`context takes 1 to 10 elements ${at}`);
  for (const element of elements as Fields[])
    if (element["type"] !== "image") checkText(element, 3000, at, refuse);
}

function checkActions(block: Fields, at: string, refuse: Refuse): void {
  const elements = block["elements"];
  if (!Array.isArray(elements) || elements.length < 1 || elements.length > 25)
    return refuse(`actions takes 1 to 25 elements ${at}`);
  for (const element of elements as Fields[]) {
    if (element["type"] === "static_select") {
      if (element["placeholder"] !== undefined)
        checkText(element["placeholder"], 150, at, refuse, ["plain_text"]);
      if (toText(element["action_id"]).length > 255) refuse(`action_id is at most 255 characters ${at}`);
      checkOptions(element, 100, at, refuse);
      continue;
    }
    if (element["type"] !== "button") return refuse(`unsupported element ${toText(element["type"])} ${at}`);
    checkText(element["text"], 75, at, refuse, ["plain_text"]);
    if (toText(element["value"]).length > 2000) refuse(`value is at most 2000 characters ${at}`);
    if (toText(element["action_id"]).length > 255) refuse(`action_id is at most 255 characters ${at}`);
  }
  const ids = (elements as Fields[]).map((element) => toText(element["action_id"]));
  if (new Set(ids).size !== ids.length) refuse(`action_id must be unique ${at}`);
}

/**
 * Checks the view of `views.open`. @throws SlackApiError `invalid_arguments`
 * @see https://docs.slack.dev/reference/views/modal-views
 */
export function checkModal(view: Fields): void {
  const refuse = (problem: string) => {
    throw new SlackApiError("invalid_arguments", { response_metadata: { messages: [`[ERROR] ${problem}`] } });
  };
  if (view["type"] !== "modal") refuse("type must be modal");
  checkText(view["title"], 24, "/view/title", refuse, ["plain_text"]);
  for (const name of ["submit", "close"])
    if (view[name] !== undefined) checkText(view[name], 24, `/view/${name}`, refuse, ["plain_text"]);
  if (toText(view["private_metadata"]).length > 3000) refuse("private_metadata: at most 3000 characters");
  if (toText(view["callback_id"]).length > 255) refuse("callback_id: at most 255 characters");
  const blocks = (view["blocks"] ?? []) as Fields[];
  checkIds(blocks, refuse);
  if (blocks.length < 1 || blocks.length > 100) refuse("1 to 100 blocks");
  if (blocks.some((block) => block["type"] === "input") && view["submit"] === undefined)
    refuse("submit is needed with input blocks");
  blocks.forEach((block, index) => {
    const at = `[json-pointer:/view/blocks/${index}]`;
    if (block["type"] === "input") return checkInput(block, at, refuse);
    if (!knownBlocks.has(toText(block["type"]))) refuse(`unsupported type ${at}`);
    if (block["type"] === "section") checkText(block["text"], 3000, at, refuse);
    if (block["type"] === "context") checkContext(block, at, refuse);
  });
}

/**
 * Checks the view of `views.publish`. @throws SlackApiError `invalid_arguments`
 * @see https://docs.slack.dev/surfaces/app-home
 */
export function checkHome(view: Fields): void {
  const refuse = (problem: string) => {
    throw new SlackApiError("invalid_arguments", { response_metadata: { messages: [`[ERROR] ${problem}`] } });
  };
  if (view["type"] !== "home") refuse("type must be home");
  if (toText(view["private_metadata"]).length > 3000) refuse("private_metadata: at most 3000 characters");
  const blocks = (view["blocks"] ?? []) as Fields[];
  checkIds(blocks, refuse);
  if (blocks.length < 1 || blocks.length > 100) refuse("1 to 100 blocks");
  blocks.forEach((block, index) => {
    const at = `[json-pointer:/view/blocks/${index}]`;
    const type = toText(block["type"]);
    // Markdown blocks are only for messages.
    if (!knownBlocks.has(type) || type === "markdown") refuse(`unsupported type: ${type} ${at}`);
    if (type === "section") checkSection(block, at, refuse);
    if (type === "header") checkText(block["text"], 150, at, refuse, ["plain_text"]);
    if (type === "context") checkContext(block, at, refuse);
    if (type === "actions") checkActions(block, at, refuse);
  });
}

function checkSection(block: Fields, at: string, refuse: Refuse): void {
  const fields = block["fields"] as unknown[] | undefined;
  if (block["text"] === undefined && fields === undefined) refuse(`section needs text ${at}`);
  if (block["text"] !== undefined) checkText(block["text"], 3000, at, refuse);
  if (fields === undefined) return;
  if (fields.length < 1 || fields.length > 10) refuse(`1 to 10 fields ${at}`);
  for (const field of fields) checkText(field, 2000, at, refuse);
}

function checkInput(block: Fields, at: string, refuse: Refuse): void {
  checkText(block["label"], 2000, at, refuse, ["plain_text"]);
  if (block["hint"] !== undefined) checkText(block["hint"], 2000, at, refuse, ["plain_text"]);
  const element = (block["element"] ?? {}) as Fields;
  if (element["placeholder"] !== undefined)
    checkText(element["placeholder"], 150, at, refuse, ["plain_text"]);
  if (toText(element["action_id"]).length > 255) refuse(`action_id ${at}`);
  switch (element["type"]) {
    case "plain_text_input": {
      const max = element["max_length"];
      if (max !== undefined && (typeof max !== "number" || max < 1 || max > 3000))
        refuse(`max_length is 1 to 3000 ${at}`);
      if (toText(element["initial_value"]).length > 3000) refuse(`initial_value ${at}`);
      return;
    }
    case "number_input":
      if (typeof element["is_decimal_allowed"] !== "boolean") refuse(`is_decimal_allowed is needed ${at}`);
      for (const name of ["min_value", "max_value", "initial_value"])
        if (element[name] !== undefined && typeof element[name] !== "string")
          refuse(`${name} must be a string ${at}`);
      return;
    case "static_select":
    case "checkboxes":
    case "radio_buttons": {
      checkOptions(element, element["type"] === "static_select" ? 100 : 10, at, refuse);
      return;
    }
    case "external_select":
      return checkExternalSelect(element, at, refuse);
    case "file_input": {
      const max = element["max_files"];
      if (max !== undefined && (typeof max !== "number" || max < 1 || max > 10)) refuse(`max_files ${at}`);
      return;
    }
    default:
      refuse(`unsupported element ${toText(element["type"])} ${at}`);
  }
}

/**
 * Checks the options of a select.
 * @see https://docs.slack.dev/reference/block-kit/composition-objects/option-object
 */
function checkOptions(element: Fields, most: number, at: string, refuse: Refuse): void {
  const options = (element["options"] ?? []) as Fields[];
  if (options.length < 1 || options.length > most) refuse(`1 to ${most} options ${at}`);
  for (const option of options) {
    checkText(option["text"], 75, at, refuse);
    if (toText(option["value"]).length < 1 || toText(option["value"]).length > 150)
      refuse(`option value is 1 to 150 characters ${at}`);
  }
  const initial = element["initial_option"] as Fields | undefined;
  const isSame = (option: Fields) => JSON.stringify(option) === JSON.stringify(initial);
  if (initial !== undefined && !options.some(isSame)) refuse(`initial_option is none of the options ${at}`);
}
