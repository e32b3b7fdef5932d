import { createHash } from "node:crypto";
import type { Reply, ReplyHooks } from "../../core/platform.ts";
import { type WebAddress, toEventKey, toItemId } from "./address.ts";
import type { Feed } from "./feed.ts";
import { blobUrl, toFileView, toSourcesView, type ItemView } from "./views.ts";
import { steadyClock } from "../../support/clock.ts";

/** The shortest time between two text changes, which limits how often pages render. */
const minIntervalMs = 30;

/**
 * Creates a reply that is streamed to every page which shows its conversation. `firstText` is called after
 * its first text, and `ended` after it has finished or failed: messages stored by then can replace their live
 * form. `isFinal` means that no Retry or confirmation can run it again. After the end of a private reply,
 * only what a Retry or a confirmation needs stays live.
 */
export function createWebReply(options: {
  address: WebAddress;
  feed: Feed;
  hooks: ReplyHooks;
  firstText(): void;
  ended(ending: { readonly isFinal: boolean }): Promise<void>;
}): Reply {
  const { address, feed, hooks } = options;
  const key = toEventKey(address);
  const id = feed.storedIdOf(toItemId(key, "assistant"));
  let written = "";
  let hasText = false;
  let lastSentAt = -Infinity;
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;

  function item(): ItemView {
    return (
      feed.get(id) ?? {
        id,
        role: "assistant",
        state: "waiting",
        createdAt: steadyClock.now(),
        text: "",
        files: [],
        notices: [],
        ...(address.isPrivate === true ? { isPrivate: true } : {}),
      }
    );
  }

  function sendText(): void {
    clearTimeout(timer);
    timer = undefined;
    lastSentAt = performance.now();
    feed.setText(id, written);
  }

  async function end(last: ItemView): Promise<void> {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    const { status: _status, ...rest } = last;
    feed.put(rest);
    if (address.isPrivate === true) {
      feed.discard(toItemId(key, "user"));
      if (rest.state === "finished" && rest.confirm === undefined) feed.discard(id);
    }
    await options.ended({ isFinal: rest.retryKey === undefined && rest.confirm === undefined });
  }

  return {
    showsVersions: true,
    async show() {
      if (isOver) return;
      written = "";
      const {
        failure: _failure,
        retryKey: _retryKey,
        confirm: _confirm,
        actions: _actions,
        status: _status,
        thoughts: _thoughts,
        sources: _sources,
        ...rest
      } = item();
      feed.begin(toItemId(key, "user"));
      feed.put({ ...rest, state: "waiting", text: "", files: [], notices: [] });
      await hooks.saveAddress({ ...address });
    },
    status(text) {
      if (isOver || hooks.isCalm === true) return;
      feed.put({ ...item(), status: text });
    },
    write(content) {
      if (isOver) return;
      // The lead is left out, because it quotes what the page shows as the message before.
      written = content.text;
      if (hooks.isCalm === true) return;
      if (feed.get(id) === undefined) feed.put(item());
      const { thoughts } = content;
      if (thoughts !== undefined && thoughts !== item().thoughts) feed.put({ ...item(), thoughts });
      if (!hasText) {
        hasText = true;
        sendText();
        options.firstText();
        return;
      }
      timer ??= setTimeout(sendText, Math.max(0, lastSentAt + minIntervalMs - performance.now()));
    },
    attach(file) {
      if (isOver) return Promise.resolve();
      const hash = createHash("sha256").update(file.bytes).digest("hex");
      feed.cacheFile(hash, file.bytes);
      const url = blobUrl(address.conversationId, hash, file.name);
      const view = toFileView({ ...file, url });
      const current = item();
      feed.put({ ...current, files: [...current.files, view] });
      return Promise.resolve();
    },
    async finish(ending = {}) {
      const { notices = [], sources, confirm, actions = [] } = ending;
      await end({
        ...item(),
        state: "finished",
        text: written,
        notices,
        ...toSourcesView(sources),
        ...(confirm === undefined ? {} : { confirm }),
        ...(actions.length === 0 ? {} : { actions }),
      });
    },
    async fail(failure) {
      await end({
        ...item(),
        state: "failed",
        text: written,
        notices: failure.notices ?? [],
        ...toSourcesView(failure.sources),
        failure: failure.text,
        ...(failure.retryKey === undefined ? {} : { retryKey: failure.retryKey }),
      });
    },
    abandon() {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      // Another process may resume it. The outcome is then in the history, but not in this feed.
      feed.discard(id);
    },
  };
}
