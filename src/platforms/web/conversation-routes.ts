import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { parseCommandLine } from "../../core/command.ts";
import type { IncomingEvent } from "../../core/events.ts";
import type { OpenQuestion } from "../../core/receiver.ts";
import type { ExportedFile } from "../../core/storage.ts";
import { toZip } from "../../media/zip.ts";
import { systemClock } from "../../support/clock.ts";
import { createSseWriter, type SseWriter } from "../../support/http/event-stream.ts";
import { inertHeaders, toDisposition, whenClosed } from "../../support/http/server.ts";
import { translate, currentLanguage, inLanguage } from "../../words/translate.ts";
import {
  toConversationId,
  toItemId,
  toTurnKey,
  privateCallPrefix,
  toEventKey,
  isPageConversation,
  toPageId,
  withoutOthers,
  conversationPrefixOf,
} from "./address.ts";
import {
  conversationPath,
  keyText,
  messageLimits,
  pageId,
  type ApiContext,
  type Exchange,
  type Route,
} from "./api-context.ts";
import { isRunning } from "./feed.ts";
import { badField, readBody, sendJson, sendProblem, sendTooMany, sendUntrustedFile } from "./http.ts";
import { localActor, toEvent } from "./messages.ts";
import { toOpenItem, toQuestionItem, toUploadView } from "./conversation-views.ts";
import { findUpload } from "./upload-routes.ts";
import { toAttachment } from "./uploads.ts";
import { toItem } from "./items.ts";
import type { ListStateView, ItemView, ConversationsView } from "./views.ts";
import { toNotice } from "../../core/error-messages.ts";

const messageText = z.string().max(messageLimits.maxChars);
const sentMessage = z.object({
  id: pageId,
  text: messageText,
  uploads: z.array(z.string()).max(messageLimits.maxFiles).default([]),
});

/** Handles `POST …/edit`, by which the person changes the text of a question. Its files stay. */
async function editQuestion(context: ApiContext, { request, response, id }: Exchange): Promise<void> {
  const { itemId, text } = await readBody(request, z.object({ itemId: keyText, text: messageText.trim() }));
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
  const outcome = await context.receiver.changed({
    kind: "edit",
    key: toTurnKey(itemId),
    editedAt: systemClock.now(),
    conversationIds: [conversationId],
    read: () => Promise.resolve({ text }),
  });
  if (outcome === "unknown") {
    sendProblem(response, 404, "gone", translate("web.message-gone"));
    return;
  }
  await context.views.inOrder(conversationId, async () => {
    const edited = await findQuestion(context, conversationId, itemId);
    if (edited !== undefined) context.feeds.of(conversationId).take([edited]);
  });
  sendJson(response, 202, { outcome });
}

/** Finds a question in the record, or one that is not in it yet. */
async function findQuestion(
  { commands, history }: ApiContext,
  conversationId: string,
  itemId: string,
): Promise<ItemView | undefined> {
  const stored = await history.question(conversationId, toTurnKey(itemId));
  if (stored !== undefined) return toItem(conversationId, stored);
  const open = await findOpen(history, conversationId, itemId);
  return open && toOpenItem(open.event, commands);
}

/** Finds a question that is not answered yet, and that is no private call. */
async function findOpen(
  history: ApiContext["history"],
  conversationId: string,
  itemId: string,
): Promise<OpenQuestion | undefined> {
  const open = await history.openQuestions(conversationId);
  return open.find(
    ({ event }) => toItemId(event.key, "user") === itemId && (event.kind === "message" || !event.isPrivate),
  );
}

const defaultMessages = 100;
const maxMessages = 2000;
/** This is more than anybody makes in one conversation. All of them are deleted with it. */
const maxPrivateCalls = 100_000;

