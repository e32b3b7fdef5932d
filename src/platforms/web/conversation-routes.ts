import type { ServerResponse } from "node:http";
import { parseCommandLine } from "../../core/command.ts";
import type { IncomingEvent } from "../../core/events.ts";
import type { Press } from "../../core/press.ts";
import { steadyClock } from "../../support/clock.ts";
import { createSseWriter, type SseWriter } from "../../support/http/event-stream.ts";
import { inertHeaders, whenClosed } from "../../support/http/respond.ts";
import { translate } from "../../words/translate.ts";
import {
  toConversationId,
  toItemId,
  toTurnKey,
  pageIdPattern,
  privateCallPrefix,
  toEventKey,
} from "./address.ts";
import { badField, messageLimits, type ApiContext, type Exchange, type Route } from "./api-context.ts";
import { type Feed, holdsUp, isRunning } from "./feed.ts";
import { readJson, sendJson, sendProblem, sendTooMany, sendUntrustedFile } from "./http.ts";
import { followList } from "./list-routes.ts";
import { localActor, toEvent } from "./messages.ts";
import { toUploadView } from "./conversation-views.ts";
import { findUpload } from "./upload-routes.ts";
import { toAttachment } from "./uploads.ts";
import type { ListStateView, SnapshotView, ItemView } from "./views.ts";

/** Handles `POST …/edit`, by which the person changes the text of a question. Its files stay. */
async function editQuestion(context: ApiContext, { request, response, id }: Exchange): Promise<void> {
  const { itemId, text: given } = await readJson(request);
  if (typeof itemId !== "string" || itemId.length > maxKeyChars) throw badField("itemId");
  if (typeof given !== "string" || given.length > messageLimits.maxChars) throw badField("text");
  const text = given.trim();
  const conversationId = toConversationId(id);
  const item = await findQuestion(context, conversationId, itemId, whenClosed(response));
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
  // Pages that show the stored form get it too.
  if (live === undefined) feed.settle(itemId, { ...item, text });
  else feed.put({ ...live, text });
  sendJson(response, 202, { outcome });
}

/** Finds a live or stored question. */
async function findQuestion(
  { feeds, views }: ApiContext,
  conversationId: string,
  itemId: string,
  signal: AbortSignal,
): Promise<ItemView | undefined> {
  if (toItemId(toTurnKey(itemId), "user") !== itemId) return undefined;
  const live = feeds.of(conversationId).get(itemId);
  if (live !== undefined) return live.isPrivate === true ? undefined : live;
  const readSnapshot = await views.readHistory(conversationId, maxMessages, signal);
  return readSnapshot().items.find((item) => item.id === itemId);
}

const defaultMessages = 100;
const maxMessages = 2000;
const maxKeyChars = 400;
/** This is more than anybody makes in one conversation. All of them are deleted with it. */
const maxPrivateCalls = 100_000;

const conversation = `/api/conversations/(${pageIdPattern})`;

/** The endpoints of `/api/conversations`. */
export const conversationRoutes: readonly Route[] = [
  { method: "GET", path: new RegExp(`^${conversation}/events$`), run: streamConversation },
  { method: "GET", path: new RegExp(`^${conversation}/blobs/([0-9a-f]{64})$`), run: sendBlob },
  { method: "POST", path: new RegExp(`^${conversation}/messages$`), run: receiveMessage },
  { method: "POST", path: new RegExp(`^${conversation}/edit$`), run: editQuestion },
  { method: "POST", path: new RegExp(`^${conversation}/take-back$`), run: takeBackWaiting },
  { method: "POST", path: new RegExp(`^${conversation}/cancel$`), run: cancel },
  { method: "POST", path: new RegExp(`^${conversation}/retry$`), run: retry },
  { method: "POST", path: new RegExp(`^${conversation}/confirm$`), run: confirm },
  { method: "DELETE", path: new RegExp(`^${conversation}$`), run: deleteConversation },
];

