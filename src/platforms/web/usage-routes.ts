import { charsOf, maxRecentChars } from "../../core/stored-text.ts";
import type { ApiContext, Exchange, Route } from "./api-context.ts";
import { sendJson } from "./http.ts";
import { pageIdPattern, toConversationId } from "./ids.ts";
import { sumUsage, toUsageView, type UsageView } from "./usage-view.ts";

/** How many stored messages are looked through. */
const maxMessages = 10_000;

/** The endpoint that says what the answers of a chat have used. */
export const usageRoutes: readonly Route[] = [
  { method: "GET", path: new RegExp(`^/api/conversations/(${pageIdPattern})/usage$`), run: sendUsage },
];

/** A {@link UsageView}; partial where there are more messages than are looked through. */
async function sendUsage({ history }: ApiContext, { response, id }: Exchange): Promise<void> {
  const messages = await history.history(toConversationId(id), { maxMessages });
  const sum = sumUsage(messages.flatMap(({ receipt }) => (receipt && toUsageView(receipt)) ?? []));
  const usage: UsageView =
    messages.length < maxMessages && charsOf(messages) <= maxRecentChars ? sum : { ...sum, isPartial: true };
  sendJson(response, 200, usage);
}