/** The endpoints of `/api/conversations`. */
export const conversationRoutes: readonly Route[] = [
  { method: "GET", path: conversationPath("/events"), run: streamConversation },
  { method: "GET", path: conversationPath("/blobs/([0-9a-f]{64})"), run: sendBlob },
  { method: "POST", path: conversationPath("/messages"), run: receiveMessage },
  { method: "POST", path: conversationPath("/edit"), run: editQuestion },
  { method: "POST", path: conversationPath("/take-back"), run: takeBackWaiting },
  { method: "POST", path: conversationPath("/cancel"), run: cancel },
  // A chat to read, and one with everything in it.
  { method: "GET", path: conversationPath("/export\\.md"), run: sendMarkdown },
  { method: "GET", path: conversationPath("/export\\.zip"), run: sendArchive },
  { method: "DELETE", path: conversationPath(""), run: deleteConversation },
];

/** The delay before the browser reconnects. */
const retryMs = 1000;

/**
 * Sends server-sent events of one conversation: the changes after the last one that the page has, or else a
 * snapshot, then every new change. They include what the list of all conversations shows, because browsers
 * allow six connections to one server and a page should have one. Resolves when the page is connected. The
 * stream ends when the page disconnects, the session ends or the platform stops.
 * @throws ParleyError `store-unavailable`, before anything is sent
 */
