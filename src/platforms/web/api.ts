import { createHash, randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { usageOf } from "../../core/command.ts";
import { goneNotice } from "../../core/error-messages.ts";
import { ParleyError } from "../../core/errors.ts";
import type { CommandCall } from "../../core/events.ts";
import type { Form } from "../../core/forms.ts";
import type { ModelOperation } from "../../core/gateway.ts";
import { isReplyActionKind, parseActionKey, type ActionCall, type PressResult } from "../../core/press.ts";
import { charsOf, maxRecentChars, type ExportedFile } from "../../core/storage.ts";
import { type DocumentFormat, readDocument } from "../../media/documents/read-document.ts";
import { decodeText, sniff } from "../../media/sniff.ts";
import { toZip } from "../../media/zip.ts";
import { steadyClock } from "../../support/clock.ts";
import { inertHeaders, toDisposition, whenClosed } from "../../support/http/respond.ts";
import { createRouter } from "../../support/http/router.ts";
import { translate } from "../../words/translate.ts";
import {
  pageIdPattern,
  toConversationId,
  isPageConversation,
  toItemId,
  toPageId,
  toEventKey,
  toTurnKey,
  type WebAddress,
  privateCallPrefix,
} from "./address.ts";
import { type ApiContext, type Exchange, type Route, badField, messageLimits } from "./api-context.ts";
import { receiveShown, conversationRoutes } from "./conversation-routes.ts";
import { sendJson, readJson, sendProblem, sendCompressedJson } from "./http.ts";
import { listRoutes } from "./list-routes.ts";
import { localActor, currentSender, toCommandView } from "./messages.ts";
import { currentPerson } from "./page-person.ts";
import { findUpload, uploadRoutes } from "./upload-routes.ts";
import {
  sumUsage,
  toUsageView,
  type UsageView,
  type SearchView,
  type ModelView,
  type SettingsView,
  type StateView,
  toSourcesView,
  type GivenFilesView,
  type ToldView,
} from "./views.ts";

/** How many stored messages are looked through. */
const maxMessages = 10_000;

/** The endpoint that says what the answers of a chat have used. */
const usageRoutes: readonly Route[] = [
  { method: "GET", path: new RegExp(`^/api/conversations/(${pageIdPattern})/usage$`), run: sendUsage },
];

/** Sends a {@link UsageView}. It is partial where there are more messages than are looked through. */
async function sendUsage({ views }: ApiContext, { response, id }: Exchange): Promise<void> {
  const messages = await views.readMessages(toConversationId(id), maxMessages, whenClosed(response));
  const sum = sumUsage(messages.flatMap(({ receipt }) => (receipt && toUsageView(receipt)) ?? []));
  const usage: UsageView =
    messages.length < maxMessages && charsOf(messages) <= maxRecentChars ? sum : { ...sum, isPartial: true };
  sendJson(response, 200, usage);
}

const maxTextChars = 200;
const maxCursorChars = 200;
/** The results of one page. The page asks for the next ones as long as people look. */
const maxFound = 20;
const maxMs = 1500;

/** The search over all that was said. The words are in the body, since addresses end up in proxy logs. */
const searchRoutes: readonly Route[] = [{ method: "POST", path: /^\/api\/search$/, run: search }];

async function search(
  { history, bounds, signal }: ApiContext,
  { request, response, session }: Exchange,
): Promise<void> {
  const { text, after } = await readJson(request);
  if (typeof text !== "string" || text.length > maxTextChars) throw badField("text");
  if (after !== undefined && (typeof after !== "string" || after.length > maxCursorChars))
    throw badField("after");
  const gone = whenClosed(response);
  await bounds.takeSearch(session, response);
  const { found, next } = await history.search(toConversationId(""), {
    text,
    after,
    max: maxFound,
    maxMs,
    isWanted: isPageConversation,
    signal: AbortSignal.any([signal, gone]),
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

/** The longest text that is shown before a file is sent, in characters. */
const maxChars = 20_000;

/** The endpoint that shows the text of an upload as it is read when it is sent. */
const previewRoutes: readonly Route[] = [
  { method: "GET", path: /^\/api\/uploads\/([0-9a-f]{32})\/text$/, run: sendText },
];

/** Sends `{ text, isCut }`, or 422 with the reason where there is no text. */
async function sendText({ uploads, bounds }: ApiContext, { response, id, session }: Exchange): Promise<void> {
  const upload = await findUpload(uploads, id);
  await bounds.takeFile(session, response);
  const bytes = await uploads.bytesOf(upload);
  const sniffed = sniff(bytes);
  if (sniffed.kind === "text") return sendJson(response, 200, decodeText(bytes, maxChars));
  if (sniffed.kind !== "document")
    return sendProblem(response, 422, "no-text", translate("web.no-preview", { name: upload.name }));
  const read = await readDocument(
    bytes,
    sniffed.extension as DocumentFormat,
    currentPerson().author.id,
    whenClosed(response),
  );
  if ("problem" in read)
    return sendProblem(
      response,
      422,
      read.problem,
      translate("page.not-read", { name: upload.name, reason: translate(`document.${read.problem}`) }),
    );
  const { text } = read;
  sendJson(response, 200, { text: text.slice(0, maxChars), isCut: text.length > maxChars });
}

const path = `/api/conversations/(${pageIdPattern})/export`;

/** The endpoints that a chat is downloaded from: `…/export.md` to read, `…/export.zip` with everything. */
const exportRoutes: readonly Route[] = [
  { method: "GET", path: new RegExp(`^${path}\\.md$`), run: sendMarkdown },
  { method: "GET", path: new RegExp(`^${path}\\.zip$`), run: sendArchive },
];

async function sendMarkdown(context: ApiContext, exchange: Exchange): Promise<void> {
  await send(context, exchange, {
    extension: "md",
    mediaType: "text/markdown; charset=utf-8",
    toBytes: ([markdown]) => markdown?.read() ?? [],
  });
}

async function sendArchive(context: ApiContext, exchange: Exchange): Promise<void> {
  await send(context, exchange, { extension: "zip", mediaType: "application/zip", toBytes: toZip });
}

/** Sends an export as it is read, without knowing its length. An error in the middle ends the download. */
async function send(
  { receiver, history, bounds }: ApiContext,
  { request, response, id, session }: Exchange,
  form: {
    readonly extension: string;
    readonly mediaType: string;
    toBytes(files: readonly ExportedFile[]): AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  },
): Promise<void> {
  await bounds.takeFile(session, response);
  const conversationId = toConversationId(id);
  if (!(await receiver.knows(conversationId))) {
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

const maxSettingKeyChars = 200;

/** The endpoints of the settings panel. */
const settingsRoutes: readonly Route[] = [
  { method: "GET", path: /^\/api\/conversations\/([a-z0-9]{16,40})\/settings$/, run: sendForms },
  { method: "GET", path: new RegExp(`^/api/conversations/(${pageIdPattern})/model$`), run: sendModel },
  { method: "POST", path: /^\/api\/settings$/, run: submit },
];

async function sendForms({ receiver }: ApiContext, { response, id }: Exchange): Promise<void> {
  const offers = receiver.formOffers(localActor(), toConversationId(id));
  const forms = await Promise.all(
    offers.map(async ({ key, scope }) => ({ ...(await openForm(receiver, key)), scope })),
  );
  sendJson(response, 200, { forms } satisfies SettingsView);
}

/** Opens the form of an offer. */
async function openForm(receiver: ApiContext["receiver"], key: string): Promise<Form> {
  const result = await receiver.press({ kind: "settings", key }, localActor());
  if (result.kind !== "form") throw new ParleyError("internal", "settings without a form");
  return result.form;
}

/** Sends the chat model of one conversation, from the form that changes it. */
async function sendModel({ receiver }: ApiContext, { response, id }: Exchange): Promise<void> {
  const offer = receiver
    .formOffers(localActor(), toConversationId(id))
    .find(({ layer, group }) => layer === "conversation" && group === "models");
  const form = offer && (await openForm(receiver, offer.key));
  const field = form?.fields.find(({ models }) => models === "chat");
  if (form === undefined || field === undefined) {
    sendProblem(response, 404, "not-found", translate("web.not-found"));
    return;
  }
  sendJson(response, 200, {
    key: form.key,
    name: field.name,
    chosen: field.value,
    otherwise: field.placeholder,
    models: field.options?.map(({ value }) => value) ?? [],
  } satisfies ModelView);
}

/** Answers 200 with a text where it is saved, and 422 with a sentence for each field that is wrong. */
async function submit({ receiver }: ApiContext, { request, response }: Exchange): Promise<void> {
  const { key, values } = await readJson(request);
  if (typeof key !== "string" || key.length > maxSettingKeyChars) throw badField("key");
  if (!isOffered(receiver, key)) throw badField("key");
  const result = await receiver.press({ kind: "settings", key, values: toValues(values) }, localActor());
  if (result.kind === "told") sendJson(response, 200, { kind: "saved", text: result.markdown });
  else sendJson(response, 422, result);
}

/** Whether the person is offered this form, in a chat of their own. The key comes from the browser. */
function isOffered(receiver: ApiContext["receiver"], key: string): boolean {
  const [conversationId] = /web:\S*$/.exec(key) ?? [];
  if (conversationId !== undefined && !isPageConversation(conversationId)) return false;
  return receiver.formOffers(localActor(), conversationId).some((offer) => offer.key === key);
}

const idPattern = new RegExp(`^${pageIdPattern}$`);

/** The endpoint that goes on from a message in a new chat. */
const branchRoutes: readonly Route[] = [
  { method: "POST", path: new RegExp(`^/api/conversations/(${pageIdPattern})/branch$`), run: branch },
];

/**
 * Takes `{ itemId, to }` and copies the chat into the new chat `to`, up to this answer or up to before this
 * question. Sent again, it has no further effect.
 */
async function branch({ receiver }: ApiContext, { request, response, id }: Exchange): Promise<void> {
  const { itemId, to: newId } = await readJson(request);
  if (typeof itemId !== "string" || itemId.length > maxKeyChars) throw badField("itemId");
  if (typeof newId !== "string" || !idPattern.test(newId)) throw badField("to");
  const turnKey = toTurnKey(itemId);
  const isAnswer = toItemId(turnKey, "assistant") === itemId;
  const to = toConversationId(newId);
  const addressOf = (replyId: string) => ({ conversationId: to, replyId });
  const outcome = await receiver.branch(
    {
      from: toConversationId(id),
      to,
      until: isAnswer ? { turnKey } : { beforeKey: turnKey },
      toKey: (key) => toEventKey(addressOf(createHash("sha256").update(key).digest("hex").slice(0, 24))),
      toAddress: (key) => addressOf(key.slice(-24)),
    },
    localActor(),
  );
  switch (outcome) {
    case "branched":
      return sendJson(response, 201, {});
    case "gone":
      return sendProblem(response, 404, "gone", translate("web.message-gone"));
    case "too-long":
      return sendProblem(response, 409, "too-long", translate("web.branch-too-long"));
  }
}

const maxKeyChars = 400;

/** The endpoint of the buttons below answers. */
const actionRoutes: readonly Route[] = [
  { method: "POST", path: new RegExp(`^/api/conversations/(${pageIdPattern})/act$`), run: act },
];

/**
 * Runs a button, or what its form holds (`values`). Answers 200 with what is shown to the person, 202 where
 * an answer follows, 410 where the answer is gone, and 422 with a sentence for each field that is wrong.
 */
async function act(context: ApiContext, { request, response, id }: Exchange): Promise<void> {
  const body = await readJson(request);
  const { kind, key, replyId = randomBytes(12).toString("hex") } = body;
  if (typeof kind !== "string" || !isReplyActionKind(kind)) throw badField("kind");
  if (typeof key !== "string" || key.length > maxKeyChars) throw badField("key");
  if (typeof replyId !== "string" || !new RegExp(`^${pageIdPattern}$`).test(replyId))
    throw badField("replyId");
  const conversationId = toConversationId(id);
  const isPrivate = isPrivateKey(conversationId, key);
  const use = { isPrivate, ...(body["values"] === undefined ? {} : { values: toValues(body["values"]) }) };
  const result: PressResult =
    isPrivate || parseActionKey(key)?.conversationId === conversationId
      ? await context.receiver.press({ kind, key, ...use }, localActor())
      : { kind: "gone" };
  switch (result.kind) {
    case "gone":
      return sendProblem(response, 410, "gone", goneNotice());
    case "problems":
      return sendJson(response, 422, result);
    case "call": {
      const call = toCommandCall(
        { conversationId, replyId, ...(isPrivate ? { isPrivate } : {}) },
        result.call,
      );
      await receiveShown(context, call, { text: result.call.written, files: [] });
      return sendJson(response, 202, { kind: "done" });
    }
    case "told":
      return sendJson(response, 200, {
        kind: "told",
        markdown: result.markdown,
        ...toSourcesView(result.sources),
      } satisfies ToldView);
    case "files":
      return sendJson(response, 200, {
        ...result,
        files: result.files.map(({ name, mediaType, bytes }) => ({
          name,
          url: `data:${mediaType};base64,${Buffer.from(bytes).toString("base64")}`,
        })),
      } satisfies GivenFilesView);
    case "form":
    case "done":
      return sendJson(response, 200, result);
  }
}

function toCommandCall(address: WebAddress, { name, options, pictures }: ActionCall): CommandCall {
  return {
    kind: "call",
    key: toEventKey(address),
    platform: "web",
    conversationId: address.conversationId,
    ...currentSender(),
    sentAt: steadyClock.now(),
    address: { ...address },
    name,
    options,
    ...(pictures === undefined ? {} : { pictures }),
    inConversation: true,
    isPrivate: address.isPrivate === true,
    isInputVisible: true,
  };
}

/** Whether an action's key names an answer of one of the conversation's private calls. */
function isPrivateKey(conversationId: string, key: string): boolean {
  return parseActionKey(key)?.conversationId.startsWith(privateCallPrefix(conversationId)) === true;
}

const modelOperations = ["chat", "image", "transcription"] as const satisfies readonly ModelOperation[];

const findRoute = createRouter<Route["run"]>([
  { method: "GET", path: /^\/api\/state$/, run: sendState },
  { method: "GET", path: /^\/api\/models$/, run: sendModels },
  ...listRoutes,
  ...conversationRoutes,
  ...actionRoutes,
  ...branchRoutes,
  ...exportRoutes,
  ...usageRoutes,
  ...searchRoutes,
  ...settingsRoutes,
  ...uploadRoutes,
  ...previewRoutes,
]);

/**
 * Handles a request to `/api/…`. The caller has checked its origin and its session.
 * @throws ParleyError, which the caller sends as a problem response
 */
export async function handleApi(context: ApiContext, asked: Omit<Exchange, "id" | "hash">): Promise<void> {
  const { request, response, target } = asked;
  const found = findRoute(request.method, target.path);
  if (found.kind === "nothing") sendProblem(response, 404, "not-found", translate("web.not-found"));
  else if (found.kind === "wrong-method")
    sendProblem(response, 405, "not-allowed", translate("web.not-allowed"), { Allow: found.allow });
  else {
    const [id = "", hash = ""] = found.groups;
    await found.run(context, { ...asked, id, hash });
  }
}

function sendState(context: ApiContext, { response }: Exchange): void {
  // Whoever opens the page learns of gateway trouble before they ask. It follows by the page's event stream.
  context.outlook.look();
  const state: StateView = {
    banner: context.banner(),
    commands: [...context.commands.values()].map((command) => toCommandView(command, usageOf(command))),
    limits: {
      ...messageLimits,
      maxFileBytes: context.maxFileBytes,
      maxRecordingBytes: context.maxRecordingBytes,
    },
    hasPassword: context.hasPassword,
    ...(context.accountName === undefined ? {} : { accountName: context.accountName }),
  };
  sendCompressedJson(response, state);
}

function sendModels(context: ApiContext, { response, target }: Exchange): void {
  const query = (target.query.get("query") ?? "").slice(0, 200);
  const operation = modelOperations.find((known) => known === target.query.get("operation"));
  sendJson(response, 200, { models: context.receiver.suggestModels(query, { operation }) });
}

const maxFields = 10;
const maxValueChars = 10_000;

/** Returns the values of a submitted form, by field. @throws ParleyError `invalid-option` */
function toValues(given: unknown): Record<string, string> {
  if (typeof given !== "object" || given === null || Array.isArray(given)) throw badField("values");
  const entries = Object.entries(given);
  const isFit = entries.every(([, value]) => typeof value === "string" && value.length <= maxValueChars);
  if (entries.length > maxFields || !isFit) throw badField("values");
  return Object.fromEntries(entries);
}
