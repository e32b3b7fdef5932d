import type { App, MessageShortcut } from "@slack/bolt";
import type { Command } from "../../core/command.ts";
import { collectOptions, missingOptions, resolveInput } from "../../core/command-input.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { CommandCall, RawOption } from "../../core/events.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Receiver } from "../../core/platform.ts";
import { toConversationId, toReplyAddress } from "./address.ts";
import type { Incoming } from "./incoming.ts";
import { escapeText } from "./markdown.ts";
import { confirmAction, retryAction } from "./message-blocks.ts";
import { commandOfModal, modalCallbacks, readMemory, readModal, toModal, type ModalMemory } from "./modal.ts";
import type { Names } from "./names.ts";
import { toPlainText } from "./plain-text.ts";
import type { Identity, SlackApi } from "./web-api.ts";

/** A message shortcut's `callback_id` in the manifest. */
export const shortcutPrefix = "parley_shortcut:";

export interface CommandOptions {
  readonly commands: ReadonlyMap<string, Command>;
  readonly commandPrefix: string;
  readonly api: SlackApi;
  readonly identity: Identity;
  readonly names: Names;
  readonly incoming: Incoming;
  readonly receiver: Receiver;
  readonly log: Log;
  /** The reply to `key` has had its button pressed, and is reached by this way as well. */
  readonly notePressed: (key: string, responseUrl: string) => void;
}

/** One use of a command, whichever way it came. */
interface Use {
  readonly command: Command;
  readonly key: string;
  readonly options: Readonly<Record<string, RawOption>>;
  readonly user: string;
  readonly memory: ModalMemory;
  /** Whether the acknowledgement itself tells the person that work goes on. */
  readonly isAnnounced: boolean;
}

/**
 * Slash commands, message shortcuts, their modals and the Retry button. Slack never delivers these twice, so each is
 * acknowledged when it is durable, and otherwise answered with what went wrong.
 */
