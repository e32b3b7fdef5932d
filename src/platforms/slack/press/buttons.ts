import type { SlackActionMiddlewareArgs, SlackViewMiddlewareArgs, ViewSubmitAction } from "@slack/bolt";
import type { Actor } from "../../../core/access.ts";
import { goneNotice, acceptingNotice } from "../../../core/error-messages.ts";
import type { CommandCall } from "../../../core/events.ts";
import { changedTurnOf, type ActionCall, type Press, type PressResult } from "../../../core/press.ts";
import { isRating } from "../../../core/storage.ts";
import { translate } from "../../../words/translate.ts";
import { toCallKey, toConversationId } from "../address.ts";
import { toCommandCall } from "../intake/commands.ts";
import { parsePress } from "../reply/message-blocks.ts";
import type { TeamHandlers } from "../listeners.ts";
import { formCallback, readFormModal, toFormModal, parseMetadata } from "./form-modal.ts";
import { toCallerText, type GivenFiles, type ToldInMarkdown } from "./notices.ts";

/** Who pressed a button, and where it is. */
interface Presser {
  readonly by: Actor;
  /** This is Slack's id of the person. */
  readonly user: string;
  readonly channel: string;
  readonly thread: string | undefined;
  readonly responseUrl: string | undefined;
  /** Only this person sees the message with the button. */
  readonly isPrivate: boolean;
}

/** The modal of a form keeps this until it is submitted, as at most 3,000 characters of JSON. */
interface FormMemory extends Omit<Presser, "by" | "user"> {
  readonly action: Pick<Press, "kind" | "key">;
}

/** What is shown to the person who pressed. */
type Told = { readonly text: string } | ToldInMarkdown | GivenFiles;

/** Slack sends this when a button is pressed, or an option of a select is chosen. */
interface PressedBody {
  readonly user: { readonly id: string; readonly team_id?: string };
  readonly response_url?: string;
  readonly channel?: { readonly id: string };
  readonly trigger_id?: string;
  readonly container?: { readonly thread_ts?: string; readonly is_ephemeral?: boolean };
  readonly message?: { readonly thread_ts?: string };
}

interface PressedElement {
  readonly action_id: string;
  readonly value?: string;
  readonly selected_option?: { readonly value: string };
}

/**
 * Takes the press of a button or select of a reply or of the Home tab. Slack delivers it once, so failures
 * are shown to the person.
 */
export async function onPress(
  { action, body, ack }: SlackActionMiddlewareArgs,
  handlers: TeamHandlers,
): Promise<void> {
  const { teamId, origins, notices } = handlers;
  const pressed = body as unknown as PressedBody;
  const { user, response_url: responseUrl, container, message } = pressed;
  const { action_id: actionId, value, selected_option: chosen } = action as unknown as PressedElement;
  const channel = pressed.channel?.id ?? "";
  // What is shown to the person in a thread goes into that thread, where they look.
  const thread = container?.thread_ts ?? message?.thread_ts;
  const place = { user: user.id, channel, thread, responseUrl };
  let told: Told | undefined;
  try {
    const by = await origins.actorOf({ user: user.id, channel, team: user.team_id });
    const presser = { ...place, by, isPrivate: container?.is_ephemeral === true };
    const press = parsePress(actionId, value ?? chosen?.value ?? "");
    // An answer of another workspace is not rated here, whatever the button says.
    const isForeign =
      press !== undefined && isRating(press.kind) && !press.key.startsWith(`slack:${teamId}:`);
    if (press === undefined || isForeign) told = { text: goneNotice() };
    else told = await handle(press, pressed.trigger_id ?? "", presser, handlers);
  } catch (error) {
    notices.logFailure(error, actionId);
    told = { text: toCallerText(error) };
  }
  await ack();
  if (told !== undefined) await tell(told, place, handlers);
}

async function tell(
  told: Told,
  place: Omit<Presser, "by" | "isPrivate">,
  { notices, home }: TeamHandlers,
): Promise<void> {
  const { user, thread, responseUrl } = place;
  if (!("text" in told))
    return await (told.kind === "files"
      ? notices.giveFiles(place, told)
      : notices.sendMarkdown(responseUrl, told, thread));
  // In the Home tab there is no response_url.
  if (responseUrl === undefined) await home.show(user, told.text);
  else await notices.send(responseUrl, told.text, thread);
}

