import type { IncomingMessage, ServerResponse } from "node:http";
import { usageOf, type Command } from "../../core/command.ts";
import { ParleyError } from "../../core/errors.ts";
import type { ConversationHistory, Receiver } from "../../core/platform.ts";
import type { createConversationViews } from "./conversations.ts";
import { sendEvents } from "./events.ts";
import type { Feeds } from "./feed.ts";
import { sendUntrustedFile } from "./files.ts";
import { readJson, sendJson, sendProblem } from "./http.ts";
import { localAuthor, toCommandView, toEvent } from "./messages.ts";
import { keyOf } from "./reply.ts";
import { toAttachment, type Upload, type Uploads } from "./uploads.ts";
import type { FileView, StateView } from "./views.ts";

/** Longest text of one message, in characters, and most files with it. */
export const messageLimits = { maxChars: 60_000, maxFiles: 10 } as const;
const defaultMessages = 100;
const maxMessages = 2000;

/** What the routes work with. */
export interface ApiRoom {
  readonly receiver: Receiver;
  readonly history: ConversationHistory;
  readonly commands: ReadonlyMap<string, Command>;
  readonly feeds: Feeds;
  readonly views: ReturnType<typeof createConversationViews>;
  readonly uploads: Uploads;
  readonly maxFileBytes: number;
  readonly hasPassword: boolean;
  /** Aborts when the platform stops: event streams end. */
  readonly signal: AbortSignal;
  banner(): { readonly gateway: string; readonly isSandbox: boolean };
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: URL;
}

type Route = (room: ApiRoom, exchange: Exchange, part: string, rest: string) => Promise<void> | void;

const routes: readonly { readonly method: string; readonly path: RegExp; readonly run: Route }[] = [
  { method: "GET", path: /^\/api\/state$/, run: sendState },
  { method: "GET", path: /^\/api\/models$/, run: sendModels },
  { method: "GET", path: /^\/api\/conversations$/, run: sendConversations },
  { method: "GET", path: /^\/api\/conversations\/([a-z0-9]{16,40})\/events$/, run: streamConversation },
  { method: "GET", path: /^\/api\/conversations\/([a-z0-9]{16,40})\/blobs\/([0-9a-f]{64})$/, run: sendBlob },
  { method: "POST", path: /^\/api\/conversations\/([a-z0-9]{16,40})\/messages$/, run: receiveMessage },
  { method: "POST", path: /^\/api\/conversations\/([a-z0-9]{16,40})\/cancel$/, run: cancel },
  { method: "POST", path: /^\/api\/conversations\/([a-z0-9]{16,40})\/retry$/, run: retry },
  { method: "POST", path: /^\/api\/conversations\/([a-z0-9]{16,40})\/confirm$/, run: confirm },
  { method: "DELETE", path: /^\/api\/conversations\/([a-z0-9]{16,40})$/, run: removeConversation },
  { method: "POST", path: /^\/api\/uploads$/, run: receiveUpload },
  { method: "GET", path: /^\/api\/uploads\/([0-9a-f]{32})$/, run: sendUpload },
  { method: "DELETE", path: /^\/api\/uploads\/([0-9a-f]{32})$/, run: removeUpload },
];

/**
 * Answers one request to `/api/…`; the caller has checked where it comes from and who sent it.
 * @throws ParleyError whose words the page shows
 */
export async function answerApi(
  room: ApiRoom,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
): Promise<void> {
  const fitting = routes.filter(({ path }) => path.test(url.pathname));
  const method = request.method === "HEAD" ? "GET" : request.method;
  const route = fitting.find((candidate) => candidate.method === method);
  if (route === undefined) {
    if (fitting.length === 0) sendProblem(response, 404, "not-found", "There is nothing at this address.");
    else {
      sendProblem(response, 405, "not-allowed", "That cannot be done here.", {
        Allow: fitting.map((candidate) => candidate.method).join(", "),
      });
    }
    return;
  }
  const [, part = "", rest = ""] = route.path.exec(url.pathname) ?? [];
  await route.run(room, { request, response, url }, part, rest);
}