export function registerCommands(app: App, options: CommandOptions): void {
  const { commands, commandPrefix, api, identity, names, incoming, receiver, log } = options;

  for (const command of commands.values()) {
    app.command(`/${commandPrefix}${command.name}`, async ({ body, ack }) => {
      const memory = { channel: body.channel_id, responseUrl: body.response_url };
      try {
        const given = collectOptions(command, { text: await readText(body.text) });
        if (missingOptions(command, given).length > 0) {
          await api.openModal(body.trigger_id, toModal(command, memory, given));
          return await ack();
        }
        const key = `slack:${identity.teamId}:cmd:${body.trigger_id}`;
        const use = { command, key, options: given, user: body.user_id, memory, isAnnounced: true };
        const call = await toCall(use);
        await receiver.receive(call);
        await ack(call.isPrivate ? { response_type: "ephemeral", text: "Working on it…" } : undefined);
      } catch (error) {
        note(error, `/${command.name}`);
        await ack({ response_type: "ephemeral", text: words(error) });
      }
    });
  }

  app.shortcut(new RegExp(`^${shortcutPrefix}`), async ({ shortcut, ack }) => {
    await ack();
    if (shortcut.type !== "message_action") return;
    const command = commands.get(shortcut.callback_id.slice(shortcutPrefix.length));
    if (command === undefined) return;
    try {
      await useOnMessage(command, shortcut);
    } catch (error) {
      note(error, shortcut.callback_id);
      await tell(shortcut.response_url, words(error));
    }
  });

  app.view(modalCallbacks, async ({ body, view, ack }) => {
    const command = commands.get(commandOfModal(view.callback_id) ?? "");
    if (command === undefined) return await ack();
    const memory = readMemory(view.private_metadata);
    try {
      const key = `slack:${identity.teamId}:view:${view.id}`;
      const given = readModal(view.state.values);
      const call = await toCall({
        command,
        key,
        options: given,
        user: body.user.id,
        memory,
        isAnnounced: false,
      });
      await receiver.receive(call);
      await ack();
    } catch (error) {
      note(error, view.callback_id);
      const named = isParleyError(error) ? error.detail["option"] : undefined;
      const option = typeof named === "string" && view.state.values[named] !== undefined ? named : undefined;
      const place = option ?? Object.keys(view.state.values)[0] ?? "";
      await ack({ response_action: "errors", errors: { [place]: toNotice(error) } });
    }
  });

  app.action(retryAction, async ({ action, body, ack }) => {
    const responseUrl = "response_url" in body ? body.response_url : undefined;
    try {
      const key = action.type === "button" ? (action.value ?? "") : "";
      const outcome = await receiver.retry(key);
      await ack();
      if (outcome === "gone")
        await tell(responseUrl, "This can no longer be tried again. Please ask once more.");
    } catch (error) {
      note(error, retryAction);
      await ack();
      await tell(responseUrl, words(error));
    }
  });

  app.action(confirmAction, async ({ action, body, ack }) => {
    const responseUrl = "response_url" in body ? body.response_url : undefined;
    try {
      const key = action.type === "button" ? (action.value ?? "") : "";
      const author = toAuthorId(body.user.id);
      // Before it runs: the reply is shown where the button stands.
      if (responseUrl !== undefined) options.notePressed(key, responseUrl);
      const outcome = await receiver.confirm(key, author);
      await ack();
      if (outcome === "gone")
        await tell(responseUrl, "This can no longer be confirmed. Please ask once more.");
      if (outcome === "refused") await tell(responseUrl, "Only the person who asked can confirm this.");
    } catch (error) {
      note(error, confirmAction);
      await ack();
      await tell(responseUrl, words(error));
    }
  });

  function toAuthorId(user: string): string {
    return `slack:${identity.teamId}:${user}`;
  }

  async function useOnMessage(command: Command, shortcut: MessageShortcut): Promise<void> {
    const { ts } = shortcut.message;
    const thread = readThread(shortcut.message);
    const memory = {
      channel: shortcut.channel.id,
      responseUrl: shortcut.response_url,
      subject: { ts, ...(thread === undefined ? {} : { thread }) },
    };
    if ((command.messageCommand?.asks ?? []).length > 0) {
      return await api.openModal(shortcut.trigger_id, toModal(command, memory));
    }
    const use = {
      command,
      key: `slack:${identity.teamId}:shortcut:${shortcut.trigger_id}`,
      options: {},
      user: shortcut.user.id,
      memory,
      isAnnounced: false,
    };
    await receiver.receive(await toCall(use, shortcut.message));
  }

  /** @throws ParleyError `invalid-option` before anything is accepted, so that the person is told at once */
  async function toCall(use: Use, message?: Parameters<Incoming["read"]>[0]): Promise<CommandCall> {
    const { command, memory, user } = use;
    const subject = await readSubject(memory, message);
    const resolved = resolveInput(command, {
      options: use.options,
      ...(subject === undefined ? {} : { subject }),
    });
    const root = memory.subject?.thread ?? memory.subject?.ts;
    const conversationId = toConversationId(identity.teamId, memory.channel, root ?? use.key);
    return {
      kind: "call",
      name: command.name,
      key: use.key,
      platform: "slack",
      conversationId,
      author: { id: toAuthorId(user), name: await names.nameOf(user) },
      sentAt: Date.now(),
      address: toReplyAddress({
        key: use.key,
        channel: memory.channel,
        user,
        ...(root === undefined ? {} : { thread: root }),
        ...(memory.responseUrl === undefined ? {} : { responseUrl: memory.responseUrl }),
        isPrivate: resolved.isPrivate,
        isAnnounced: use.isAnnounced,
        since: Date.now(),
      }),
      options: resolved.options,
      // A command used on a message of a thread that nobody talks with the bot in does not begin a conversation there.
      inConversation: root !== undefined && (await receiver.knows(conversationId)),
      isPrivate: resolved.isPrivate,
      ...(subject === undefined ? {} : { subject }),
    };
  }

  async function readSubject(
    { channel, subject }: ModalMemory,
    message: Parameters<Incoming["read"]>[0] | undefined,
  ): Promise<CommandCall["subject"]> {
    if (subject === undefined) return undefined;
    const found = message ?? (await api.message(channel, subject.thread, subject.ts));
    if (found === undefined) {
      throw new ParleyError("attachment-gone", "the message is gone", { detail: { name: "The message" } });
    }
    const user = found.user ?? "";
    return {
      author: { id: toAuthorId(user), name: await names.nameOf(user) },
      ...(await incoming.read(found)),
    };
  }

  async function readText(text: string): Promise<string> {
    const plain = await toPlainText(text, { botUserId: "", nameOf: (id) => names.nameOf(id) });
    // Phones and Macs turn quotes into curly ones, which would end an option's value at its first space.
    return plain.replaceAll(/:[“”]([^“”"]*)[“”]/g, ':"$1"');
  }

  async function tell(responseUrl: string | undefined, text: string): Promise<void> {
    if (responseUrl === undefined) return;
    const block = { type: "section", text: { type: "plain_text", text } };
    try {
      await api.respond(responseUrl, { text: escapeText(text), blocks: [block] });
    } catch (error) {
      log.warn({ err: error }, "a person could not be told what went wrong");
    }
  }

  function note(error: unknown, what: string): void {
    const isTheirs = isParleyError(error, "invalid-option");
    log[isTheirs ? "debug" : "warn"]({ err: error, what }, "a command was not accepted");
  }
}

function words(error: unknown): string {
  const word = isParleyError(error) ? error.detail["slackError"] : undefined;
  if (word === "expired_trigger_id") return "That took too long for Slack. Please try again.";
  // Unlike a message, a command is not kept by Slack until the bot is back.
  if (isParleyError(error, "stopping")) return "Parley is restarting. Please try again in a moment.";
  return escapeText(toNotice(error));
}

function readThread(message: MessageShortcut["message"]): string | undefined {
  const thread: unknown = message["thread_ts"];
  return typeof thread === "string" ? thread : undefined;
}
