import type { App } from "@slack/bolt";
import type { Actor } from "../../core/access.ts";
import type { Receiver } from "../../core/platform.ts";
import { toCallerText, type CallerNotices } from "./caller-notices.ts";
import { confirmAction, retryAction } from "./message-blocks.ts";
import type { Origins } from "./origin.ts";

/** What {@link registerButtons} needs. */
export interface ButtonOptions {
  readonly origins: Pick<Origins, "actorOf">;
  readonly receiver: Pick<Receiver, "retry" | "confirm">;
  readonly notices: CallerNotices;
  /** Called before a confirmed call runs: its reply can replace the button's message through this URL. */
  readonly saveReplaceUrl: (key: string, responseUrl: string) => void;
}

/** One press of a button. */
interface Press {
  /** The button's value. */
  readonly key: string;
  readonly by: Actor;
  readonly responseUrl: string | undefined;
}

/** Registers the Retry and confirm buttons. Slack delivers a press once, so failures are shown to the person. */
export function registerButtons(app: App, options: ButtonOptions): void {
  const { origins, receiver, notices, saveReplaceUrl } = options;

  /** `run` returns a notice for the person, if there is something to say. */
  function onPress(actionId: string, run: (press: Press) => Promise<string | undefined>): void {
    app.action(actionId, async ({ action, body, ack }) => {
      const key = action.type === "button" ? (action.value ?? "") : "";
      const responseUrl = "response_url" in body ? body.response_url : undefined;
      let notice: string | undefined;
      try {
        const channel = "channel" in body ? (body.channel?.id ?? "") : "";
        const by = await origins.actorOf({ user: body.user.id, channel, team: body.user.team_id });
        notice = await run({ key, by, responseUrl });
      } catch (error) {
        notices.logFailure(error, actionId);
        notice = toCallerText(error);
      }
      await ack();
      if (notice !== undefined) await notices.send(responseUrl, notice);
    });
  }

  onPress(retryAction, async ({ key, by }) => {
    const outcome = await receiver.retry(key, by);
    return outcome === "gone" ? "This can no longer be tried again. Please ask once more." : undefined;
  });

  onPress(confirmAction, async ({ key, by, responseUrl }) => {
    if (responseUrl !== undefined) saveReplaceUrl(key, responseUrl);
    const outcome = await receiver.confirm(key, by);
    if (outcome === "gone") return "This can no longer be confirmed. Please ask once more.";
    return outcome === "refused" ? "Only the person who asked can confirm this." : undefined;
  });
}