/** Takes a form that a button has opened. Its failures are shown at its first field. */
export async function onForm(
  { body, view, ack }: SlackViewMiddlewareArgs<ViewSubmitAction>,
  handlers: TeamHandlers,
): Promise<void> {
  const { teamId, origins, calls, notices, home } = handlers;
  const values = readFormModal(view.state.values);
  const [first = ""] = Object.keys(values);
  const refuse = (text: string) => ack({ response_action: "errors", errors: { [first]: text } });
  try {
    const { action, ...place } = parseMetadata(view.private_metadata) as FormMemory;
    const { id: user, team_id: team } = body.user;
    const by = await origins.actorOf({ user, channel: place.channel, team });
    const presser = { ...place, by, user };
    const result = await take({ ...action, values }, presser, handlers);
    switch (result.kind) {
      case "problems":
        return await ack({ response_action: "errors", errors: { ...result.problems } });
      case "gone":
        return await refuse(goneNotice());
      case "call": {
        const call = toCall(toCallKey(teamId, "view", view.id), result.call, presser, handlers);
        return (await calls.takeForm(call)) === "slow"
          ? await refuse(translate("notice.form-not-accepted"))
          : await ack();
      }
      case "told":
        await ack();
        await notices.sendMarkdown(place.responseUrl, result, place.thread);
        return action.kind === "settings" ? await home.show(user) : undefined;
      case "files":
      case "form":
      case "done":
        return await ack();
    }
  } catch (error) {
    notices.logFailure(error, formCallback);
    await refuse(toCallerText(error));
  }
}

async function take(
  press: Press,
  { by, responseUrl, isPrivate }: Presser,
  { receiver, replaceUrls }: TeamHandlers,
): Promise<PressResult> {
  const turnKey = changedTurnOf(press);
  if (turnKey !== undefined && responseUrl !== undefined) replaceUrls.set(turnKey, responseUrl);
  return await receiver.press({ ...press, isPrivate }, by);
}

/** Takes the press of a button. Returns what is told, opens a form, or starts what the button asks for. */
async function handle(
  press: Press,
  triggerId: string,
  presser: Presser,
  handlers: TeamHandlers,
): Promise<Told | undefined> {
  const { teamId, api, calls, notices } = handlers;
  const { channel, thread, responseUrl, isPrivate } = presser;
  const { kind, key } = press;
  const result = await take(press, presser, handlers);
  switch (result.kind) {
    case "told":
    case "files":
      return result;
    case "gone":
      return { text: goneNotice(kind) };
    case "problems":
      return { text: Object.values(result.problems).join("\n") };
    case "form": {
      const memory: FormMemory = { action: { kind, key }, channel, thread, responseUrl, isPrivate };
      await api.openModal(triggerId, toFormModal(result.form, memory));
      return undefined;
    }
    case "call": {
      const call = toCall(toCallKey(teamId, "press", triggerId), result.call, presser, handlers);
      const outcome = await calls.take(call, (text) => notices.send(responseUrl, text, thread));
      return outcome === "slow" ? { text: acceptingNotice() } : undefined;
    }
    case "done":
      return undefined;
  }
}

/** Returns what a button asks for as a call of its own. Its reply is posted below the answer. */
function toCall(
  key: string,
  { name, options, pictures, conversationId }: ActionCall,
  { by: { author, origin }, user, channel, thread, responseUrl, isPrivate }: Presser,
  { teamId, clock }: TeamHandlers,
): CommandCall {
  return toCommandCall(teamId, clock, {
    key,
    name,
    options,
    author,
    ...(origin === undefined ? {} : { origin }),
    ...(pictures === undefined ? {} : { pictures }),
    conversationId: conversationId ?? toConversationId(teamId, channel, key),
    inConversation: conversationId !== undefined,
    isPrivate,
    place: { user, channel, thread, privateThread: isPrivate ? thread : undefined, responseUrl },
  });
}
