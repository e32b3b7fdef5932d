import type { App, MessageShortcut } from "@slack/bolt";
import type { Command } from "../../core/command.ts";
import { collectOptions, missingOptions } from "../../core/command-input.ts";
import { parseOptions } from "../../core/command-options.ts";
import { acceptingNotice, formNotAcceptedNotice, toNotice } from "../../core/error-messages.ts";
import { isParleyError } from "../../core/errors.ts";
import type { CommandCall } from "../../core/events.ts";
import { toCallKey } from "./address.ts";
import type { CallIntake } from "./call-intake.ts";
import { toCallerText, type CallerNotices } from "./caller-notices.ts";
import type { CommandCalls } from "./command-calls.ts";
import { inLookupTime } from "./lookup-time.ts";
import { escapeText } from "./markdown.ts";
import { commandOfModal, modalCallbacks, parseMemory, parseModal, toModal } from "./modal.ts";
import type { SlackApi } from "./web-api.ts";
import { translate } from "../../words/translate.ts";

/** A message shortcut's `callback_id` in the manifest, followed by the command's name. */
export const shortcutPrefix = "parley_shortcut:";

/** What {@link registerCommands} needs. */
export interface CommandOptions {
  readonly commands: ReadonlyMap<string, Command>;
  readonly commandPrefix: string;
  readonly teamId: string;
  readonly api: Pick<SlackApi, "openModal">;
  readonly calls: CommandCalls;
  readonly intake: CallIntake;
  readonly notices: CallerNotices;
  /** Whether models are known, so that a form can search them. */
  readonly searchesModels: () => boolean;
}

/**
 * Registers slash commands, message shortcuts and their modals. Slack delivers each of these once: it is acknowledged
 * when it is durable, and otherwise the caller is shown why it was not accepted.
 */
export function registerCommands(app: App, options: CommandOptions): void {
  const { commands, commandPrefix, teamId, api, calls, intake, notices, searchesModels } = options;

  for (const command of commands.values()) {
    app.command(`/${commandPrefix}${command.name}`, async ({ body, ack }) => {
      const memory = { channel: body.channel_id, responseUrl: body.response_url };
      try {
        const given = collectOptions(command, { text: await calls.toCommandText(body.text) });
        if (missingOptions(command, given).length > 0) {
          const opened = api.openModal(
            body.trigger_id,
            toModal(command, memory, { initial: given, searchesModels: searchesModels() }),
          );
          // A form that opens later needs no acknowledgement.
          const late = inLookupTime(opened.then(() => "opened"));
          if ((await late) === undefined)
            opened.catch((error: unknown) => tell(error, `/${command.name}`, memory.responseUrl));
          return await ack();
        }
        const key = toCallKey(teamId, "cmd", body.trigger_id);
        const use = {
          command,
          key,
          options: given,
          user: body.user_id,
          team: body.team_id,
          memory,
          isAnnounced: true,
        };
        const call = await calls.toCall(use);
        const result = await intake.take(call, (text) => notices.send(memory.responseUrl, text));
        if (result === "slow") await ack({ response_type: "ephemeral", text: escapeText(acceptingNotice()) });
        else
          await ack(
            call.isPrivate
              ? {
                  response_type: "ephemeral",
                  text: translate("delivery.status", { status: translate("delivery.working") }),
                }
              : undefined,
          );
      } catch (error) {
        notices.logFailure(error, `/${command.name}`);
        await ack({ response_type: "ephemeral", text: escapeText(toCallerText(error)) });
      }
    });
  }

  /** After the acknowledgement. */
  async function tell(error: unknown, source: string, responseUrl?: string, thread?: string): Promise<void> {
    notices.logFailure(error, source);
    await notices.send(responseUrl, toCallerText(error), thread);
  }

  app.shortcut(new RegExp(`^${shortcutPrefix}`), async ({ shortcut, ack }) => {
    await ack();
    if (shortcut.type !== "message_action") return;
    const command = commands.get(shortcut.callback_id.slice(shortcutPrefix.length));
    if (command === undefined) return;
    try {
      await runShortcut(command, shortcut);
    } catch (error) {
      await tell(error, shortcut.callback_id, shortcut.response_url, threadOf(shortcut.message));
    }
  });

  app.view(modalCallbacks, async ({ body, view, ack }) => {
    const command = commands.get(commandOfModal(view.callback_id) ?? "");
    if (command === undefined) return await ack();
    try {
      const key = toCallKey(teamId, "view", view.id);
      const memory = parseMemory(view.private_metadata);
      const given = parseModal(view.state.values, teamId);
      const use = {
        command,
        key,
        options: given,
        user: body.user.id,
        team: body.user.team_id,
        memory,
        isAnnounced: false,
      };
      const isSlow = (await intake.takeForm(await calls.toCall(use))) === "slow";
      const [field = ""] = Object.keys(view.state.values);
      if (isSlow) await ack({ response_action: "errors", errors: { [field]: formNotAcceptedNotice() } });
      else await ack();
    } catch (error) {
      notices.logFailure(error, view.callback_id);
      const field = fieldOfError(error, Object.keys(view.state.values));
      await ack({ response_action: "errors", errors: { [field]: toNotice(error) } });
    }
  });

  async function runShortcut(command: Command, shortcut: MessageShortcut): Promise<void> {
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
      return await api.openModal(
        shortcut.trigger_id,
        toModal(command, memory, { searchesModels: searchesModels() }),
      );
    }
    const key = toCallKey(teamId, "shortcut", shortcut.trigger_id);
    const user = shortcut.user.id;
    const call = await calls.toCall({
      command,
      key,
      options: {},
      user,
      team: shortcut.user.team_id,
      memory,
      subject,
      isAnnounced: false,
    });
    const say = (text: string) => notices.send(memory.responseUrl, text, thread);
    if ((await intake.take(call, say)) === "slow") await say(acceptingNotice());
  }
}

/**
 * Checks what the message fills before the modal asks for the rest: an error in it has no field there.
 * @throws ParleyError `invalid-option`
 */
function checkFilledOptions(command: Command, subject: NonNullable<CommandCall["subject"]>): void {
  const filled = collectOptions(command, { subject });
  const options = Object.entries(command.options).filter(([name]) => filled[name] !== undefined);
  parseOptions({ ...command, options: Object.fromEntries(options) }, filled);
}

/** The modal field that shows the error: that of the wrong option, otherwise the first one. */
function fieldOfError(error: unknown, fields: readonly string[]): string {
  const option = isParleyError(error) ? error.detail["option"] : undefined;
  return fields.find((field) => field === option) ?? fields[0] ?? "";
}

function threadOf(message: MessageShortcut["message"]): string | undefined {
  const thread: unknown = message["thread_ts"];
  return typeof thread === "string" ? thread : undefined;
}
