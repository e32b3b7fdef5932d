import type { App, Context } from "@slack/bolt";
import type { Actor } from "../../../core/access.ts";
import type { Clock } from "../../../core/clock.ts";
import { goneNotice, formNotAcceptedNotice, acceptingNotice } from "../../../core/error-messages.ts";
import type { CommandCall } from "../../../core/events.ts";
import type { Receiver } from "../../../core/platform.ts";
import { changedTurnOf, type ActionCall, type Press, type PressResult } from "../../../core/press.ts";
import { steadyClock } from "../../../support/clock.ts";
import { toCallKey, isDirectMessages, placesAround, toConversationId, toReplyAddress } from "../address.ts";
import type { CallIntake } from "../intake/commands.ts";
import { toCallerText, type CallerNotices, type GivenFiles, type ToldInMarkdown } from "./notices.ts";
import { readFormModal, toFormModal } from "./form-modal.ts";
import {
  feedbackAction,
  parseFeedback,
  answerActions,
  confirmAction,
  parseActionId,
  retryAction,
} from "../reply/message-blocks.ts";
import type { Origins } from "../people.ts";
import type { SlackApi } from "../transport/web-api.ts";

export interface ButtonHandlers {
  readonly teamId: string;
  readonly clock: Clock;
  readonly api: Pick<SlackApi, "openModal">;
  readonly origins: Pick<Origins, "actorOf">;
  readonly receiver: Pick<Receiver, "press">;
  readonly intake: CallIntake;
  readonly notices: CallerNotices;
  /** A turn that runs again may replace the message that has the button through this URL. */
  readonly saveReplaceUrl: (key: string, responseUrl: string) => void;
}

/** This is a press, and where the button was. */
interface PressHere {
  readonly actionId: string;
  /** The key is the button's value. */
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
type Told = { readonly text: string } | ToldInMarkdown | GivenFiles;

/** The payload of a pressed button says where the button is. */
interface PressedBody {
  readonly response_url?: string;
  readonly channel?: { readonly id: string };
  readonly trigger_id?: string;
  readonly container?: { readonly thread_ts?: string; readonly is_ephemeral?: boolean };
  readonly message?: { readonly thread_ts?: string };
}

/** Registers the buttons of replies. Slack delivers a press once, so failures are shown to the person. */
export function registerButtons(app: App, of: (context: Context) => ButtonHandlers): void {
  function onPress(
    which: string | RegExp,
    run: (press: PressHere, handlers: ButtonHandlers) => Promise<Told | undefined>,
  ): void {
    app.action(which, async ({ action, body, context, ack }) => {
      const handlers = of(context);
      const { origins, notices } = handlers;
      const pressed = body as unknown as PressedBody;
      const { response_url: responseUrl, container, message } = pressed;
      // What is shown to the person in a thread goes into that thread, where they look.
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
        told = await run({ ...place, actionId, key, by, triggerId: pressed.trigger_id ?? "" }, handlers);
      } catch (error) {
        notices.logFailure(error, actionId);
        told = { text: toCallerText(error) };
      }
      await ack();
      if (told === undefined) return;
      if ("text" in told) await notices.send(responseUrl, told.text, thread);
      else if (told.kind === "files")
        await notices.giveFiles(
          { user: body.user.id, channel: pressed.channel?.id ?? "", thread, responseUrl },
          told,
        );
      else await notices.sendMarkdown(responseUrl, told, thread);
    });
  }

  onPress(retryAction, (here, handlers) => runPress({ kind: "retry", key: here.key }, here, handlers));
  onPress(confirmAction, (here, handlers) => runPress({ kind: "confirm", key: here.key }, here, handlers));
  onPress(answerActions, async (here, handlers) => {
    const kind = parseActionId(here.actionId);
    return kind === undefined
      ? { text: goneNotice() }
      : await runPress({ kind, key: here.key }, here, handlers);
  });

  async function runPress(
    press: Press,
    here: PressHere,
    handlers: ButtonHandlers,
  ): Promise<Told | undefined> {
    const { receiver, saveReplaceUrl } = handlers;
    const { by, isPrivate, responseUrl } = here;
    const turnKey = changedTurnOf(press);
    if (turnKey !== undefined && responseUrl !== undefined) saveReplaceUrl(turnKey, responseUrl);
    return await show(await receiver.press({ ...press, isPrivate }, by), press, here, handlers);
  }

  /** Shows the result of a button below an answer, or starts what it asks for. */
  async function show(
    result: PressResult,
    { kind, key: pressedKey }: Press,
    here: PressHere,
    { teamId, clock, api, intake, notices }: ButtonHandlers,
  ): Promise<Told | undefined> {
    switch (result.kind) {
      case "told":
      case "files":
        return result;
      case "gone":
        return { text: goneNotice(kind) };
      case "problems":
        return { text: Object.values(result.problems).join("\n") };
      case "form": {
        const { channel, thread, responseUrl, isPrivate } = here;
        const memory: ActionFormMemory = {
          action: { kind, key: pressedKey },
          channel,
          thread,
          responseUrl,
          isPrivate,
        };
        await api.openModal(here.triggerId, toFormModal(result.form, memory, actionFormCallback));
        return undefined;
      }
      case "call": {
        const key = toCallKey(teamId, "press", here.triggerId);
        const say = (text: string) => notices.send(here.responseUrl, text, here.thread);
        const outcome = await intake.take(toCommandCall(teamId, result.call, { ...here, key }, clock), say);
        return outcome === "slow" ? { text: acceptingNotice() } : undefined;
      }
      case "done":
        return undefined;
    }
  }
}