async function streamConversation(context: ApiContext, exchange: Exchange): Promise<void> {
  const { request, response, target, session } = exchange;
  if (!context.bounds.takeStream(session, response)) {
    sendTooMany(response, 10_000, translate("web.too-many-windows"));
    return;
  }
  const conversationId = toConversationId(exchange.id);
  const asked = Number(target.query.get("max") ?? defaultMessages);
  const max = Number.isInteger(asked) ? Math.min(Math.max(asked, 1), maxMessages) : defaultMessages;
  const lastSeen = request.headers["last-event-id"] ?? target.query.get("after") ?? undefined;
  await sendEvents(response, {
    feed: context.feeds.of(conversationId),
    list: followList(context, conversationId),
    cursor: typeof lastSeen === "string" && lastSeen !== "" ? lastSeen : undefined,
    signal: context.signal,
    useHistory: (use) => context.views.useHistory(conversationId, max, whenClosed(response), use),
  });
}

async function sendBlob({ feeds, history, bounds }: ApiContext, exchange: Exchange): Promise<void> {
  const { request, response, target, hash, session } = exchange;
  await bounds.takeFile(session, response);
  const conversationId = toConversationId(exchange.id);
  const bytes = feeds.of(conversationId).file(hash) ?? (await history.readBlob(conversationId, hash))?.bytes;
  if (bytes === undefined) {
    sendProblem(response, 404, "not-found", translate("web.file-gone"));
    return;
  }
  sendUntrustedFile(request, response, {
    bytes,
    name: target.query.get("name") ?? hash,
    isDownload: target.query.has("download"),
  });
}

async function receiveMessage(context: ApiContext, { request, response, id }: Exchange): Promise<void> {
  const { replyId, text, uploadIds } = parseMessage(await readJson(request));
  const address = { conversationId: toConversationId(id), replyId };
  const itemId = toItemId(toEventKey(address), "user");
  const found = await Promise.allSettled(uploadIds.map((uploadId) => findUpload(context.uploads, uploadId)));
  const missing = found.find((one) => one.status === "rejected");
  // The message was sent twice: the files of a stored message are already removed.
  if (
    missing !== undefined &&
    (await hasItem(context, address.conversationId, (item) => item.id === itemId))
  ) {
    sendJson(response, 202, { outcome: "duplicate" });
    return;
  }
  if (missing !== undefined) throw missing.reason;
  const uploads = found.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  if (text.trim() === "" && uploads.length === 0) throw badField("text");

  const sentAt = steadyClock.now();
  const event = toEvent(context.commands, {
    address,
    text,
    attachments: uploads.map((upload) => toAttachment(upload)),
    sentAt,
  });
  const sentIn = {
    conversationId: address.conversationId,
    messageKey: event.key,
    isCall: event.kind === "call",
  };
  for (const upload of uploads) await context.uploads.assign(upload, sentIn);
  const files = uploads.map((upload) => toUploadView(upload));
  let outcome: "accepted" | "duplicate" | undefined;
  try {
    outcome = await receiveShown(context, event, { text, files });
  } finally {
    if (outcome === undefined) for (const upload of uploads) await context.uploads.release(upload);
  }
  sendJson(response, 202, { outcome });
}

/**
 * Passes an event of a conversation to the receiver, and shows its message until it is stored. A message that
 * is not accepted is taken back.
 * @throws ParleyError as `receive` does
 */
export async function receiveShown(
  context: ApiContext,
  event: IncomingEvent,
  { text, files }: Pick<ItemView, "text" | "files">,
): Promise<"accepted" | "duplicate"> {
  const { conversationId } = event;
  const itemId = toItemId(event.key, "user");
  const feed = context.feeds.of(conversationId);
  const isNew = feed.get(itemId) === undefined;
  // It is shown first, since the reply may start before `receive` resolves.
  if (isNew) {
    const isPrivate = event.kind === "call" && event.isPrivate;
    const isWaiting = !isPrivate && feed.items().some(holdsUp);
    feed.put({
      id: itemId,
      role: "user",
      state: "finished",
      createdAt: event.sentAt,
      text,
      files,
      notices: [],
      ...(isPrivate ? { isPrivate } : {}),
      ...(isWaiting ? { isWaiting } : {}),
    });
  }
  let outcome: "accepted" | "duplicate" | undefined;
  try {
    outcome = await context.receiver.receive(event, { canResend: true });
    return outcome;
  } finally {
    if (isNew && outcome !== "accepted") await takeBack(context, conversationId, itemId, outcome);
  }
}

