import type { App } from "@slack/bolt";
import type { Receiver } from "../../core/platform.ts";
import { toAuthorId } from "./address.ts";
import { toCallerText, type CallerNotices } from "./caller-notices.ts";
import { confirmAction, retryAction } from "./message-blocks.ts";

/** What {@link registerButtons} needs. */
export interface ButtonOptions {
  readonly teamId: string;
  readonly receiver: Pick<Receiver, "retry" | "confirm">;
  readonly notices: CallerNotices;
  /** Called before a confirmed call runs: its reply can replace the button's message through this URL. */
  readonly saveReplaceUrl: (key: string, responseUrl: string) => void;
}

/** One press of a button. */
interface Press {
  /** The button's value. */
  readonly key: string;
  readonly user: string;
  readonly responseUrl: string | undefined;
}

/** Registers the Retry and confirm buttons. Slack delivers a press once, so failures are shown to the person. */
export function registerButtons(app: App, options: ButtonOptions): void {
  const { teamId, receiver, notices, saveReplaceUrl } = options;

  /** `run` returns a notice for the person, if there is something to say. */
  function onPress(actionId: string, run: (press: Press) => Promise<string | undefined>): void {
    app.action(actionId, async ({ action, body, ack }) => {
      const key = action.type === "button" ? (action.value ?? "") : "";
      const responseUrl = "response_url" in body ? body.response_url : undefined;
      let notice: string | undefined;
      try {
        notice = await run({ key, user: body.user.id, responseUrl });
      } catch (error) {
        notices.logFailure(error, actionId);
        notice = toCallerText(error);
      }
      await ack();
      if (notice !== undefined) await notices.send(responseUrl, notice);
    });
  }

  onPress(retryAction, async ({ key }) => {
    const outcome = await receiver.retry(key);
    return outcome === "gone" ? "This can no longer be tried again. Please ask once more." : undefined;
  });

  onPress(confirmAction, async ({ key, user, responseUrl }) => {
    if (responseUrl !== undefined) saveReplaceUrl(key, responseUrl);
    const outcome = await receiver.confirm(key, toAuthorId(teamId, user));
    if (outcome === "gone") return "This can no longer be confirmed. Please ask once more.";
    return outcome === "refused" ? "Only the person who asked can confirm this." : undefined;
  });
}
