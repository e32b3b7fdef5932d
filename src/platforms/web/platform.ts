import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import type { CancelTimer } from "../../core/clock.ts";
import { maxFileBytes, maxRecordingBytes } from "../../core/events.ts";
import type { FileErasure, PlatformDependencies } from "../../core/platform-module.ts";
import type { Platform } from "../../core/platform.ts";
import type { Reply, ReplyHooks } from "../../core/reply.ts";
import { systemClock } from "../../support/clock.ts";
import { translate } from "../../words/translate.ts";
import { eraseRemoved } from "./accounts/account-erasure.ts";
import { createAccounts } from "./accounts/accounts.ts";
import {
  toWebAddress,
  toEventKey,
  toSiblingId,
  type WebAddress,
  toItemId,
  accountAuthorId,
  ownerOf,
  sharedPerson,
} from "./address.ts";
import { messageLimits, type ApiContext, createSessionBounds, type SessionLimits } from "./api-context.ts";
import { createConversationViews } from "./conversation-views.ts";
import { createFeeds, type Feed } from "./feed.ts";
import { createPageRequests, type PageAccess } from "./requests.ts";
import { createUploads, shownMs } from "./uploads.ts";
import { blobUrl, orderStep, toFileView, toSourcesView } from "./items.ts";
import type { ItemView } from "./views.ts";

const sweepIntervalMs = 10 * 60_000;
/** How often accounts that were closed or removed meanwhile are looked for. */
const accountsIntervalMs = 10_000;
interface WebPlatformOptions
  extends
    PageAccess,
    Pick<
      PlatformDependencies,
      "clock" | "commands" | "dataDir" | "gateway" | "log" | "records" | "retentionMs" | "sealer"
    > {
  /** Default: those of a page in use. */
  readonly limits?: SessionLimits;
  /** Whether models make the titles of chats. Default false. */
  readonly hasTitles?: boolean;
  /** The largest upload. Default 25 MB, and 75 MB for recordings. */
  readonly maxFileBytes?: number;
}

/** The local page as a platform. */
export interface WebPlatform extends Platform, Pick<ReturnType<typeof createPageRequests>, "handle"> {
  /** Erases uploads. */
  readonly erasure: FileErasure;
}

/**
 * Creates the page in a browser: conversations, streamed answers, files and commands, over HTTP and
 * server-sent events. It has no HTTP server of its own, so `handle` must be passed to one. The page loads
 * nothing from other hosts.
 */