/** Removes a message that was not accepted. One that was accepted before is shown as it is stored. */
async function takeBack(
  { feeds, views }: ApiContext,
  conversationId: string,
  itemId: string,
  outcome: "duplicate" | undefined,
): Promise<void> {
  const feed = feeds.of(conversationId);
  if (outcome === undefined) {
    feed.drop(itemId);
    return;
  }
  const readSnapshot = await views.readHistory(conversationId, defaultMessages);
  const stored = readSnapshot().items.find(({ id }) => id === itemId);
  if (stored === undefined) feed.drop(itemId);
  else feed.settle(itemId, stored);
}

/** Takes back a message of the person whose turn has not begun. */
async function takeBackWaiting(context: ApiContext, { request, response, id }: Exchange): Promise<void> {
  const { itemId } = await readJson(request);
  if (typeof itemId !== "string" || itemId.length > maxKeyChars) throw badField("itemId");
  const conversationId = toConversationId(id);
  const feed = context.feeds.of(conversationId);
  const item = feed.get(itemId);
  if (item?.role !== "user" || item.isWaiting !== true) {
    sendProblem(response, 409, "begun", translate("web.begun"));
    return;
  }
  await context.receiver.messagesDeleted(conversationId, [toTurnKey(itemId)]);
  feed.drop(itemId);
  for (const file of item.files) {
    const uploadId = "url" in file ? /^\/api\/uploads\/(\w+)$/.exec(file.url ?? "")?.[1] : undefined;
    if (uploadId !== undefined) await context.uploads.remove(uploadId);
  }
  sendJson(response, 200, {});
}

function parseMessage(body: Readonly<Record<string, unknown>>): {
  readonly replyId: string;
  readonly text: string;
  readonly uploadIds: readonly string[];
} {
  const { id: replyId, text, uploads: uploadIds = [] } = body;
  if (typeof replyId !== "string" || !new RegExp(`^${pageIdPattern}$`).test(replyId)) throw badField("id");
  if (typeof text !== "string" || text.length > messageLimits.maxChars) throw badField("text");
  if (!isStrings(uploadIds) || uploadIds.length > messageLimits.maxFiles) throw badField("uploads");
  return { replyId, text, uploadIds };
}

/** Stops the conversation's turn and its private calls, which run beside it. */
async function cancel(context: ApiContext, { response, id }: Exchange): Promise<void> {
  const conversationId = toConversationId(id);
  const outcomes = await Promise.all([
    stop(context, conversationId),
    cancelPrivateCalls(context, conversationId),
  ]);
  sendJson(response, 200, { isCancelled: outcomes.flat().includes(true) });
}

/** Resolves to whether something ran. `key` names a conversation or a turn. */
async function stop({ receiver }: ApiContext, key: string): Promise<boolean> {
  return (await receiver.press({ kind: "stop", key }, localActor())).kind === "done";
}

function cancelPrivateCalls(context: ApiContext, conversationId: string) {
  const calls = context.feeds
    .of(conversationId)
    .items()
    .filter((item) => item.isPrivate === true && isRunning(item));
  return Promise.all(calls.map((item) => stop(context, toTurnKey(item.id))));
}

async function retry(context: ApiContext, { request, response, id }: Exchange): Promise<void> {
  const { retryKey } = await readJson(request);
  if (typeof retryKey !== "string" || retryKey.length > maxKeyChars) throw badField("retryKey");
  const isOffered = await hasItem(context, toConversationId(id), (item) => item.retryKey === retryKey);
  await pressIn(context, response, isOffered, { kind: "retry", key: retryKey });
}

async function confirm(context: ApiContext, { request, response, id }: Exchange): Promise<void> {
  const { key } = await readJson(request);
  if (typeof key !== "string" || key.length > maxKeyChars) throw badField("key");
  const isOffered = await hasItem(context, toConversationId(id), (item) => item.confirm?.key === key);
  await pressIn(context, response, isOffered, { kind: "confirm", key });
}

/** Answers 202 where the turn runs again, and 410 where it is gone or the page has no such button. */
async function pressIn(
  { receiver }: ApiContext,
  response: ServerResponse,
  isOffered: boolean,
  press: Press,
): Promise<void> {
  const result = isOffered ? await receiver.press(press, localActor()) : undefined;
  const isAccepted = result?.kind === "done";
  sendJson(response, isAccepted ? 202 : 410, { outcome: isAccepted ? "accepted" : "gone" });
}