async function streamConversation(context: ApiContext, exchange: Exchange): Promise<void> {
  const { request, response, target, session } = exchange;
  const { bounds, feeds, views, signal } = context;
  if (!bounds.takeStream(session, response))
    return sendTooMany(response, 10_000, translate("web.too-many-windows"));
  const conversationId = toConversationId(exchange.id);
  const asked = Number(target.query.get("max") ?? defaultMessages);
  const max = Number.isInteger(asked) ? Math.min(Math.max(asked, 1), maxMessages) : defaultMessages;
  const lastSeen = request.headers["last-event-id"] ?? target.query.get("after") ?? "";
  const list = followList(context, conversationId);
  // A page that reads too slowly is disconnected, and reconnects with its cursor.
  const open = (): SseWriter => createSseWriter(response, { headers: inertHeaders, retryMs });
  let missed = feeds.of(conversationId).since(String(lastSeen));
  let writer = missed === undefined ? undefined : open();
  if (writer === undefined) {
    const snapshot = await views.takeSnapshot(conversationId, max, whenClosed(response));
    try {
      writer = open();
      // A long chat may be larger than the usual limit of unread data. What changes meanwhile follows.
      await writer.sendInPieces(snapshot.pieces, { id: snapshot.cursor, event: "snapshot" });
    } finally {
      snapshot.release();
    }
    missed = feeds.of(conversationId).since(snapshot.cursor);
  }
  const feed = feeds.of(conversationId);
  if (missed === undefined) {
    response.destroy();
    return;
  }
  const stream = writer;
  const push = (id: string, change: unknown): void =>
    stream.push(JSON.stringify(change), { id, event: "change" });
  for (const { id, change } of missed) push(id, change);

  // It has no id, so that it does not move the cursor of the conversation.
  const sendList = (isChanged: boolean): void =>
    stream.push(JSON.stringify({ ...list.state(), isChanged } satisfies ListStateView), {
      event: "list",
    });
  sendList(false);
  const listening = [feed.listen(({ id, change }) => push(id, change)), list.listen(sendList)];
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
  const { id: replyId, text, uploads: uploadIds } = await readBody(request, sentMessage);
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

  const attachments = uploads.map((upload) => toAttachment(upload));
  const event = toEvent(context.commands, { address, text, attachments });
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
 * Passes an event of a conversation to the receiver, and shows its message when it is accepted.
 * @throws ParleyError as `receive` does
 */
export async function receiveShown(
  { feeds, receiver }: ApiContext,
  event: IncomingEvent,
  content: Pick<ItemView, "text" | "files">,
): Promise<"accepted" | "duplicate"> {
  const outcome = await receiver.receive(event, { canResend: true });
  if (outcome === "accepted") feeds.of(event.conversationId).put(toQuestionItem(event, content));
  return outcome;
}

/** Takes back a message of the person whose turn has not begun. */
async function takeBackWaiting(context: ApiContext, { request, response, id }: Exchange): Promise<void> {
  const { itemId } = await readBody(request, z.object({ itemId: keyText }));
  const conversationId = toConversationId(id);
  const open = await findOpen(context.history, conversationId, itemId);
  if (open === undefined || open.hasBegun) {
    sendProblem(response, 409, "begun", translate("web.begun"));
    return;
  }
  await context.receiver.changed({ kind: "delete-messages", conversationId, keys: [toTurnKey(itemId)] });
  await context.views.inOrder(conversationId, async () => context.feeds.of(conversationId).drop(itemId));
  for (const file of toOpenItem(open.event, context.commands).files) {
    const uploadId = "url" in file ? /^\/api\/uploads\/(\w+)$/.exec(file.url ?? "")?.[1] : undefined;
    if (uploadId !== undefined) await context.uploads.remove(uploadId);
  }
  sendJson(response, 200, {});
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

/** Whether a live or stored item of the conversation fulfils the condition. */
export async function hasItem(
  { feeds, views }: ApiContext,
  conversationId: string,
  isWanted: (item: ItemView) => boolean,
): Promise<boolean> {
  if (feeds.of(conversationId).items().some(isWanted)) return true;
  const { items } = await views.readRecord(conversationId, defaultMessages);
  return items.some(isWanted);
}

async function deleteConversation(context: ApiContext, { response, id }: Exchange): Promise<void> {
  const { receiver, history, uploads, feeds } = context;
  const conversationId = toConversationId(id);
  await cancelPrivateCalls(context, conversationId);
  await receiver.changed({ kind: "delete-conversation", conversationId });
  const calls = await history.conversations(privateCallPrefix(conversationId), { max: maxPrivateCalls });
  for (const call of calls)
    await receiver.changed({ kind: "delete-conversation", conversationId: call.conversationId });
  await uploads.removeFrom(conversationId);
  feeds.of(conversationId).clear();
  feeds.touch(conversationId);
  sendJson(response, 200, {});
}

async function sendMarkdown(context: ApiContext, exchange: Exchange): Promise<void> {
  await sendExport(context, exchange, {
    extension: "md",
    mediaType: "text/markdown; charset=utf-8",
    toBytes: ([markdown]) => markdown?.read() ?? [],
  });
}

async function sendArchive(context: ApiContext, exchange: Exchange): Promise<void> {
  await sendExport(context, exchange, { extension: "zip", mediaType: "application/zip", toBytes: toZip });
}

/** Sends an export as it is read, without knowing its length. An error in the middle ends the download. */
async function sendExport(
  { history, bounds }: ApiContext,
  { request, response, id, session }: Exchange,
  form: {
    readonly extension: string;
    readonly mediaType: string;
    toBytes(files: readonly ExportedFile[]): AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  },
): Promise<void> {
  await bounds.takeExport(session, response);
  const conversationId = toConversationId(id);
  if (!(await history.knows(conversationId))) {
    sendProblem(response, 404, "not-found", translate("web.no-chat"));
    return;
  }
  const { title, files } = await history.export(conversationId);
  response.writeHead(200, {
    ...inertHeaders,
    "Content-Type": form.mediaType,
    "Content-Disposition": toDisposition("attachment", `${toFileName(title)}.${form.extension}`),
  });
  if (request.method === "HEAD") response.end();
  else await pipeline(Readable.from(form.toBytes(files)), response);
}

/** Makes a file name for every system from a title. */
function toFileName(title: string): string {
  const name = title.replaceAll(/[^\p{L}\p{M}\p{N} ,()_-]+/gu, " ").replaceAll(/\s+/g, " ");
  return name.trim().slice(0, 80).trim() || "conversation";
}

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
function followList({ feeds, gateway: { outlook } }: ApiContext, conversationId: string) {
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
async function label({ history, feeds }: ApiContext, { request, response, id }: Exchange): Promise<void> {
  const wanted = await readBody(request, labels);
  const conversationId = toConversationId(id);
  if (await history.label(conversationId, wanted, localActor())) {
    feeds.touch(conversationId);
    sendJson(response, 200, {});
    return;
  }
  sendProblem(response, 404, "not-found", translate("web.not-found"));
}
