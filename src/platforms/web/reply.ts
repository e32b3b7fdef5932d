import { createHash } from "node:crypto";
import type { Reply, ReplyHooks } from "../../core/platform.ts";
import type { ReplyAddress } from "../../core/events.ts";
import type { Feed } from "./feed.ts";
import { blobUrl, type FileView, type ItemView } from "./views.ts";

/** Pages are told of new text at most this often; more only costs them renders. */
const minTellMs = 30;

/** Where a reply stands: its conversation and the id of the message it answers. */
export interface WebAddress {
  readonly conversationId: string;
  readonly replyId: string;
}

/** @throws TypeError when the address was not made by this platform */
export function toWebAddress(address: ReplyAddress): WebAddress {
  const { conversationId, replyId } = address;
  if (typeof conversationId !== "string" || typeof replyId !== "string") {
    throw new TypeError("not an address of the page");
  }
  return { conversationId, replyId };
}

/** The key of the event that a message of the page becomes; its answer's item is `<key>/assistant`. */
export function keyOf({ conversationId, replyId }: WebAddress): string {
  return `${conversationId}:${replyId}`;
}

/**
 * A reply that grows on every page which shows its conversation. `firstText` and `ended` are called when it has
 * its first words and when it has finished or failed: what is stored by then can take the live form's place.
 */
export function createWebReply(options: {
  address: WebAddress;
  feed: Feed;
  hooks: ReplyHooks;
  firstText(): void;
  ended(): Promise<void>;
}): Reply {
  const { address, feed } = options;
  const id = feed.idOf(`${keyOf(address)}/assistant`);
  let text = "";
  let hasText = false;
  let lastTold = 0;
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;

  function item(): ItemView {
    return (
      feed.get(id) ?? {
        id,
        role: "assistant",
        state: "waiting",
        createdAt: Date.now(),
        text: "",
        files: [],
        notices: [],
      }
    );
  }

  function tell(): void {
    clearTimeout(timer);
    timer = undefined;
    lastTold = Date.now();
    feed.setText(id, text);
  }

  async function end(last: ItemView): Promise<void> {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    const { status: _status, ...rest } = last;
    feed.put(rest);
    await options.ended();
  }

  return {
    async show() {
      if (isOver) return;
      text = "";
      const { failure: _failure, retryKey: _retryKey, confirm: _confirm, status: _status, ...rest } = item();
      feed.put({ ...rest, state: "waiting", text: "", files: [], notices: [] });
      await options.hooks.saveAddress({ ...address });
    },
    status(words) {
      if (isOver) return;
      feed.put({ ...item(), status: words });
    },
    write(content) {
      if (isOver) return;
      // The lead quotes what the page shows with the message itself.
      text = content.text;
      if (feed.get(id) === undefined) feed.put(item());
      if (!hasText) {
        hasText = true;
        tell();
        options.firstText();
        return;
      }
      timer ??= setTimeout(tell, Math.max(0, lastTold + minTellMs - Date.now()));
    },
    attach(file) {
      if (isOver) return Promise.resolve();
      const hash = createHash("sha256").update(file.bytes).digest("hex");
      feed.hold(hash, { bytes: file.bytes });
      const url = blobUrl(address.conversationId, hash, file.name);
      const view: FileView = file.mediaType.startsWith("image/")
        ? { kind: "image", url, name: file.name, altText: file.altText }
        : file.mediaType.startsWith("audio/")
          ? { kind: "audio", url, name: file.name }
          : { kind: "file", url, name: file.name };
      const current = item();
      feed.put({ ...current, files: [...current.files, view] });
      return Promise.resolve();
    },
    async finish(ending = {}) {
      const { notices = [], confirm } = ending;
      await end({
        ...item(),
        state: "finished",
        text,
        notices,
        ...(confirm === undefined ? {} : { confirm }),
      });
    },
    async fail(failure) {
      await end({
        ...item(),
        state: "failed",
        text,
        notices: failure.notices ?? [],
        failure: failure.text,
        ...(failure.retryKey === undefined ? {} : { retryKey: failure.retryKey }),
      });
    },
    abandon() {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      // Whoever goes on with it may be another process: the history will say how it ended, this feed will not.
      feed.forget(id);
    },
  };
}