function sendState(room: ApiRoom, { response }: Exchange): void {
  const state: StateView = {
    banner: room.banner(),
    commands: [...room.commands.values()].map((command) => toCommandView(command, usageOf(command))),
    limits: { ...messageLimits, maxFileBytes: room.maxFileBytes },
    hasPassword: room.hasPassword,
  };
  sendJson(response, 200, state);
}

function sendModels(room: ApiRoom, { response, url }: Exchange): void {
  const query = (url.searchParams.get("query") ?? "").slice(0, 200);
  sendJson(response, 200, { models: room.receiver.suggestModels(query) });
}

async function sendConversations(room: ApiRoom, { response }: Exchange): Promise<void> {
  const all = await room.history.conversations("web:");
  sendJson(response, 200, {
    conversations: all.map(({ conversationId, title, updatedAt }) => ({
      id: conversationId.slice("web:".length),
      title,
      updatedAt,
    })),
  });
}

async function streamConversation(room: ApiRoom, exchange: Exchange, id: string): Promise<void> {
  const conversationId = `web:${id}`;
  const { request, response, url } = exchange;
  const asked = Number(url.searchParams.get("max") ?? defaultMessages);
  const max = Number.isInteger(asked) ? Math.min(Math.max(asked, 1), maxMessages) : defaultMessages;
  const lastSeen = request.headers["last-event-id"] ?? url.searchParams.get("after") ?? undefined;
  await sendEvents(response, {
    feed: room.feeds.of(conversationId),
    cursor: typeof lastSeen === "string" && lastSeen !== "" ? lastSeen : undefined,
    signal: room.signal,
    readHistory: () => room.views.readHistory(conversationId, max),
  });
}

async function sendBlob(room: ApiRoom, exchange: Exchange, id: string, hash: string): Promise<void> {
  const { request, response, url } = exchange;
  const conversationId = `web:${id}`;
  const bytes =
    room.feeds.of(conversationId).held(hash)?.bytes ??
    (await room.history.readBlob(conversationId, hash))?.bytes;
  if (bytes === undefined) {
    sendProblem(response, 404, "not-found", "This file is not kept any more.");
    return;
  }
  sendUntrustedFile(request, response, {
    bytes,
    name: url.searchParams.get("name") ?? hash,
    isDownload: url.searchParams.has("download"),
  });
}

async function receiveMessage(room: ApiRoom, exchange: Exchange, id: string): Promise<void> {
  const { request, response } = exchange;
  const body = await readJson(request);
  const { id: replyId, text, uploads: uploadIds = [] } = body;
  if (typeof replyId !== "string" || !/^[a-z0-9]{16,40}$/.test(replyId)) throw badField("id");
  if (typeof text !== "string" || text.length > messageLimits.maxChars) throw badField("text");
  if (!isStrings(uploadIds) || uploadIds.length > messageLimits.maxFiles) throw badField("uploads");
  const uploads = await Promise.all(uploadIds.map((uploadId) => findUpload(room, uploadId)));
  if (text.trim() === "" && uploads.length === 0) throw badField("text");

  const address = { conversationId: `web:${id}`, replyId };
  const sentAt = Date.now();
  const event = toEvent(room.commands, {
    address,
    text,
    attachments: uploads.map((upload) => toAttachment(upload)),
    sentAt,
  });
  for (const upload of uploads) await room.uploads.assign(upload, address.conversationId);
  const feed = room.feeds.of(address.conversationId);
  const itemId = `${keyOf(address)}/user`;
  const isNew = feed.get(itemId) === undefined;
  // Shown first, since the answer may begin before `receive` comes back; taken away where nothing was received.
  if (isNew) {
    const files = uploads.map((upload) => toFileView(upload));
    feed.put({ id: itemId, role: "user", state: "finished", createdAt: sentAt, text, files, notices: [] });
  }
  let outcome: "accepted" | "duplicate" | undefined;
  try {
    outcome = await room.receiver.receive(event);
  } finally {
    if (isNew && outcome !== "accepted") feed.drop(itemId);
  }
  sendJson(response, 202, { outcome });
}

