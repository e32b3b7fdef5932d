import {
  ComponentType,
  TextInputStyle,
  InteractionResponseType as ResponseType,
  MessageFlags,
  type APILabelComponent,
  type APIModalInteractionResponseCallbackData,
  type APIModalSubmitInteraction,
  type APIStringSelectComponent,
  type APITextInputComponent,
  type APIInteraction,
} from "discord.js";
import type { Clock } from "../../../core/clock.ts";
import { choiceLabel, menuLabel, optionDescription, optionTitle } from "../../../core/command-input.ts";
import { freeTextOption, type Command, type Option } from "../../../core/command.ts";
import { acceptingNotice, toNotice } from "../../../core/error-messages.ts";
import { isParleyError } from "../../../core/errors.ts";
import type { RawOption, CommandCall } from "../../../core/events.ts";
import type { Receiver } from "../../../core/receiver.ts";
import type { Log } from "../../../core/telemetry.ts";
import { inTime } from "../../../support/clock.ts";
import { translate } from "../../../words/translate.ts";
import { createNotAcceptedLog, receivePatiently } from "../../delivery/receive-patiently.ts";
import { tokenOf, type Acknowledgements } from "./acknowledgements.ts";
import { readFormModal } from "./form-modal.ts";
import type { DiscordApi } from "../transport/api.ts";
import { privateFlags, toSentence } from "../reply/content.ts";

/** When a call that is not accepted yet is acknowledged with words. Discord's deadline is three seconds. */
const slowAfterMs = 2000;
/** How long accepting a call is tried. The notice says two minutes. */
const acceptForMs = 100_000;

type Interaction = Pick<APIInteraction, "id" | "token" | "application_id">;

/**
 * Returns a function that passes a call to the receiver and acknowledges it, within Discord's deadline. The
 * response is deferred once the call is durable, so that a crash in between leaves no placeholder; requests
 * of its reply wait for that. `spentMs`: how much of the deadline has passed before.
 */
export function createCallIntake(options: {
  readonly api: Pick<DiscordApi, "deleteFollowUp" | "editFollowUp" | "expect" | "followUp">;
  readonly receiver: Pick<Receiver, "receive">;
  readonly acknowledgements: Acknowledgements;
  readonly clock: Clock;
  readonly log: Log;
}): (interaction: Interaction, call: CommandCall, spentMs?: number) => Promise<void> {
  const { api, receiver, acknowledgements, clock, log } = options;
  const logNotAccepted = createNotAcceptedLog(log, clock);

  /** Resolves to whether Discord took the notice that the call is not accepted yet. */
  async function acknowledge(
    interaction: Interaction,
    { isPrivate }: CommandCall,
    receiving: Promise<"accepted" | "duplicate">,
    leftMs: number,
  ): Promise<boolean> {
    const settled = Promise.allSettled([receiving]).then(([result]) => result);
    const result = await inTime(settled, leftMs, { clock });
    if (result === undefined) {
      return await acknowledgements.send(interaction, {
        type: ResponseType.ChannelMessageWithSource,
        data: { ...toSentence(acceptingNotice()), ...(isPrivate ? { flags: privateFlags } : {}) },
      });
    }
    if (result.status === "rejected") {
      await acknowledgements.refuse(interaction, result.reason);
      return false;
    }
    await acknowledgements.send(interaction, {
      type: ResponseType.DeferredChannelMessageWithSource,
      ...(isPrivate ? { data: { flags: MessageFlags.Ephemeral } } : {}),
    });
    return false;
  }

  return async (interaction, call, spentMs = 0) => {
    const receiving = receivePatiently(() => receiver.receive(call), { forMs: acceptForMs, clock });
    const leftMs = Math.max(0, slowAfterMs - spentMs);
    const acknowledgement = acknowledge(interaction, call, receiving, leftMs);
    api.expect(interaction.token, acknowledgement);
    const hasNotice = await acknowledgement;
    // Not waited for: the platform stops when the acknowledgements are sent.
    receiving.catch(async (error: unknown) => {
      logNotAccepted("command", { key: call.key }, error);
      // The notice stays true where the store was not reached.
      if (!hasNotice || isParleyError(error, "store-unavailable")) return;
      const words = toSentence(toNotice(error));
      try {
        if (call.isPrivate) await api.editFollowUp(tokenOf(interaction), "@original", words);
        else {
          // The notice is for everybody, and why somebody is refused is for that person alone.
          await api.deleteFollowUp(tokenOf(interaction), "@original");
          await api.followUp(tokenOf(interaction), { ...words, flags: privateFlags });
        }
      } catch (failure) {
        log.warn({ key: call.key, err: failure }, "refused command not told");
      }
    });
  };
}

