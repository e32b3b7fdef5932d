import { createHash } from "node:crypto";
import { translate } from "../../words/translate.ts";
import { badField, type ApiContext, type Exchange, type Route } from "./api-context.ts";
import { readJson, sendJson, sendProblem } from "./http.ts";
import { pageIdPattern, toConversationId, toEventKey, toItemId, toTurnKey } from "./ids.ts";
import { localActor } from "./messages.ts";

const maxKeyChars = 400;
const idPattern = new RegExp(`^${pageIdPattern}$`);

/** The endpoint that goes on from a message in a new chat. */
export const branchRoutes: readonly Route[] = [
  { method: "POST", path: new RegExp(`^/api/conversations/(${pageIdPattern})/branch$`), run: branch },
];

/**
 * `{ itemId, to }`: copies the chat into the new chat `to`, up to this answer or up to before this question. Sent again,
 * it has no further effect.
 */
async function branch({ receiver }: ApiContext, { request, response, id }: Exchange): Promise<void> {
  const { itemId, to: newId } = await readJson(request);
  if (typeof itemId !== "string" || itemId.length > maxKeyChars) throw badField("itemId");
  if (typeof newId !== "string" || !idPattern.test(newId)) throw badField("to");
  const turnKey = toTurnKey(itemId);
  const isAnswer = toItemId(turnKey, "assistant") === itemId;
  const to = toConversationId(newId);
  const addressOf = (replyId: string) => ({ conversationId: to, replyId });
  const outcome = await receiver.branch(
    {
      from: toConversationId(id),
      to,
      until: isAnswer ? { turnKey } : { beforeKey: turnKey },
      toKey: (key) => toEventKey(addressOf(createHash("sha256").update(key).digest("hex").slice(0, 24))),
      toAddress: (key) => addressOf(key.slice(-24)),
    },
    localActor(),
  );
  switch (outcome) {
    case "branched":
      return sendJson(response, 201, {});
    case "gone":
      return sendProblem(response, 404, "gone", translate("web.message-gone"));
    case "too-long":
      return sendProblem(response, 409, "too-long", translate("web.branch-too-long"));
  }
}