/** Whether a live or stored item of the conversation fulfils the condition. */
async function hasItem(
  { feeds, views }: ApiContext,
  conversationId: string,
  isWanted: (item: ItemView) => boolean,
): Promise<boolean> {
  if (feeds.of(conversationId).items().some(isWanted)) return true;
  const readSnapshot = await views.readHistory(conversationId, defaultMessages);
  return readSnapshot().items.some(isWanted);
}

async function deleteConversation(context: ApiContext, { response, id }: Exchange): Promise<void> {
  const { receiver, history, uploads, feeds } = context;
  const conversationId = toConversationId(id);
  await cancelPrivateCalls(context, conversationId);
  await receiver.conversationDeleted(conversationId);
  const calls = await history.conversations(privateCallPrefix(conversationId), { max: maxPrivateCalls });
  for (const call of calls) await receiver.conversationDeleted(call.conversationId);
  await uploads.removeFrom(conversationId);
  feeds.of(conversationId).clear();
  context.list.touch(conversationId);
  sendJson(response, 200, {});
}

function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/** What one person's list of conversations shows besides stored data, and the state of the gateway. */
export interface ListFeed {
  state(): Omit<ListStateView, "isChanged">;
  /** Listens to changes. `isStored` means that stored data has changed. Returns what ends it. */
  listen(listener: (isStored: boolean) => void): () => void;
}

/** The delay before the browser reconnects. */
const retryMs = 1000;

/**
 * Sends server-sent events of one conversation: the changes after `cursor` or else a snapshot, then every new
 * change. They include what the list of all conversations shows, because browsers allow six connections to
 * one server and a page should have one. Resolves when the page is connected. The stream ends when the page
 * disconnects or `signal` aborts.
 * @throws ParleyError `store-unavailable`, before anything is sent
 */
async function sendEvents(
  response: ServerResponse,
  options: {
    readonly feed: Feed;
    readonly list: ListFeed;
    /** The id of the last change that the page has. Without a usable one, a snapshot is sent. */
    readonly cursor: string | undefined;
    readonly signal: AbortSignal;
    /** Reads the history. `merge` adds live items synchronously, so that no change is lost. */
    useHistory(use: (merge: () => SnapshotView) => Promise<void>): Promise<void>;
  },
): Promise<void> {
  const { feed, signal } = options;
  // A page that reads too slowly is disconnected, and reconnects with its cursor.
  const open = (): SseWriter =>
    createSseWriter(response, {
      headers: inertHeaders,
      retryMs,
    });
  let missed = options.cursor === undefined ? undefined : feed.since(options.cursor);
  let writer = missed === undefined ? undefined : open();
  if (writer === undefined)
    await options.useHistory(async (merge) => {
      const id = feed.cursor;
      const snapshot = merge();
      const from = feed.cursor;
      writer = open();
      // A long chat may be larger than the usual limit of unread data. What changes meanwhile follows.
      await writer.send(JSON.stringify(snapshot), { id, event: "snapshot" });
      missed = feed.since(from);
    });
  if (writer === undefined || missed === undefined) {
    response.destroy();
    return;
  }
  const stream = writer;
  const push = (id: string, change: unknown): void =>
    stream.push(JSON.stringify(change), { id, event: "change" });
  for (const { id, change } of missed) push(id, change);

  // It has no id, so that it does not move the cursor of the conversation.
  const sendList = (isChanged: boolean): void =>
    stream.push(JSON.stringify({ ...options.list.state(), isChanged } satisfies ListStateView), {
      event: "list",
    });
  sendList(false);
  const listening = [feed.listen(({ id, change }) => push(id, change)), options.list.listen(sendList)];
  const stopListening = (): void => {
    for (const stop of listening) stop();
  };
  const end = (): void => {
    stopListening();
    stream.end();
  };
  signal.addEventListener("abort", end, { once: true });
  response.once("close", () => {
    stopListening();
    signal.removeEventListener("abort", end);
  });
  if (signal.aborted) end();
}
