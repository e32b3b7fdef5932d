import { badField, type ApiContext, type Exchange, type Route } from "./api-context.ts";
import { readJson, sendJson } from "./http.ts";
import { isPageConversation, toConversationId, toItemId, toPageId } from "./ids.ts";
import type { SearchView } from "./views.ts";

const maxTextChars = 200;
const maxCursorChars = 200;
/** Of one page: the page asks for the next one as long as people look. */
const maxFound = 20;
const maxMs = 1500;

/** The search over all that was said. The words are in the body: addresses end up in the logs of proxies. */
export const searchRoutes: readonly Route[] = [{ method: "POST", path: /^\/api\/search$/, run: search }];

async function search(
  { history, bounds, signal }: ApiContext,
  { request, response, session }: Exchange,
): Promise<void> {
  const { text, after } = await readJson(request);
  if (typeof text !== "string" || text.length > maxTextChars) throw badField("text");
  if (after !== undefined && (typeof after !== "string" || after.length > maxCursorChars))
    throw badField("after");
  const gone = new AbortController();
  response.once("close", () => gone.abort(new Error("client disconnected")));
  await bounds.takeSearch(session, response);
  const { found, next } = await history.search(toConversationId(""), {
    text,
    after,
    max: maxFound,
    maxMs,
    isWanted: isPageConversation,
    signal: AbortSignal.any([signal, gone.signal]),
  });
  sendJson(response, 200, {
    found: found.map(({ conversationId, title, updatedAt, message }) => ({
      id: toPageId(conversationId),
      title,
      updatedAt,
      ...(message === undefined
        ? {}
        : { itemId: toItemId(message.turnKey, message.role), excerpt: message.excerpt }),
    })),
    ...(next === undefined ? {} : { next }),
  } satisfies SearchView);
}