async function findUpload(room: ApiRoom, id: string): Promise<Upload> {
  const upload = await room.uploads.find(id);
  if (upload === undefined) {
    throw new ParleyError("attachment-gone", "an upload is not there any more", {
      detail: { name: "A file of this message" },
    });
  }
  return upload;
}

function toFileView(upload: Upload): FileView {
  const { id, name, mediaType } = upload;
  const url = `/api/uploads/${id}`;
  if (mediaType.startsWith("image/")) return { kind: "image", url, name, altText: name };
  if (mediaType.startsWith("audio/")) return { kind: "audio", url, name };
  return { kind: "file", url, name };
}

function cancel(room: ApiRoom, { response }: Exchange, id: string): void {
  sendJson(response, 200, { isCancelled: room.receiver.cancel(`web:${id}`) });
}

async function retry(room: ApiRoom, { request, response }: Exchange, id: string): Promise<void> {
  const { retryKey } = await readJson(request);
  if (typeof retryKey !== "string" || retryKey.length > 400) throw badField("retryKey");
  const conversationId = `web:${id}`;
  const shown = (await room.views.readHistory(conversationId, defaultMessages))().items;
  const outcome = shown.some((item) => item.retryKey === retryKey)
    ? await room.receiver.retry(retryKey)
    : "gone";
  sendJson(response, outcome === "gone" ? 410 : 202, { outcome });
}

async function confirm(room: ApiRoom, { request, response }: Exchange, id: string): Promise<void> {
  const { key } = await readJson(request);
  if (typeof key !== "string" || key.length > 400) throw badField("key");
  const conversationId = `web:${id}`;
  const shown = (await room.views.readHistory(conversationId, defaultMessages))().items;
  const outcome = shown.some((item) => item.confirm?.key === key)
    ? await room.receiver.confirm(key, localAuthor.id)
    : "gone";
  sendJson(response, outcome === "accepted" ? 202 : 410, { outcome });
}

async function removeConversation(room: ApiRoom, { response }: Exchange, id: string): Promise<void> {
  const conversationId = `web:${id}`;
  await room.receiver.conversationDeleted(conversationId);
  await room.uploads.removeFrom(conversationId);
  room.feeds.of(conversationId).clear();
  sendJson(response, 200, {});
}

async function receiveUpload(room: ApiRoom, { request, response, url }: Exchange): Promise<void> {
  const durationMs = Number(url.searchParams.get("durationMs") ?? Number.NaN);
  const upload = await room.uploads.save(request, {
    name: (url.searchParams.get("name") ?? "").replace(/[\p{Cc}/\\]/gu, "_").slice(0, 200) || "file",
    mediaType: (request.headers["content-type"] ?? "application/octet-stream").slice(0, 100),
    ...(Number.isFinite(durationMs) && durationMs > 0 ? { durationMs: Math.round(durationMs) } : {}),
  });
  sendJson(response, 201, { id: upload.id });
}

async function sendUpload(room: ApiRoom, { request, response }: Exchange, id: string): Promise<void> {
  const upload = await findUpload(room, id);
  const bytes = await room.uploads.bytesOf(upload.id);
  sendUntrustedFile(request, response, { bytes, name: upload.name, isDownload: false });
}

async function removeUpload(room: ApiRoom, { response }: Exchange, id: string): Promise<void> {
  await room.uploads.remove(id);
  sendJson(response, 200, {});
}

function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function badField(name: string): ParleyError {
  return new ParleyError("invalid-option", `field ${name} is not right`, {
    detail: { command: "message", option: name, problem: "it is missing, too long or of another kind" },
  });
}
