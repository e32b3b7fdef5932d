import { randomBytes } from "node:crypto";
import type { CommandCall } from "../../core/events.ts";
import { goneNotice } from "../../core/error-messages.ts";
import {
  isReplyActionKind,
  parseActionKey,
  type ActionCall,
  type ActionResult,
} from "../../core/reply-actions.ts";
import { steadyClock } from "../../support/steady-clock.ts";
import type { WebAddress } from "./address.ts";
import { badField, type ApiContext, type Exchange, type Route } from "./api-context.ts";
import { receiveShown } from "./conversation-routes.ts";
import { toValues } from "./form-values.ts";
import { readJson, sendJson, sendProblem } from "./http.ts";
import { pageIdPattern, privateCallPrefix, toConversationId, toEventKey } from "./ids.ts";
import { currentSender, localActor } from "./messages.ts";

const maxKeyChars = 400;

/** The endpoint of the buttons below answers. */
export const actionRoutes: readonly Route[] = [
  { method: "POST", path: new RegExp(`^/api/conversations/(${pageIdPattern})/act$`), run: act },
];

/**
 * Runs a button, or what its form holds (`values`). 200 with what is shown to the person, 202 where an answer follows,
 * 410 where the answer is gone, 422 with a sentence for each field that is wrong.
 */
async function act(context: ApiContext, { request, response, id }: Exchange): Promise<void> {
  const body = await readJson(request);
  const { kind, key, replyId = randomBytes(12).toString("hex") } = body;
  if (typeof kind !== "string" || !isReplyActionKind(kind)) throw badField("kind");
  if (typeof key !== "string" || key.length > maxKeyChars) throw badField("key");
  if (typeof replyId !== "string" || !new RegExp(`^${pageIdPattern}$`).test(replyId))
    throw badField("replyId");
  const conversationId = toConversationId(id);
  const isPrivate = isPrivateKey(conversationId, key);
  const use = { isPrivate, ...(body["values"] === undefined ? {} : { values: toValues(body["values"]) }) };
  const result: ActionResult =
    isPrivate || parseActionKey(key)?.conversationId === conversationId
      ? await context.receiver.act({ kind, key }, localActor(), use)
      : { kind: "gone" };
  switch (result.kind) {
    case "gone":
      return sendProblem(response, 410, "gone", goneNotice());
    case "problems":
      return sendJson(response, 422, result);
    case "call": {
      const call = toCommandCall(
        { conversationId, replyId, ...(isPrivate ? { isPrivate } : {}) },
        result.call,
      );
      await receiveShown(context, call, { text: result.call.written, files: [] });
      return sendJson(response, 202, { kind: "done" });
    }
    case "told":
    case "form":
    case "done":
      return sendJson(response, 200, result);
  }
}

function toCommandCall(address: WebAddress, { name, options, pictures }: ActionCall): CommandCall {
  return {
    kind: "call",
    key: toEventKey(address),
    platform: "web",
    conversationId: address.conversationId,
    ...currentSender(),
    sentAt: steadyClock.now(),
    address: { ...address },
    name,
    options,
    ...(pictures === undefined ? {} : { pictures }),
    inConversation: true,
    isPrivate: address.isPrivate === true,
    isInputVisible: true,
  };
}

/** Whether an action's key names an answer of one of the conversation's private calls. */
function isPrivateKey(conversationId: string, key: string): boolean {
  return parseActionKey(key)?.conversationId.startsWith(privateCallPrefix(conversationId)) === true;
}
