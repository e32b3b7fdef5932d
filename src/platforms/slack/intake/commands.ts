import type {
  MessageShortcut,
  SlackCommandMiddlewareArgs,
  SlackShortcutMiddlewareArgs,
  SlackViewMiddlewareArgs,
  ViewSubmitAction,
} from "@slack/bolt";
import type { Clock } from "../../../core/clock.ts";
import { resolveInput, collectOptions, missingOptions, parseOptions } from "../../../core/command-input.ts";
import type { Command } from "../../../core/command.ts";
import { acceptingNotice, toNotice } from "../../../core/error-messages.ts";
import { ParleyError, isParleyError } from "../../../core/errors.ts";
import type { CommandCall, RawOption } from "../../../core/events.ts";
import type { ConversationHistory, Receiver } from "../../../core/receiver.ts";
import type { Log } from "../../../core/telemetry.ts";
import { inTime, systemClock } from "../../../support/clock.ts";
import { currentLocale, translate } from "../../../words/translate.ts";
import { createNotAcceptedLog, receivePatiently } from "../../delivery/receive-patiently.ts";
import {
  isDirectMessages,
  placesAround,
  toAuthorId,
  toConversationId,
  toReplyAddress,
  type SlackAddress,
  type SlackMessageInfo,
  toCallKey,
} from "../address.ts";
import { inLookupTime } from "../errors.ts";
import { type ModalMemory, commandOfModal, parseModal, toModal } from "./modal.ts";
import { parseMetadata } from "../press/form-modal.ts";
import { toCallerText, toEphemeral, type CallerNotices } from "../press/notices.ts";
import type { TeamHandlers } from "../listeners.ts";
import type { Origins, Names } from "../people.ts";
import { toPlainText, type MessageReader } from "./read-message.ts";
import type { Identity } from "../transport/call.ts";
import type { SlackApi } from "../transport/web-api.ts";
import { createRecent } from "../../../support/recent.ts";

/** The `callback_id` of a message shortcut in the manifest is this prefix and the command's name. */
export const shortcutPrefix = "parley_shortcut:";

/**
 * Takes a slash command. Slack delivers it once, as it does message shortcuts and modals: each is
 * acknowledged when it is durable, and otherwise the caller is shown why it was not accepted.
 */
export async function onCommand(
  command: Command,
  { body, ack }: SlackCommandMiddlewareArgs,
  { teamId, api, calls, notices, receiver }: TeamHandlers,
): Promise<void> {
  const memory = { channel: body.channel_id, responseUrl: body.response_url };
  try {
    const given = collectOptions(command, { text: await calls.toCommandText(body.text) });
    if (missingOptions(command, given).length > 0) {
      const opened = api.openModal(body.trigger_id, toModal(command, memory, { initial: given, receiver }));
      // A form that opens later needs no acknowledgement.
      const late = inLookupTime(opened.then(() => "opened"));
      if ((await late) === undefined)
        opened.catch((error: unknown) => tell(notices, error, `/${command.name}`, memory.responseUrl));
      return await ack();
    }
    const key = toCallKey(teamId, "cmd", body.trigger_id);
    const { user_id: user, team_id: team } = body;
    const call = await calls.toCall({ command, key, options: given, user, team, memory, isAnnounced: true });
    const result = await calls.take(call, (text) => notices.send(memory.responseUrl, text));
    if (result === "slow") await ack(toEphemeral(acceptingNotice()));
    else if (call.isPrivate)
      await ack(toEphemeral(translate("delivery.status", { status: translate("delivery.working") })));
    else await ack();
  } catch (error) {
    notices.logFailure(error, `/${command.name}`);
    await ack(toEphemeral(toCallerText(error)));
  }
}

/** Takes a command that is used on a message. */
export async function onShortcut(
  commands: ReadonlyMap<string, Command>,
  { shortcut, ack }: SlackShortcutMiddlewareArgs,
  handlers: TeamHandlers,
): Promise<void> {
  await ack();
  if (shortcut.type !== "message_action") return;
  const command = commands.get(shortcut.callback_id.slice(shortcutPrefix.length));
  if (command === undefined) return;
  try {
    await runShortcut(command, shortcut, handlers);
  } catch (error) {
    const { callback_id: callbackId, response_url: responseUrl, message } = shortcut;
    await tell(handlers.notices, error, callbackId, responseUrl, threadOf(message));
  }
}

/** Takes the modal of a command. */
export async function onModal(
  commands: ReadonlyMap<string, Command>,
  { body, view, ack }: SlackViewMiddlewareArgs<ViewSubmitAction>,
  { teamId, calls, notices }: TeamHandlers,
): Promise<void> {
  const command = commands.get(commandOfModal(view.callback_id) ?? "");
  if (command === undefined) return await ack();
  const refuse = (field: string, words: string): Promise<void> =>
    ack({ response_action: "errors", errors: { [field]: words } });
  const fields = Object.keys(view.state.values);
  try {
    const key = toCallKey(teamId, "view", view.id);
    const memory = parseMetadata(view.private_metadata) as ModalMemory;
    const options = parseModal(view.state.values, teamId);
    const { id: user, team_id: team } = body.user;
    const call = await calls.toCall({ command, key, options, user, team, memory, isAnnounced: false });
    if ((await calls.takeForm(call)) === "slow")
      await refuse(fields[0] ?? "", translate("notice.form-not-accepted"));
    else await ack();
  } catch (error) {
    notices.logFailure(error, view.callback_id);
    await refuse(fieldOfError(error, fields), toNotice(error));
  }
}