/** The button below an answer was pressed here, or its form submitted. */
interface ActionPlace {
  /** What follows from the press has this dedupe key. */
  readonly key: string;
  readonly by: Actor;
  /** This is Slack's id of the person. */
  readonly user: string;
  readonly channel: string;
  readonly thread: string | undefined;
  readonly responseUrl: string | undefined;
  /** Only this person sees the answer. */
  readonly isPrivate: boolean;
}

/** Returns what a button asks for as a call of its own. Its reply is posted below the answer. */
function toCommandCall(
  teamId: string,
  { name, options, pictures, conversationId }: ActionCall,
  { key, by, user, channel, thread, responseUrl, isPrivate }: ActionPlace,
  clock: Clock,
): CommandCall {
  return {
    kind: "call",
    key,
    platform: "slack",
    conversationId: conversationId ?? toConversationId(teamId, channel, key),
    author: by.author,
    sentAt: clock.now(),
    ...placesAround(teamId, channel),
    ...(by.origin === undefined ? {} : { origin: by.origin }),
    address: toReplyAddress({
      key,
      channel,
      user,
      ...(thread === undefined ? {} : { thread, ...(isPrivate ? { privateThread: thread } : {}) }),
      ...(responseUrl === undefined ? {} : { responseUrl }),
      isPrivate,
      isAnnounced: false,
      // Messages are searched from this time on. A time that is too early only makes the search slower.
      since: Math.min(clock.now(), steadyClock.earliest()),
    }),
    name,
    options,
    ...(pictures === undefined ? {} : { pictures }),
    inConversation: conversationId !== undefined,
    isPrivate,
    ...(isPrivate || isDirectMessages(channel) ? {} : { isCallerHidden: true }),
  };
}

/** The modal that a button below an answer opens has this `callback_id`. */
const actionFormCallback = "parley_action_form";

/** The modal keeps this until it is submitted, as at most 3,000 characters of JSON. */
interface ActionFormMemory {
  readonly action: Pick<Press, "kind" | "key">;
  readonly channel: string;
  readonly thread: string | undefined;
  readonly responseUrl: string | undefined;
  readonly isPrivate: boolean;
}

/** Registers the forms of buttons below answers. An error is shown at its field in the open modal. */
export function registerActionForms(app: App, of: (context: Context) => ButtonHandlers): void {
  app.view(actionFormCallback, async ({ body, view, context, ack }) => {
    const { teamId, clock, origins, receiver, intake, notices, saveReplaceUrl } = of(context);
    const memory = JSON.parse(view.private_metadata) as ActionFormMemory;
    const { action, channel, thread, responseUrl, isPrivate } = memory;
    const values = readFormModal(view.state.values);
    const [first = ""] = Object.keys(values);
    const refuse = (text: string) => ack({ response_action: "errors", errors: { [first]: text } });
    try {
      const { id: user } = body.user;
      const by = await origins.actorOf({ user, channel, team: body.user.team_id });
      const press: Press = { ...action, values, isPrivate };
      const turnKey = changedTurnOf(press);
      if (turnKey !== undefined && responseUrl !== undefined) saveReplaceUrl(turnKey, responseUrl);
      const result = await receiver.press(press, by);
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
          return await notices.sendMarkdown(responseUrl, result, thread);
        case "files":
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

export interface FeedbackHandlers {
  readonly teamId: string;
  readonly origins: Pick<Origins, "actorOf">;
  readonly receiver: Pick<Receiver, "press">;
  readonly notices: CallerNotices;
}

/** Slack sends this when a feedback button is pressed. */
interface Pressed {
  readonly user: { readonly id: string; readonly team_id?: string };
  readonly channel?: { readonly id: string };
  readonly response_url?: string;
  readonly container?: { readonly thread_ts?: string };
  readonly message?: { readonly thread_ts?: string };
}

/** Registers the feedback buttons below answers. The person is shown what came of a press. */
export function registerFeedback(app: App, of: (context: Context) => FeedbackHandlers): void {
  app.action(feedbackAction, async ({ action, body, context, ack }) => {
    const { teamId, origins, receiver, notices } = of(context);
    const { user, channel, response_url: responseUrl, container, message } = body as unknown as Pressed;
    const thread = container?.thread_ts ?? message?.thread_ts;
    const { value = "" } = action as { readonly value?: string };
    let told: string;
    try {
      const by = await origins.actorOf({ user: user.id, channel: channel?.id ?? "", team: user.team_id });
      const press = parseFeedback(value);
      const isOwn = press?.key.startsWith(`slack:${teamId}:`) === true;
      const result: PressResult = isOwn ? await receiver.press(press, by) : { kind: "gone" };
      told = result.kind === "told" ? result.markdown : goneNotice();
    } catch (error) {
      notices.logFailure(error, feedbackAction);
      told = toCallerText(error);
    }
    await ack();
    await notices.send(responseUrl, told, thread);
  });
}
