import { checkMessageBlocks } from "./blocks.ts";
import { checkSuggestions } from "./external-selects.ts";
import { SlackApiError, toText, type Fields } from "./workspace.ts";

const emptyAcks: ReadonlySet<string> = new Set(["block_actions", "message_action", "view_closed"]);

/**
 * Returns what Slack refuses in the payload of an acknowledgement, or `undefined` if it accepts it.
 * @param kind the type of the envelope
 * @see https://docs.slack.dev/interactivity/handling-user-interaction
 */
export function checkAck(kind: string, payload: Fields, ack: Fields): string | undefined {
  if (payload["type"] === "block_suggestion") return checkSuggestions(ack);
  const keys = Object.keys(ack);
  if (keys.length === 0) return undefined;
  if (kind === "events_api") return "an event takes no payload";
  if (kind === "slash_commands") return checkMessage(ack);
  const type = toText(payload["type"]);
  if (emptyAcks.has(type)) return `${type} takes no payload`;
  if (type !== "view_submission") return undefined;
  return checkResponse(payload["view"] as Fields, ack);
}

function checkMessage(ack: Fields): string | undefined {
  const unknown = Object.keys(ack).find((key) => !["text", "blocks", "response_type"].includes(key));
  if (unknown !== undefined) return `a command's answer has no ${unknown}`;
  if (!["ephemeral", "in_channel"].includes(toText(ack["response_type"], "ephemeral")))
    return "response_type is ephemeral or in_channel";
  return checkBlocks(ack);
}

function checkBlocks({ blocks }: Fields): string | undefined {
  try {
    checkMessageBlocks((blocks ?? []) as Fields[]);
    return undefined;
  } catch (error) {
    return error instanceof SlackApiError ? error.error : String(error);
  }
}

/** Checks the response to a submitted modal. @see https://docs.slack.dev/surfaces/modals#response_actions */
function checkResponse(view: Fields, ack: Fields): string | undefined {
  const action = toText(ack["response_action"]);
  switch (action) {
    case "clear":
      return undefined;
    case "errors": {
      const errors = Object.entries((ack["errors"] ?? {}) as Fields);
      if (errors.length === 0) return "errors are needed";
      const inputs = (view["blocks"] as Fields[]).filter((block) => block["type"] === "input");
      const ids = inputs.map((block) => toText(block["block_id"]));
      const stray = errors.find(([id, text]) => !ids.includes(id) || typeof text !== "string" || text === "");
      return stray === undefined ? undefined : `errors are words by block_id of an input, not ${stray[0]}`;
    }
    case "update":
    case "push":
      return (ack["view"] as Fields | undefined)?.["type"] === "modal" ? undefined : `${action} needs a view`;
    default:
      return `unknown response_action ${action}`;
  }
}