/** Tells the caller something after the acknowledgement. */
async function tell(
  notices: CallerNotices,
  error: unknown,
  source: string,
  responseUrl?: string,
  thread?: string,
): Promise<void> {
  notices.logFailure(error, source);
  await notices.send(responseUrl, toCallerText(error), thread);
}

async function runShortcut(
  command: Command,
  shortcut: MessageShortcut,
  { teamId, api, calls, notices, receiver }: TeamHandlers,
): Promise<void> {
  const { ts } = shortcut.message;
  const thread = threadOf(shortcut.message);
  const memory = {
    channel: shortcut.channel.id,
    responseUrl: shortcut.response_url,
    subject: { ts, ...(thread === undefined ? {} : { thread }) },
  };
  const subject = await calls.toSubject(shortcut.message, memory.channel);
  if ((command.messageCommand?.asks ?? []).length > 0) {
    checkFilledOptions(command, subject);
    return await api.openModal(shortcut.trigger_id, toModal(command, memory, { receiver }));
  }
  const key = toCallKey(teamId, "shortcut", shortcut.trigger_id);
  const { id: user, team_id: team } = shortcut.user;
  const use = { command, key, options: {}, user, team, memory, subject, isAnnounced: false };
  const call = await calls.toCall(use);
  const say = (text: string) => notices.send(memory.responseUrl, text, thread);
  if ((await calls.take(call, say)) === "slow") await say(acceptingNotice());
}

/**
 * Checks the options that the message fills before the modal asks for the rest, since an error in them has no
 * field there.
 * @throws ParleyError `invalid-option`
 */
function checkFilledOptions(command: Command, subject: NonNullable<CommandCall["subject"]>): void {
  const filled = collectOptions(command, { subject });
  const options = Object.entries(command.options).filter(([name]) => filled[name] !== undefined);
  parseOptions({ ...command, options: Object.fromEntries(options) }, filled);
}

/** Returns the modal field that shows the error: the field of the wrong option, otherwise the first one. */
function fieldOfError(error: unknown, fields: readonly string[]): string {
  const option = isParleyError(error) ? error.detail["option"] : undefined;
  return fields.find((field) => field === option) ?? fields[0] ?? "";
}

function threadOf(message: MessageShortcut["message"]): string | undefined {
  const thread: unknown = message["thread_ts"];
  return typeof thread === "string" ? thread : undefined;
}

type Subject = NonNullable<CommandCall["subject"]>;

/** This is one use of a slash command, message shortcut or modal. */
interface CommandUse {
  readonly command: Command;
  readonly key: string;
  /** The person gave these options, and nothing has checked them. */
  readonly options: Readonly<Record<string, RawOption>>;
  readonly user: string;
  readonly team: string | undefined;
  readonly memory: ModalMemory;
  /** A shortcut was used on this message. By default it is fetched by {@link ModalMemory.subject}. */
  readonly subject?: Subject;
  /** The acknowledgement itself says that the reply is in progress. */
  readonly isAnnounced: boolean;
}

interface CommandCallOptions {
  readonly api: Pick<SlackApi, "message">;
  readonly identity: Identity;
  readonly names: Names;
  readonly origins: Pick<Origins, "originOf">;
  readonly read: MessageReader;
  readonly receiver: Pick<Receiver, "receive">;
  readonly history: Pick<ConversationHistory, "knows">;
  readonly clock: Clock;
  readonly log: Log;
}

/** These functions convert Slack's payloads to {@link CommandCall}s, and pass them to the receiver. */
export type CommandCalls = ReturnType<typeof createCommandCalls>;

const maxUsed = 100;

/** A person whose call has taken so long is told that it is not accepted yet. */
const slowAfterMs = 1800;
/** A call is tried for so long. The notice to the person says two minutes. */
const acceptForMs = 100_000;

