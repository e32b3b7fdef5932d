import { badField, type ApiContext, type Exchange, type Route } from "./api-context.ts";
import { readJson, sendJson, sendProblem } from "./http.ts";
import { isPageConversation, pageIdPattern, toConversationId, toPageId, withoutOthers } from "./address.ts";
import { localActor } from "./messages.ts";
import { conversationPrefixOf } from "./page-person.ts";
import type { ListFeed } from "./conversation-routes.ts";
import type { ConversationsView } from "./views.ts";
import { toNotice } from "../../core/error-messages.ts";
import { currentLanguage, inLanguage, translate } from "../../words/translate.ts";

const defaultListed = 200;
const maxListed = 2000;
/** Longer names are cut later. This limits what is read. */
const maxNameChars = 1000;

/** The endpoints of the list of conversations, and of its changes. */
export const listRoutes: readonly Route[] = [
  { method: "GET", path: /^\/api\/conversations$/, run: sendConversations },
  { method: "POST", path: new RegExp(`^/api/conversations/(${pageIdPattern})/labels$`), run: label },
];

async function sendConversations({ history }: ApiContext, { response, target }: Exchange): Promise<void> {
  const asked = Number(target.query.get("max") ?? defaultListed);
  const max = Number.isInteger(asked) ? Math.min(Math.max(asked, 1), maxListed) : defaultListed;
  const all = await history.conversations(toConversationId(""), {
    max,
    isWanted: isPageConversation,
    ...withoutOthers(),
  });
  sendJson(response, 200, {
    conversations: all.map(({ conversationId, title, updatedAt, isPinned }) => ({
      id: toPageId(conversationId),
      title,
      updatedAt,
      ...(isPinned === true ? { isPinned } : {}),
    })),
    mayHaveMore: all.length >= max && max < maxListed,
  } satisfies ConversationsView);
}

/** Follows what a page shows beside its conversation: its person's list, and whether the gateway answers. */
export function followList(
  { list, outlook }: Pick<ApiContext, "list" | "outlook">,
  conversationId: string,
): ListFeed {
  // Changes come from code that runs in another language.
  const language = currentLanguage();
  const prefix = conversationPrefixOf(conversationId);
  const isOwn = (id: string): boolean => conversationPrefixOf(id) === prefix;
  return {
    state() {
      const trouble = outlook.trouble();
      return {
        running: list.running().filter(isOwn).map(toPageId),
        ...(trouble === undefined ? {} : { trouble: inLanguage(language, () => toNotice(trouble)) }),
      };
    },
    listen(listener) {
      const ends = [
        outlook.onChange(() => listener(false)),
        list.listen((id, { isStored }) => {
          if (isOwn(id)) listener(isStored);
        }),
      ];
      return () => {
        for (const end of ends) end();
      };
    },
  };
}

/** Names or pins a conversation. The answer is 404 where it does not exist. */
async function label({ receiver, list }: ApiContext, { request, response, id }: Exchange): Promise<void> {
  const { name, isPinned } = await readJson(request);
  if (name !== undefined && (typeof name !== "string" || name.length > maxNameChars)) throw badField("name");
  if (isPinned !== undefined && typeof isPinned !== "boolean") throw badField("isPinned");
  const labels = { ...(name === undefined ? {} : { name }), ...(isPinned === undefined ? {} : { isPinned }) };
  const conversationId = toConversationId(id);
  if (await receiver.labelConversation(conversationId, labels, localActor())) {
    list.touch(conversationId);
    sendJson(response, 200, {});
    return;
  }
  sendProblem(response, 404, "not-found", translate("web.not-found"));
}