export function createWebPlatform(options: WebPlatformOptions): WebPlatform {
  const { log, clock } = options;
  const accounts = createAccounts(options.records, clock);
  const feeds = createFeeds();
  const limits = {
    maxFileBytes: options.maxFileBytes ?? maxFileBytes,
    maxRecordingBytes: options.maxFileBytes ?? maxRecordingBytes,
  };
  const uploads = createUploads(join(options.dataDir, "uploads"), {
    maxBytes: limits.maxFileBytes,
    maxRecordingBytes: limits.maxRecordingBytes,
    maxTotalBytes: limits.maxFileBytes * messageLimits.maxFiles * 10,
    sealer: options.sealer,
    retentionMs: options.retentionMs,
    now: () => clock.now(),
  });
  const stopped = new AbortController();
  let isPaused = false;
  let context: ApiContext | undefined;
  const requests = createPageRequests({
    ...options,
    accounts,
    context: () => (stopped.signal.aborted ? undefined : context),
    isPaused: () => isPaused,
  });
  let stopSweeping: CancelTimer = () => undefined;
  let stopWatching: CancelTimer = () => undefined;

  /** Contract: does not throw. The sweep removes what stays. */
  async function expireUploadsOf(messageKeys: ReadonlySet<string>): Promise<void> {
    try {
      if (await uploads.markStored(messageKeys)) clock.after(shownMs, sweepUploads, { keepsAlive: false });
    } catch (error) {
      log.warn({ err: error }, "uploads of stored messages could not be marked");
    }
  }

  function sweepUploads(): void {
    if (stopped.signal.aborted) return;
    uploads.sweep().then(
      (removed) => {
        if (removed > 0) log.info({ removed }, "expired uploads removed");
      },
      (error: unknown) => {
        log.warn({ err: error }, "expired uploads could not be removed");
      },
    );
  }

  async function watchAccounts(): Promise<void> {
    if (context === undefined || stopped.signal.aborted) return;
    const { receiver, history } = context;
    try {
      await requests.endInvalid();
      const erased = await eraseRemoved({ accounts, receiver, history, uploads, feeds });
      if (erased > 0) log.info({ accounts: erased }, "removed accounts erased with their chats");
    } catch (error) {
      log.warn({ err: error }, "accounts could not be read; tried again soon");
    } finally {
      if (!stopped.signal.aborted)
        stopWatching = clock.after(accountsIntervalMs, () => void watchAccounts(), { keepsAlive: false });
    }
  }

  return {
    id: "web",
    deliversInOrder: "always",

    async start(receiver, history) {
      context = {
        receiver,
        history,
        commands: options.commands,
        feeds,
        views: createConversationViews(history, feeds, options.commands, log),
        uploads,
        bounds: createSessionBounds(options.limits),
        ...limits,
        signal: stopped.signal,
        gateway: options.gateway,
      };
      void watchAccounts();
      sweepUploads();
      stopSweeping = clock.every(sweepIntervalMs, sweepUploads);
    },

    ...(options.hasTitles === true ? { titled: (conversationId) => feeds.touch(conversationId) } : {}),

    openReply(address, hooks) {
      const webAddress = toWebAddress(address);
      const { conversationId } = webAddress;
      const refresh = async () => {
        const storedKeys = await context?.views.refresh(conversationId, turnOf(webAddress, hooks).key);
        feeds.touch(conversationId);
        if (storedKeys !== undefined) await expireUploadsOf(storedKeys);
      };
      return createWebReply({
        address: webAddress,
        feed: feeds.of(conversationId),
        hooks,
        firstText: () => void refresh(),
        async ended({ isFinal }) {
          if (isFinal) uploads.expireOf(toEventKey(webAddress));
          await refresh();
          for (const feed of feeds.all().values()) feed.afterErasure();
        },
      });
    },

    guide: {
      commandPrefix: "",
      hasMessageMenus: false,
      isForOne: true,
      exportsAs: "archive",
      hasLocalNames: false,
      get speaking() {
        return (["conversations", "commands", "files"] as const).map((part) =>
          translate(`web.guide.${part}`),
        );
      },
    },

    // Nobody else writes in a chat of the page.
    readRoom: () => Promise.resolve("alone"),
    // Everything that is summed up stands on the page already.
    linksTo: () => Promise.resolve(new Map()),

    async nameOf(id) {
      if (id === sharedPerson.author.id || id === "web") return translate("web.page");
      if (!id.startsWith(accountAuthorId(""))) return undefined;
      try {
        return await accounts.nameOf(id.slice(accountAuthorId("").length));
      } catch (error) {
        log.debug({ err: error }, "name not found");
        return undefined;
      }
    },

    // People delete whole conversations on the page, never single messages.
    shownMessageKeys: () => [],

    toPrivateAddress: (address) => ({ ...address, isPrivate: true }),

    async tellAlone(address, _authorId, text) {
      const { conversationId } = toWebAddress(address);
      const reply = createWebReply({
        address: { conversationId, replyId: randomBytes(12).toString("hex"), isPrivate: true },
        feed: feeds.of(conversationId),
        hooks: { saveAddress: () => Promise.resolve() },
        firstText: () => undefined,
        ended: () => Promise.resolve(),
      });
      await reply.show();
      reply.write({ text });
      await reply.finish();
    },

    openThread(address, { title }) {
      const from = toWebAddress(address);
      // The id is derived from the address: the same call opens the same conversation after a restart.
      const id = createHash("sha256").update(`thread ${from.conversationId} ${from.replyId}`).digest("hex");
      const conversationId = toSiblingId(from.conversationId, id.slice(0, 24));
      feeds
        .of(from.conversationId)
        .opened({ kind: "opened", replyId: from.replyId, conversationId: id.slice(0, 24), title });
      return Promise.resolve({ conversationId, address: { conversationId, replyId: id.slice(24, 48) } });
    },

    download: (attachment, downloadOptions) => uploads.read(attachment, downloadOptions),

    health: () => (context === undefined ? { state: "connecting" } : { state: "ready" }),

    async pause() {
      isPaused = true;
    },

    async stop() {
      stopped.abort();
      stopSweeping();
      stopWatching();
      try {
        await uploads.removeStored();
      } catch (error) {
        log.warn({ err: error }, "uploads of stored messages could not be removed");
      }
    },

    erasure: {
      async forgetAuthor(conversationId, authorId) {
        if (conversationId === undefined) await uploads.removeOf(authorId);
        else if (ownerOf(conversationId) === authorId) await uploads.removeFrom(conversationId);
        for (const [id, feed] of feeds.all())
          if ((conversationId ?? id) === id && ownerOf(id) === authorId) feed.forget();
      },
      async deleteConversation(conversationId) {
        await uploads.removeFrom(conversationId);
        feeds.touch(conversationId);
      },
    },

    handle: requests.handle,
  };
}

