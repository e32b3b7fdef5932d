import type { App } from "@slack/bolt";
import type { Actor } from "../../core/access.ts";
import type { Receiver } from "../../core/platform.ts";
import { goneWords } from "../../core/reply-actions.ts";
import { toCallerText, type CallerNotices } from "./caller-notices.ts";
import { answerActions, confirmAction, parseActionId, retryAction } from "./message-blocks.ts";
import type { Origins } from "./origin.ts";

/** What {@link registerButtons} needs. */
export interface ButtonOptions {
  readonly origins: Pick<Origins, "actorOf">;
  readonly receiver: Pick<Receiver, "retry" | "confirm" | "act">;
  readonly notices: CallerNotices;
  /** Called before a confirmed call runs: its reply can replace the button's message through this URL. */
  readonly saveReplaceUrl: (key: string, responseUrl: string) => void;
}

/** One press of a button. */
interface Press {
  readonly actionId: string;
  /** The button's value. */
  readonly key: string;
  readonly by: Actor;
  readonly responseUrl: string | undefined;
}

/** What is shown to the person who pressed. */
type Told = { readonly text: string } | { readonly markdown: string };

/** What the payload of a pressed button says about where it is. */
interface PressedBody {
  readonly response_url?: string;
  readonly channel?: { readonly id: string };
  readonly container?: { readonly thread_ts?: string };
  readonly message?: { readonly thread_ts?: string };
}

/** Registers the buttons of replies. Slack delivers a press once, so failures are shown to the person. */
export function registerButtons(app: App, options: ButtonOptions): void {
  const { origins, receiver, notices, saveReplaceUrl } = options;

  function onPress(which: string | RegExp, run: (press: Press) => Promise<Told | undefined>): void {
    app.action(which, async ({ action, body, ack }) => {
      const { response_url: responseUrl, channel, container, message } = body as unknown as PressedBody;
      const actionId = "action_id" in action ? action.action_id : "";
      const key = action.type === "button" ? (action.value ?? "") : "";
      let told: Told | undefined;
      try {
        const by = await origins.actorOf({
          user: body.user.id,
          channel: channel?.id ?? "",
          team: body.user.team_id,
        });
        told = await run({ actionId, key, by, responseUrl });
      } catch (error) {
        notices.logFailure(error, actionId);
        told = { text: toCallerText(error) };
      }
      await ack();
      // In a thread, what is shown to the person goes where they look.
      const thread = container?.thread_ts ?? message?.thread_ts;
      if (told === undefined) return;
      if ("text" in told) await notices.send(responseUrl, told.text, thread);
      else await notices.sendMarkdown(responseUrl, told.markdown, thread);
    });
  }

  onPress(retryAction, async ({ key, by }) => {
    const outcome = await receiver.retry(key, by);
    return outcome === "gone"
      ? { text: "This can no longer be tried again. Please ask once more." }
      : undefined;
  });

  onPress(confirmAction, async ({ key, by, responseUrl }) => {
    if (responseUrl !== undefined) saveReplaceUrl(key, responseUrl);
    const outcome = await receiver.confirm(key, by);
    if (outcome === "gone") return { text: "This can no longer be confirmed. Please ask once more." };
    return outcome === "refused" ? { text: "Only the person who asked can confirm this." } : undefined;
  });

  onPress(answerActions, async ({ actionId, key, by }) => {
    const kind = parseActionId(actionId);
    const result = kind === undefined ? undefined : await receiver.act({ kind, key }, by);
    return result?.kind === "told" ? { markdown: result.markdown } : { text: goneWords };
  });
}
