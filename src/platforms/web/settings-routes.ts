import { badField, type ApiContext, type Exchange, type Route } from "./api-context.ts";
import { readJson, sendJson } from "./http.ts";
import { toConversationId } from "./ids.ts";
import { localActor } from "./messages.ts";
import type { SettingsView } from "./views.ts";

const maxKeyChars = 200;
const maxFields = 10;
const maxValueChars = 10_000;

/** The forms of the settings panel. */
export const settingsRoutes: readonly Route[] = [
  { method: "GET", path: /^\/api\/conversations\/([a-z0-9]{16,40})\/settings$/, run: sendForms },
  { method: "POST", path: /^\/api\/settings$/, run: submit },
];

async function sendForms({ receiver }: ApiContext, { response, id }: Exchange): Promise<void> {
  const offers = receiver.forms.offers(localActor, toConversationId(id));
  const forms = await Promise.all(
    offers.map(async ({ key, scope }) => ({ ...(await receiver.forms.open(key, localActor)), scope })),
  );
  sendJson(response, 200, { forms } satisfies SettingsView);
}

/** 200 with a text where it is saved; 422 with a sentence for each field that is wrong. */
async function submit({ receiver }: ApiContext, { request, response }: Exchange): Promise<void> {
  const { key, values } = await readJson(request);
  if (typeof key !== "string" || key.length > maxKeyChars) throw badField("key");
  const result = await receiver.forms.submit(key, localActor, toValues(values));
  sendJson(response, result.kind === "saved" ? 200 : 422, result);
}

/** @throws ParleyError `invalid-option` */
function toValues(given: unknown): Record<string, string> {
  if (typeof given !== "object" || given === null || Array.isArray(given)) throw badField("values");
  const entries = Object.entries(given);
  const isFit = entries.every(([, value]) => typeof value === "string" && value.length <= maxValueChars);
  if (entries.length > maxFields || !isFit) throw badField("values");
  return Object.fromEntries(entries);
}
