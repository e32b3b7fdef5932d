import { Feed } from "../../src/platforms/web/feed.ts";
import { toWebAddress } from "../../src/platforms/web/address.ts";
import { createWebReply } from "../../src/platforms/web/platform.ts";
import type { ItemView } from "../../src/platforms/web/views.ts";
import { describeReply } from "./reply.ts";

/** Returns the items of a page that follows the feed from the beginning, in their latest form. */
function follow(feed: Feed) {
  const items = new Map<string, ItemView>();
  feed.listen(({ change }) => {
    if (change.kind === "put") items.set(change.item.id, change.item);
    if (change.kind === "drop") items.delete(change.id);
    if (change.kind !== "text") return;
    const item = items.get(change.id);
    if (item !== undefined)
      items.set(change.id, { ...item, text: item.text.slice(0, change.at) + change.text });
  });
  return () => [...items.values()];
}

describeReply("page", () => {
  const feed = new Feed();
  const shown = follow(feed);
  return {
    open: (hooks, saved) =>
      createWebReply({
        address: toWebAddress(saved ?? { conversationId: "web:c", replyId: "r" }),
        feed,
        hooks,
        firstText: () => undefined,
        ended: () => Promise.resolve(),
      }),
    seen: () => ({
      text: shown()
        .flatMap((item) => [item.text, item.status ?? "", item.failure ?? "", ...item.notices])
        .join("\n"),
      files: shown().flatMap(({ files }) =>
        files.flatMap((file) => (file.kind === "image" ? [{ name: file.name, altText: file.altText }] : [])),
      ),
      retryKeys: shown().flatMap(({ retryKey }) => retryKey ?? []),
      confirms: shown().flatMap(({ confirm }) => confirm ?? []),
      actions: shown().flatMap(({ actions }) => actions ?? []),
    }),
    close: () => Promise.resolve(),
  };
});
