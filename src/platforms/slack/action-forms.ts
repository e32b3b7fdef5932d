import type { App } from "@slack/bolt";
import type { Clock } from "../../core/clock.ts";
import { formNotAcceptedNotice, goneNotice } from "../../core/error-messages.ts";
import { changedTurnOf, type ReplyAction } from "../../core/reply-actions.ts";
import type { Receiver } from "../../core/platform.ts";
import { toCommandCall } from "./action-calls.ts";
import { toCallKey } from "./address.ts";
import type { CallIntake } from "./call-intake.ts";
import { toCallerText, type CallerNotices } from "./caller-notices.ts";
import { readFormModal } from "./form-modal.ts";
import type { Origins } from "./origin.ts";

/** `callback_id` of the modal that a button below an answer opens. */
export const actionFormCallback = "parley_action_form";

/** Kept in such a modal until it is submitted; at most 3,000 characters of JSON. */
export interface ActionFormMemory {
  readonly action: ReplyAction;
  readonly channel: string;
  readonly thread: string | undefined;
  readonly responseUrl: string | undefined;
  readonly isPrivate: boolean;
}

/** What {@link registerActionForms} needs. */
export interface ActionFormOptions {
  readonly teamId: string;
  readonly clock: Clock;
  readonly origins: Pick<Origins, "actorOf">;
  readonly receiver: Pick<Receiver, "act">;
  readonly intake: Pick<CallIntake, "takeForm">;
  readonly notices: CallerNotices;
  /** Called before a turn runs again: its reply can replace the message that has the button through this URL. */
  readonly saveReplaceUrl: (key: string, responseUrl: string) => void;
}

/** Registers the forms of buttons below answers. What is wrong stands at its field in the open modal. */
export function registerActionForms(app: App, options: ActionFormOptions): void {
  const { teamId, clock, origins, receiver, intake, notices, saveReplaceUrl } = options;

  app.view(actionFormCallback, async ({ body, view, ack }) => {
    const memory = JSON.parse(view.private_metadata) as ActionFormMemory;
    const { action, channel, thread, responseUrl, isPrivate } = memory;
    const values = readFormModal(view.state.values);
    const [first = ""] = Object.keys(values);
    const refuse = (text: string) => ack({ response_action: "errors", errors: { [first]: text } });
    try {
      const { id: user } = body.user;
      const by = await origins.actorOf({ user, channel, team: body.user.team_id });
      const turnKey = changedTurnOf(action);
      if (turnKey !== undefined && responseUrl !== undefined) saveReplaceUrl(turnKey, responseUrl);
      const result = await receiver.act(action, by, { values, isPrivate });
      switch (result.kind) {
        case "problems":
          return await ack({ response_action: "errors", errors: { ...result.problems } });
        case "gone":
          return await refuse(goneNotice());
        case "call": {
          const place = { by, user, channel, thread, responseUrl, isPrivate };
          const key = toCallKey(teamId, "view", view.id);
          const call = toCommandCall(teamId, result.call, { ...place, key }, clock);
          return (await intake.takeForm(call)) === "slow"
            ? await refuse(formNotAcceptedNotice())
            : await ack();
        }
        case "told":
          await ack();
          return await notices.sendMarkdown(responseUrl, result.markdown, thread);
        case "form":
        case "done":
          return await ack();
      }
    } catch (error) {
      notices.logFailure(error, actionFormCallback);
      await refuse(toCallerText(error));
    }
  });
}
