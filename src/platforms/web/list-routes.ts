import { z } from "zod";
import { conversationPath, type ApiContext, type Exchange, type Route } from "./api-context.ts";
import { readBody, sendJson, sendProblem } from "./http.ts";
import { isPageConversation, toConversationId, toPageId, withoutOthers } from "./address.ts";
import { localActor } from "./messages.ts";
import { conversationPrefixOf } from "./page-person.ts";
import type { ConversationsView, ListStateView } from "./views.ts";
import { toNotice } from "../../core/error-messages.ts";
import { currentLanguage, inLanguage, translate } from "../../words/translate.ts";

const defaultListed = 200;
const maxListed = 2000;
/** Longer names are cut later. This limits what is read. */
const maxNameChars = 1000;
const labels = z.object({
  name: z.string().max(maxNameChars).exactOptional(),
  isPinned: z.boolean().exactOptional(),
});

/** The endpoints of the list of conversations, and of its changes. */
export const listRoutes: readonly Route[] = [
  { method: "GET", path: "/api/conversations", run: sendConversations },
  { method: "POST", path: conversationPath("/labels"), run: label },
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
export function followList({ feeds, gateway: { outlook } }: ApiContext, conversationId: string) {
  // Changes come from code that runs in another language.
  const language = currentLanguage();
  const prefix = conversationPrefixOf(conversationId);
  const isOwn = (id: string): boolean => conversationPrefixOf(id) === prefix;
  return {
    /** Returns what it shows now. */
    state(): Omit<ListStateView, "isChanged"> {
      const trouble = outlook.trouble();
      return {
        running: feeds.running().filter(isOwn).map(toPageId),
        ...(trouble === undefined ? {} : { trouble: inLanguage(language, () => toNotice(trouble)) }),
      };
    },
    /** Listens to changes. `isStored` means that stored data has changed. Returns what ends it. */
    listen(listener: (isStored: boolean) => void): () => void {
      const ends = [
        outlook.onChange(() => listener(false)),
        feeds.listen((id, { isStored }) => {
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
async function label({ receiver, feeds }: ApiContext, { request, response, id }: Exchange): Promise<void> {
  const wanted = await readBody(request, labels);
  const conversationId = toConversationId(id);
  if (await receiver.labelConversation(conversationId, wanted, localActor())) {
    feeds.touch(conversationId);
    sendJson(response, 200, {});
    return;
  }
  sendProblem(response, 404, "not-found", translate("web.not-found"));
}