const prefix = "ask:";
/** Discord's limit of the text in one input. */
const maxInputChars = 4000;

/** The message that a message command was used on. */
interface ModalTarget {
  readonly channelId: string;
  readonly messageId: string;
}

/** What a person submitted with a modal. */
interface ModalAnswer extends ModalTarget {
  readonly commandName: string;
  /** Holds values by option name. An option that was left empty is absent. */
  readonly options: Readonly<Record<string, RawOption>>;
}

/**
 * Returns the modal of a message command, with one input for each option that it asks for. Its custom id
 * holds the command and the message.
 * @see https://docs.discord.com/developers/components/using-modal-components
 */
export function toAskModal(
  command: Command,
  { channelId, messageId }: ModalTarget,
): APIModalInteractionResponseCallbackData {
  const { asks = [] } = command.messageCommand ?? {};
  return {
    custom_id: `${prefix}${command.name}:${channelId}:${messageId}`,
    title: menuLabel(command) || command.name,
    components: asks.flatMap((name) => {
      const option = command.options[name];
      return option === undefined ? [] : [toLabel(command, name, option)];
    }),
  };
}

/** Whether a modal with this custom id was made by {@link toAskModal}. */
export function isAskModal(customId: string): boolean {
  return customId.startsWith(prefix);
}

/** Reads a submitted modal. The values stay unchecked. */
export function parseAskModal(interaction: APIModalSubmitInteraction): ModalAnswer {
  const [, commandName = "", channelId = "", messageId = ""] = interaction.data.custom_id.split(":");
  const options: Record<string, RawOption> = {};
  for (const [name, value] of Object.entries(readFormModal(interaction)))
    if (value.trim() !== "") options[name] = value.trim();
  return { commandName, channelId, messageId, options };
}

function toLabel(command: Command, name: string, option: Option): APILabelComponent {
  return {
    type: ComponentType.Label,
    label: optionTitle(command, name),
    description: optionDescription(command, name),
    component: toInput(command, name, option),
  };
}

function toInput(
  command: Command,
  name: string,
  option: Option,
): APITextInputComponent | APIStringSelectComponent {
  const base = { custom_id: name, required: option.required === true };
  if (option.kind === "boolean")
    return { ...base, ...toSelect(["yes", "no"], (value) => translate(`form.${value}`)) };
  if (option.kind === "string" && option.choices !== undefined && option.choices.length > 0)
    return { ...base, ...toSelect(option.choices, (choice) => choiceLabel(command, choice)) };
  const text = {
    ...base,
    type: ComponentType.TextInput as const,
    style: name === freeTextOption(command) ? TextInputStyle.Paragraph : TextInputStyle.Short,
  };
  if (option.kind === "integer")
    return {
      ...text,
      max_length: 20,
      placeholder: translate("help.value.integer", { min: option.min, max: option.max }),
    };
  const maxChars = option.kind === "string" ? option.maxChars : undefined;
  return { ...text, max_length: Math.min(maxChars ?? maxInputChars, maxInputChars) };
}

function toSelect<V extends string>(
  values: readonly V[],
  labelOf: (value: V) => string,
): Pick<APIStringSelectComponent, "type" | "options"> {
  return {
    type: ComponentType.StringSelect,
    options: values.map((value) => ({ label: labelOf(value), value })),
  };
}
