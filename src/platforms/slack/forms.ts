import type { App, Context } from "@slack/bolt";
import { goneNotice } from "../../core/error-messages.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Receiver } from "../../core/platform.ts";
import type { AppHome } from "./app-home.ts";
import { toCallerText, type CallerNotices } from "./notices.ts";
import {
  formAction,
  formCallback,
  parseFormMemory,
  readFormModal,
  toFormModal,
  type FormMemory,
} from "./form-modal.ts";
import type { Origins } from "./people.ts";
import type { SlackApi } from "./web-api.ts";

export interface FormHandlers {
  readonly api: Pick<SlackApi, "openModal">;
  readonly origins: Pick<Origins, "actorOf">;
  readonly receiver: Pick<Receiver, "press">;
  readonly notices: CallerNotices;
  readonly home: Pick<AppHome, "changed">;
}

/** Registers the select that opens forms, and their modals. An error is shown at its field. */
export function registerForms(app: App, of: (context: Context) => FormHandlers): void {
  app.action(formAction, async ({ action, body, context, ack }) => {
    const { api, origins, receiver, notices, home } = of(context);
    const key = action.type === "static_select" ? action.selected_option.value : "";
    const channel = "channel" in body ? (body.channel?.id ?? "") : "";
    const triggerId = "trigger_id" in body ? body.trigger_id : "";
    const responseUrl = "response_url" in body ? body.response_url : undefined;
    let notice: string | undefined;
    try {
      const by = await origins.actorOf({ user: body.user.id, channel, team: body.user.team_id });
      const result = await receiver.press({ kind: "settings", key }, by);
      if (result.kind !== "form") throw new ParleyError("internal", "settings without a form");
      const { form } = result;
      await api.openModal(triggerId, toFormModal(form, { key, channel, responseUrl } satisfies FormMemory));
    } catch (error) {
      notices.logFailure(error, formAction);
      notice = toCallerText(error);
    }
    await ack();
    if (notice === undefined) return;
    // In the Home tab there is no response_url.
    if (responseUrl === undefined) await home.changed(body.user.id, notice);
    else await notices.send(responseUrl, notice);
  });

  app.view(formCallback, async ({ body, view, context, ack }) => {
    const { origins, receiver, notices, home } = of(context);
    const { key, channel, responseUrl }: FormMemory = parseFormMemory(view.private_metadata);
    const values = readFormModal(view.state.values);
    try {
      const by = await origins.actorOf({ user: body.user.id, channel, team: body.user.team_id });
      const result = await receiver.press({ kind: "settings", key, values }, by);
      if (result.kind === "problems") {
        await ack({ response_action: "errors", errors: { ...result.problems } });
        return;
      }
      await ack();
      await Promise.all([
        notices.send(responseUrl, result.kind === "told" ? result.markdown : goneNotice()),
        home.changed(body.user.id),
      ]);
    } catch (error) {
      notices.logFailure(error, formCallback);
      const [field = ""] = Object.keys(values);
      await ack({ response_action: "errors", errors: { [field]: toCallerText(error) } });
    }
  });
}
