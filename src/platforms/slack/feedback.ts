import type { App } from "@slack/bolt";
import { goneNotice } from "../../core/error-messages.ts";
import type { Receiver } from "../../core/platform.ts";
import { translate } from "../../words/translate.ts";
import { toCallerText, type CallerNotices } from "./caller-notices.ts";
import { feedbackAction, parseFeedback } from "./feedback-buttons.ts";
import type { Origins } from "./origin.ts";

/** What {@link registerFeedback} needs. */
export interface FeedbackOptions {
  readonly teamId: string;
  readonly origins: Pick<Origins, "actorOf">;
  readonly receiver: Pick<Receiver, "rate">;
  readonly notices: CallerNotices;
}

/** What Slack sends when a feedback button is pressed. */
interface Pressed {
  readonly user: { readonly id: string; readonly team_id?: string };
  readonly channel?: { readonly id: string };
  readonly response_url?: string;
  readonly container?: { readonly thread_ts?: string };
  readonly message?: { readonly thread_ts?: string };
}

/** Registers the feedback buttons below answers. Slack delivers a press once: what came of it is shown to the person. */
export function registerFeedback(app: App, { teamId, origins, receiver, notices }: FeedbackOptions): void {
  app.action(feedbackAction, async ({ action, body, ack }) => {
    const { user, channel, response_url: responseUrl, container, message } = body as unknown as Pressed;
    const thread = container?.thread_ts ?? message?.thread_ts;
    const { value = "" } = action as { readonly value?: string };
    let told: string;
    try {
      const by = await origins.actorOf({ user: user.id, channel: channel?.id ?? "", team: user.team_id });
      const pressed = parseFeedback(value);
      const isOwn = pressed?.key.startsWith(`slack:${teamId}:`) === true;
      const outcome = !isOwn ? "gone" : await receiver.rate(pressed.key, pressed.rating, by);
      told = outcome === "gone" ? goneNotice() : translate("slack.feedback.thanks");
    } catch (error) {
      notices.logFailure(error, feedbackAction);
      told = toCallerText(error);
    }
    await ack();
    await notices.send(responseUrl, told, thread);
  });
}
