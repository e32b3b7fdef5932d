import { parseCommandLine } from "../../core/command.ts";
import { badField, messageLimits, type ApiContext, type Exchange } from "./api-context.ts";
import { readJson, sendJson, sendProblem } from "./http.ts";
import { toConversationId, toItemId, toTurnKey } from "./ids.ts";
import type { ItemView } from "./views.ts";
import { steadyClock } from "../../support/steady-clock.ts";
import { translate } from "../../words/translate.ts";

const maxKeyChars = 400;
/** How many stored messages are looked through. */
const maxMessages = 2000;

/** `POST …/edit`: the person changes the text of a question. Its files stay. */
export async function editQuestion(context: ApiContext, { request, response, id }: Exchange): Promise<void> {
  const { itemId, text: given } = await readJson(request);
  if (typeof itemId !== "string" || itemId.length > maxKeyChars) throw badField("itemId");
  if (typeof given !== "string" || given.length > messageLimits.maxChars) throw badField("text");
  const text = given.trim();
  const conversationId = toConversationId(id);
  const item = await findQuestion(context, conversationId, itemId);
  if (item === undefined) {
    sendProblem(response, 404, "gone", translate("web.message-gone"));
    return;
  }
  if (text === "" && item.files.length === 0) throw badField("text");
  if (parseCommandLine(item.text) !== undefined || parseCommandLine(text) !== undefined) {
    sendProblem(response, 409, "command", translate("web.command-not-edited"));
    return;
  }
  const outcome = await context.receiver.messageEdited({
    key: toTurnKey(itemId),
    editedAt: steadyClock.now(),
    conversationIds: [conversationId],
    read: () => Promise.resolve({ text }),
  });
  if (outcome === "unknown") {
    sendProblem(response, 404, "gone", translate("web.message-gone"));
    return;
  }
  const feed = context.feeds.of(conversationId);
  const live = feed.get(itemId);
  // Also on pages that show the stored form.
  if (live === undefined) feed.settle(itemId, { ...item, text });
  else feed.put({ ...live, text });
  sendJson(response, 202, { outcome });
}

/** A live or stored question. */
async function findQuestion(
  { feeds, views }: ApiContext,
  conversationId: string,
  itemId: string,
): Promise<ItemView | undefined> {
  if (toItemId(toTurnKey(itemId), "user") !== itemId) return undefined;
  const live = feeds.of(conversationId).get(itemId);
  if (live !== undefined) return live.isPrivate === true ? undefined : live;
  const readSnapshot = await views.readHistory(conversationId, maxMessages);
  return readSnapshot().items.find((item) => item.id === itemId);
}
