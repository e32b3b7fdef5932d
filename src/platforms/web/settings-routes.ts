import { badField, type ApiContext, type Exchange, type Route } from "./api-context.ts";
import { toValues } from "./form-values.ts";
import { readJson, sendJson, sendProblem } from "./http.ts";
import { isPageConversation, pageIdPattern, toConversationId } from "./ids.ts";
import { localActor } from "./messages.ts";
import { translate } from "../../words/translate.ts";
import type { ModelView, SettingsView } from "./views.ts";

const maxKeyChars = 200;

/** The forms of the settings panel. */
export const settingsRoutes: readonly Route[] = [
  { method: "GET", path: /^\/api\/conversations\/([a-z0-9]{16,40})\/settings$/, run: sendForms },
  { method: "GET", path: new RegExp(`^/api/conversations/(${pageIdPattern})/model$`), run: sendModel },
  { method: "POST", path: /^\/api\/settings$/, run: submit },
];

async function sendForms({ receiver }: ApiContext, { response, id }: Exchange): Promise<void> {
  const offers = receiver.forms.offers(localActor(), toConversationId(id));
  const forms = await Promise.all(
    offers.map(async ({ key, scope }) => ({ ...(await receiver.forms.open(key, localActor())), scope })),
  );
  sendJson(response, 200, { forms } satisfies SettingsView);
}

/** The chat model of one conversation, from the form that changes it. */
async function sendModel({ receiver }: ApiContext, { response, id }: Exchange): Promise<void> {
  const offer = receiver.forms
    .offers(localActor(), toConversationId(id))
    .find(({ layer, group }) => layer === "conversation" && group === "models");
  const form = offer && (await receiver.forms.open(offer.key, localActor()));
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

/** 200 with a text where it is saved; 422 with a sentence for each field that is wrong. */
async function submit({ receiver }: ApiContext, { request, response }: Exchange): Promise<void> {
  const { key, values } = await readJson(request);
  if (typeof key !== "string" || key.length > maxKeyChars) throw badField("key");
  if (!isOffered(receiver, key)) throw badField("key");
  const result = await receiver.forms.submit(key, localActor(), toValues(values));
  sendJson(response, result.kind === "saved" ? 200 : 422, result);
}

/** The key comes from the browser: it must be of a form that this person is offered, in a chat of their own. */
function isOffered({ forms }: ApiContext["receiver"], key: string): boolean {
  const [conversationId] = /web:\S*$/.exec(key) ?? [];
  if (conversationId !== undefined && !isPageConversation(conversationId)) return false;
  return forms.offers(localActor(), conversationId).some((offer) => offer.key === key);
}