/** Returns what converts and takes the commands of one workspace. */
export function createCommandCalls(options: CommandCallOptions) {
  const { api, identity, names, origins, read, receiver, history, clock, log } = options;
  const logNotAccepted = createNotAcceptedLog(log, clock);
  const { teamId } = identity;
  /** Forms were opened on these messages, by channel and `ts`. */
  const used = createRecent<SlackMessageInfo>(maxUsed);

  async function toSubject(message: SlackMessageInfo): Promise<Subject> {
    const user = message.user ?? "";
    const author = { id: toAuthorId(teamId, user), name: await names.nameOf(user) };
    return { author, ...(await read(message)) };
  }

  async function fetchSubject({ channel, subject }: ModalMemory): Promise<Subject | undefined> {
    if (subject === undefined) return undefined;
    const lookup = api.message(channel, subject.thread, subject.ts).then((message) => ({ message }));
    const found = await inLookupTime(lookup);
    // The lookup took longer than Slack's form waits. The process that opened the form knows what it was
    // opened with.
    const message = found === undefined ? used.get(`${channel} ${subject.ts}`) : found.message;
    if (message !== undefined) return await toSubject(message);
    if (found === undefined)
      throw new ParleyError("platform-unreachable", "Slack conversations.replies: no response in time");
    throw new ParleyError("attachment-gone", "the message was deleted", {
      detail: { what: translate("platform.the-message") },
    });
  }

  /** `slow` where the store does not respond in time, or cannot be reached. */
  async function acceptedSoon(receiving: Promise<unknown>): Promise<"accepted" | "slow"> {
    const accepted = receiving.then(() => "accepted" as const);
    try {
      return (await inTime(accepted, slowAfterMs, { clock })) ?? "slow";
    } catch (error) {
      if (isParleyError(error, "store-unavailable")) return "slow";
      throw error;
    }
  }

  return {
    /** Notes the message that a command is used on, because a form about it may follow. */
    toSubject(message: SlackMessageInfo, channel: string): Promise<Subject> {
      used.set(`${channel} ${message.ts}`, message);
      return toSubject(message);
    },
    /**
     * Converts one use to a call.
     * @throws ParleyError `invalid-option` for wrong input, `attachment-gone` where the subject was deleted
     */
    async toCall(use: CommandUse): Promise<CommandCall> {
      const { command, memory, user, team } = use;
      const subject = use.subject ?? (await fetchSubject(memory));
      const withSubject = subject === undefined ? {} : { subject };
      const resolved = resolveInput(command, { options: use.options, ...withSubject });
      const root = memory.subject?.thread ?? memory.subject?.ts;
      const conversationId = toConversationId(teamId, memory.channel, root ?? use.key);
      const { isPrivate } = resolved;
      return toCommandCall(teamId, clock, {
        key: use.key,
        name: command.name,
        options: resolved.options,
        author: { id: toAuthorId(teamId, user), name: await names.nameOf(user), ...currentLocale() },
        origin: await origins.originOf({ user, channel: memory.channel, team }),
        conversationId,
        // A message command does not start a conversation in a thread where the bot takes no part.
        inConversation: root !== undefined && (await history.knows(conversationId)),
        isPrivate,
        ...withSubject,
        place: {
          channel: memory.channel,
          user,
          thread: root,
          privateThread: isPrivate ? memory.subject?.thread : undefined,
          responseUrl: memory.responseUrl,
          isAnnounced: use.isAnnounced,
        },
      });
    },
    /** Returns the text behind a slash command as a person reads it. */
    async toCommandText(text: string): Promise<string> {
      return await toPlainText(text, {
        botUserId: "",
        nameOf: (id) => names.nameOf(id),
        channelNameOf: (id) => names.channelNameOf(id),
      });
    },
    /**
     * Resolves within two seconds. `slow`: the call is not accepted yet and a notice is to be shown. If it is
     * refused later, `say` gets the words.
     * @throws ParleyError where it is refused
     */
    async take(call: CommandCall, say: (text: string) => Promise<void>): Promise<"accepted" | "slow"> {
      const receiving = receivePatiently(() => receiver.receive(call), { forMs: acceptForMs, clock });
      let isSlow = false;
      receiving.catch((error: unknown) => {
        logNotAccepted("command", { key: call.key }, error);
        // The notice stays true where the store was not reached; what is refused at once is said by the
        // caller.
        return isSlow && !isParleyError(error, "store-unavailable") ? say(toNotice(error)) : undefined;
      });
      const result = await acceptedSoon(receiving);
      isSlow = result === "slow";
      return result;
    },
    /** Does the same for a form, for these seconds only, since a form can be submitted again. */
    takeForm: (call: CommandCall) => acceptedSoon(receiver.receive(call, { canResend: true })),
  };
}

/** What the call of a command or of a button says itself, and where its reply is shown. */
interface CallParts extends Omit<CommandCall, "kind" | "platform" | "sentAt" | "within" | "address"> {
  readonly isPrivate: boolean;
  readonly place: Omit<SlackAddress, "key" | "since" | "isPrivate">;
}

/** Returns the call with what all calls on Slack have in common. */
export function toCommandCall(teamId: string, clock: Clock, { place, ...call }: CallParts): CommandCall {
  const { key, isPrivate } = call;
  const { channel } = place;
  const sentAt = clock.now();
  // Messages are searched from this time on. A time that is too early only makes the search slower.
  const since = Math.min(sentAt, systemClock.now());
  return {
    kind: "call",
    platform: "slack",
    sentAt,
    ...placesAround(teamId, channel),
    ...call,
    ...(isPrivate || isDirectMessages(channel) ? {} : { isCallerHidden: true }),
    address: toReplyAddress({ ...place, key, isPrivate, since }),
  };
}