/** The turn that a reply shows. One that belongs to none is called by its address. */
function turnOf(address: WebAddress, { turn }: ReplyHooks): NonNullable<ReplyHooks["turn"]> {
  return turn ?? { key: toEventKey(address), attempt: 1, sentAt: systemClock.now() };
}

/** The shortest time between two text changes, which limits how often pages render. */
const minIntervalMs = 30;

/**
 * Creates a reply that is streamed to every page which shows its conversation. `firstText` is called after
 * its first text, and `ended` after it has finished or failed: the record has what is stored by then.
 * `isFinal` means that no Retry or confirmation can run it again. After the end of a private reply, only what
 * a Retry or a confirmation needs stays live.
 */
export function createWebReply(options: {
  address: WebAddress;
  feed: Feed;
  hooks: ReplyHooks;
  firstText(): void;
  ended(ending: { readonly isFinal: boolean }): Promise<void>;
}): Reply {
  const { address, feed, hooks } = options;
  const { key, attempt, sentAt } = turnOf(address, hooks);
  const id = toItemId(key, "assistant");
  let item: ItemView = {
    id,
    attempt,
    role: "assistant",
    state: "waiting",
    createdAt: systemClock.now(),
    order: sentAt + orderStep,
    text: "",
    files: [],
    notices: [],
    ...(address.isPrivate === true ? { isPrivate: true } : {}),
  };
  let written = "";
  let thoughts: string | undefined;
  let hasText = false;
  let lastSentAt = -Infinity;
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;

  function put(now: ItemView): void {
    item = now;
    feed.put(now);
  }

  function send(): void {
    clearTimeout(timer);
    timer = undefined;
    lastSentAt = performance.now();
    if (thoughts !== undefined) put({ ...item, thoughts });
    if (hasText) put({ ...withoutStatus(item), state: "growing", text: written });
  }

  async function end(last: Partial<ItemView>): Promise<void> {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    put({ ...withoutStatus(item), text: written, ...last });
    if (address.isPrivate === true) {
      feed.discard(toItemId(key, "user"));
      if (item.state === "finished" && item.confirm === undefined) feed.discard(id);
    }
    await options.ended({ isFinal: item.retryKey === undefined && item.confirm === undefined });
  }

  return {
    showsVersions: true,
    async show() {
      if (isOver) return;
      put(item);
      await hooks.saveAddress({ ...address });
    },
    status(text, { drawing } = {}) {
      if (isOver || hooks.isCalm === true) return;
      // A model that thinks says so with each word.
      if (item.status === text && drawing === undefined) return;
      put({ ...item, status: text, ...(drawing === undefined ? {} : { drawing }) });
    },
    think(text) {
      if (isOver || hooks.isCalm === true) return;
      thoughts = text;
      timer ??= setTimeout(send, Math.max(0, lastSentAt + minIntervalMs - performance.now()));
    },
    write(content) {
      if (isOver) return;
      // The lead is left out, because it quotes what the page shows as the message before.
      written = content.text;
      if (hooks.isCalm === true) return;
      thoughts = content.thoughts ?? thoughts;
      if (!hasText) {
        hasText = true;
        send();
        options.firstText();
        return;
      }
      timer ??= setTimeout(send, Math.max(0, lastSentAt + minIntervalMs - performance.now()));
    },
    attach(file) {
      if (isOver) return Promise.resolve();
      const hash = createHash("sha256").update(file.bytes).digest("hex");
      feed.cacheFile(hash, file.bytes);
      const url = blobUrl(address.conversationId, hash, file.name);
      put({ ...item, files: [...item.files, toFileView({ ...file, url })] });
      return Promise.resolve();
    },
    async finish({ notices = [], sources, confirm, actions = [] } = {}) {
      await end({
        state: "finished",
        notices,
        ...toSourcesView(sources),
        ...(confirm === undefined ? {} : { confirm }),
        ...(actions.length === 0 ? {} : { actions }),
      });
    },
    async fail({ text, notices = [], sources, retryKey }) {
      await end({
        state: "failed",
        notices,
        ...toSourcesView(sources),
        failure: text,
        ...(retryKey === undefined ? {} : { retryKey }),
      });
    },
    abandon() {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      // Another process may resume it. What comes of it is then in the record, but not in this feed.
      if (feed.get(id) === item) feed.discard(id);
    },
  };
}

/** An answer without what is shown until there is text. */
function withoutStatus({ status: _status, drawing: _drawing, ...rest }: ItemView): ItemView {
  return rest;
}
