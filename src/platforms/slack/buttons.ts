import type { App } from "@slack/bolt";
import type { Clock } from "../../core/clock.ts";
import type { Actor } from "../../core/access.ts";
import type { Receiver } from "../../core/platform.ts";
import { acceptingNotice, goneNotice } from "../../core/error-messages.ts";
import { changedTurnOf, type ActionResult, type ReplyAction } from "../../core/reply-actions.ts";
import { toCommandCall } from "./action-calls.ts";
import { actionFormCallback, type ActionFormMemory } from "./action-forms.ts";
import { toCallKey } from "./address.ts";
import type { CallIntake } from "./call-intake.ts";
import { toCallerText, type CallerNotices } from "./caller-notices.ts";
import { answerActions, confirmAction, parseActionId, retryAction } from "./message-blocks.ts";
import { toFormModal } from "./form-modal.ts";
import type { Origins } from "./origin.ts";
import type { SlackApi } from "./web-api.ts";
import { translate } from "../../words/translate.ts";

/** What {@link registerButtons} needs. */
export interface ButtonOptions {
  readonly teamId: string;
  readonly clock: Clock;
  readonly api: Pick<SlackApi, "openModal">;
  readonly origins: Pick<Origins, "actorOf">;
  readonly receiver: Pick<Receiver, "retry" | "confirm" | "act">;
  readonly intake: Pick<CallIntake, "take">;
  readonly notices: CallerNotices;
  /** Called before a call runs again: its reply can replace the button's message through this URL. */
  readonly saveReplaceUrl: (key: string, responseUrl: string) => void;
}

/** One press of a button. */
interface Press {
  readonly actionId: string;
  /** The button's value. */
  readonly key: string;
  readonly by: Actor;
  readonly user: string;
  readonly channel: string;
  readonly thread: string | undefined;
  readonly triggerId: string;
  readonly responseUrl: string | undefined;
  /** Only this person sees the message. */
  readonly isPrivate: boolean;
}

/** What is shown to the person who pressed. */
type Told = { readonly text: string } | { readonly markdown: string };

/** What the payload of a pressed button says about where it is. */
interface PressedBody {
  readonly response_url?: string;
  readonly channel?: { readonly id: string };
  readonly trigger_id?: string;
  readonly container?: { readonly thread_ts?: string; readonly is_ephemeral?: boolean };
  readonly message?: { readonly thread_ts?: string };
}

/** Registers the buttons of replies. Slack delivers a press once, so failures are shown to the person. */
export function registerButtons(app: App, options: ButtonOptions): void {
  const { teamId, clock, api, origins, receiver, intake, notices, saveReplaceUrl } = options;

  function onPress(which: string | RegExp, run: (press: Press) => Promise<Told | undefined>): void {
    app.action(which, async ({ action, body, ack }) => {
      const pressed = body as unknown as PressedBody;
      const { response_url: responseUrl, container, message } = pressed;
      // In a thread, what is shown to the person goes where they look.
      const thread = container?.thread_ts ?? message?.thread_ts;
      const actionId = "action_id" in action ? action.action_id : "";
      const key = action.type === "button" ? (action.value ?? "") : "";
      let told: Told | undefined;
      try {
        const user = body.user.id;
        const channel = pressed.channel?.id ?? "";
        const by = await origins.actorOf({ user, channel, team: body.user.team_id });
        const isPrivate = container?.is_ephemeral === true;
        const place = { user, channel, thread, responseUrl, isPrivate };
        told = await run({ ...place, actionId, key, by, triggerId: pressed.trigger_id ?? "" });
      } catch (error) {
        notices.logFailure(error, actionId);
        told = { text: toCallerText(error) };
      }
      await ack();
      if (told === undefined) return;
      if ("text" in told) await notices.send(responseUrl, told.text, thread);
      else await notices.sendMarkdown(responseUrl, told.markdown, thread);
    });
  }

  onPress(retryAction, async ({ key, by }) => {
    const outcome = await receiver.retry(key, by);
    return outcome === "gone" ? { text: translate("slack.retry-gone") } : undefined;
  });

  onPress(confirmAction, async ({ key, by, responseUrl }) => {
    if (responseUrl !== undefined) saveReplaceUrl(key, responseUrl);
    const outcome = await receiver.confirm(key, by);
    if (outcome === "gone") return { text: translate("slack.confirm-gone") };
    return outcome === "refused" ? { text: translate("platform.only-asker") } : undefined;
  });

  onPress(answerActions, async (press) => {
    const { actionId, key, by, isPrivate, responseUrl } = press;
    const kind = parseActionId(actionId);
    if (kind === undefined) return { text: goneNotice() };
    const turnKey = changedTurnOf({ kind, key });
    if (turnKey !== undefined && responseUrl !== undefined) saveReplaceUrl(turnKey, responseUrl);
    return await show(await receiver.act({ kind, key }, by, { isPrivate }), { kind, key }, press);
  });

  /** Shows the result of a button below an answer, or starts what it asks for. */
  async function show(result: ActionResult, action: ReplyAction, press: Press): Promise<Told | undefined> {
    switch (result.kind) {
      case "told":
        return { markdown: result.markdown };
      case "gone":
        return { text: goneNotice() };
      case "problems":
        return { text: Object.values(result.problems).join("\n") };
      case "form": {
        const { channel, thread, responseUrl, isPrivate } = press;
        const memory: ActionFormMemory = { action, channel, thread, responseUrl, isPrivate };
        await api.openModal(press.triggerId, toFormModal(result.form, memory, actionFormCallback));
        return undefined;
      }
      case "call": {
        const key = toCallKey(teamId, "press", press.triggerId);
        const say = (text: string) => notices.send(press.responseUrl, text, press.thread);
        const outcome = await intake.take(toCommandCall(teamId, result.call, { ...press, key }, clock), say);
        return outcome === "slow" ? { text: acceptingNotice() } : undefined;
      }
      case "done":
        return undefined;
    }
  }
}
