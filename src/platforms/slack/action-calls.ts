import type { Actor } from "../../core/access.ts";
import type { Clock } from "../../core/clock.ts";
import type { CommandCall } from "../../core/events.ts";
import type { ActionCall } from "../../core/reply-actions.ts";
import { steadyClock } from "../../support/steady-clock.ts";
import { isDirectMessages, placesAround, toConversationId, toReplyAddress } from "./address.ts";

/** Where a button below an answer was pressed, or its form submitted. */
export interface ActionPlace {
  /** Dedupe key of what follows from it. */
  readonly key: string;
  readonly by: Actor;
  /** Slack's id of the person. */
  readonly user: string;
  readonly channel: string;
  readonly thread: string | undefined;
  readonly responseUrl: string | undefined;
  /** Only this person sees the answer. */
  readonly isPrivate: boolean;
}

/** What a button asks for as a call of its own. Its reply is posted where the answer is, below it. */
export function toCommandCall(
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
      // Messages are searched from here on: too early is only slower.
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
