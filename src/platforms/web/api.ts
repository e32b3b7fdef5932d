import { createHash, randomBytes } from "node:crypto";
import { z } from "zod";
import { usageOf } from "../../core/command.ts";
import { goneNotice } from "../../core/error-messages.ts";
import { ParleyError } from "../../core/errors.ts";
import {
  type Form,
  parseActionKey,
  replyButtons,
  type Press,
  type PressResult,
  type ReplyActionKind,
} from "../../core/press.ts";
import type { ModelOperation } from "../../core/gateway.ts";
import { charsOf, maxRecentChars } from "../../core/storage.ts";
import { whenClosed, createRouter } from "../../support/http/server.ts";
import { translate } from "../../words/translate.ts";
import {
  toConversationId,
  isPageConversation,
  toItemId,
  toPageId,
  toEventKey,
  toTurnKey,
  privateCallPrefix,
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
import { conversationRoutes, hasItem, receiveShown, listRoutes } from "./conversation-routes.ts";
import { readBody, sendJson, sendProblem, sendCompressedJson } from "./http.ts";
import { localActor, toCommandCall, toCommandView } from "./messages.ts";
import { uploadRoutes } from "./upload-routes.ts";
import { toUsageView, toSourcesView } from "./items.ts";
import type {
  UsageView,
  SearchView,
  ModelView,
  SettingsView,
  StateView,
  GivenFilesView,
  ToldView,
} from "./views.ts";

/** How many stored messages are looked through. */
const maxMessages = 10_000;

/** Sends a {@link UsageView}. It is partial where there are more messages than are looked through. */
async function sendUsage({ views }: ApiContext, { response, id }: Exchange): Promise<void> {
  const messages = await views.readMessages(toConversationId(id), maxMessages, whenClosed(response));
  const receipts = messages.flatMap(({ receipt }) => receipt ?? []);
  const known = receipts.filter(({ calls }) => toUsageView(calls) !== undefined);
  const isPartial = messages.length >= maxMessages || charsOf(messages) > maxRecentChars;
  const usage: UsageView = {
    ...toUsageView(known.flatMap(({ calls }) => calls)),
    ...(isPartial ? { isPartial } : {}),
  };
  sendJson(response, 200, usage);
}

const searched = z.object({ text: z.string().max(200), after: z.string().max(200).optional() });
/** The results of one page. The page asks for the next ones as long as people look. */
const maxFound = 20;
const maxMs = 1500;

/** Searches all that was said. The words are in the body, since addresses end up in proxy logs. */
async function search(
  { history, bounds, signal }: ApiContext,
  { request, response, session }: Exchange,
): Promise<void> {
  const { text, after } = await readBody(request, searched);
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

/**
 * Takes `{ itemId, to }` and copies the chat into the new chat `to`, up to this answer or up to before this
 * question. Sent again, it has no further effect.
 */
async function branch({ history }: ApiContext, { request, response, id }: Exchange): Promise<void> {
  const { itemId, to: newId } = await readBody(request, z.object({ itemId: keyText, to: pageId }));
  const turnKey = toTurnKey(itemId);
  const isAnswer = toItemId(turnKey, "assistant") === itemId;
  const to = toConversationId(newId);
  const addressOf = (replyId: string) => ({ conversationId: to, replyId });
  const outcome = await history.branch(
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

const formValues = z
  .record(z.string(), z.string().max(10_000))
  .refine((values) => Object.keys(values).length <= 10);

const buttons = Object.keys(replyButtons) as ReplyActionKind[];
const pressed = z.object({
  kind: z.enum([...buttons, "retry", "confirm", "settings"]),
  key: keyText,
  replyId: pageId.optional(),
  values: formValues.exactOptional(),
});

/**
 * Presses a button, or submits what its form holds (`values`). Answers 200 with what is shown to the person,
 * 202 where an answer follows, 410 where the button is gone, and 422 with a sentence for each field that is
 * wrong.
 */
async function act(context: ApiContext, { request, response, id }: Exchange): Promise<void> {
  const { replyId = randomBytes(12).toString("hex"), ...used } = await readBody(request, pressed);
  const conversationId = toConversationId(id);
  const isPrivate = isPrivateKey(conversationId, used.key);
  const press: Press = { ...used, isPrivate };
  const result: PressResult = (await isOffered(context, conversationId, press))
    ? await context.receiver.press(press, localActor())
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

/** Whether the page offers the person this button or form, in a chat of their own. Browsers send any key. */
async function isOffered(
  context: ApiContext,
  conversationId: string,
  { kind, key, isPrivate }: Press,
): Promise<boolean> {
  switch (kind) {
    case "retry":
      return await hasItem(context, conversationId, ({ retryKey }) => retryKey === key);
    case "confirm":
      return await hasItem(context, conversationId, ({ confirm }) => confirm?.key === key);
    case "settings":
      return context.receiver.formOffers(localActor(), conversationId).some((offer) => offer.key === key);
    default:
      return isPrivate === true || parseActionKey(key)?.conversationId === conversationId;
  }
}

/** Whether an action's key names an answer of one of the conversation's private calls. */
function isPrivateKey(conversationId: string, key: string): boolean {
  return parseActionKey(key)?.conversationId.startsWith(privateCallPrefix(conversationId)) === true;
}

const modelOperations = ["chat", "image", "transcription"] as const satisfies readonly ModelOperation[];

const findRoute = createRouter<Route["run"]>([
  { method: "GET", path: "/api/state", run: sendState },
  { method: "GET", path: "/api/models", run: sendModels },
  ...listRoutes,
  ...conversationRoutes,
  { method: "POST", path: conversationPath("/act"), run: act },
  { method: "POST", path: conversationPath("/branch"), run: branch },
  { method: "GET", path: conversationPath("/usage"), run: sendUsage },
  { method: "POST", path: "/api/search", run: search },
  { method: "GET", path: conversationPath("/settings"), run: sendForms },
  { method: "GET", path: conversationPath("/model"), run: sendModel },
  ...uploadRoutes,
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

function sendState(context: ApiContext, { response, loggedIn: { canLogOut, account } }: Exchange): void {
  // Whoever opens the page learns of gateway trouble before they ask. It follows by the page's event stream.
  const { name: gateway, isSandbox, outlook } = context.gateway;
  outlook.look();
  const state: StateView = {
    banner: { gateway, isSandbox },
    commands: [...context.commands.values()]
      .filter(({ needsOthers }) => needsOthers !== true)
      .map((command) => toCommandView(command, usageOf(command))),
    limits: {
      ...messageLimits,
      maxFileBytes: context.maxFileBytes,
      maxRecordingBytes: context.maxRecordingBytes,
    },
    hasPassword: canLogOut,
    ...(account === undefined ? {} : { accountName: account.name }),
  };
  sendCompressedJson(response, state);
}

function sendModels(context: ApiContext, { response, target }: Exchange): void {
  const query = (target.query.get("query") ?? "").slice(0, 200);
  const operation = modelOperations.find((known) => known === target.query.get("operation"));
  sendJson(response, 200, { models: context.receiver.suggestModels(query, { operation }) });
}
