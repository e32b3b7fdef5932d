import {
  ComponentType,
  TextInputStyle,
  type APIModalInteractionResponseCallbackData,
  type APIModalSubmitInteraction,
} from "discord.js";
import type { Command } from "../../core/command.ts";

const prefix = "ask:";
const maxLabelChars = 45;
const maxInputChars = 4000;

/** The message a form asks about. */
export interface AskedMessage {
  readonly channelId: string;
  readonly messageId: string;
}

/** The form of a message command that needs a prompt; its custom id remembers the command and the message. */
export function askModal(
  command: Command,
  { channelId, messageId }: AskedMessage,
): APIModalInteractionResponseCallbackData {
  const option = command.messageCommand?.asks?.[0] ?? "";
  const declared = command.options[option];
  return {
    custom_id: `${prefix}${command.name}:${channelId}:${messageId}`,
    title: (command.messageCommand?.label ?? command.name).slice(0, maxLabelChars),
    components: [
      {
        type: ComponentType.Label,
        label: (declared?.description ?? "Your question").slice(0, maxLabelChars),
        component: {
          type: ComponentType.TextInput,
          custom_id: option,
          style: TextInputStyle.Paragraph,
          required: true,
          max_length: maxInputChars,
        },
      },
    ],
  };
}

export function isAskModal(customId: string): boolean {
  return customId.startsWith(prefix);
}

/** What was asked with the form. `option` is undefined when the form holds no text. */
export function readAskModal(
  interaction: APIModalSubmitInteraction,
): AskedMessage & { readonly command: string; readonly option: string | undefined; readonly text: string } {
  const [, command = "", channelId = "", messageId = ""] = interaction.data.custom_id.split(":");
  const inputs = interaction.data.components.flatMap((row) => {
    if (row.type === ComponentType.Label) return [row.component];
    return row.type === ComponentType.ActionRow ? row.components : [];
  });
  const input = inputs.find((one) => one.type === ComponentType.TextInput);
  return { command, channelId, messageId, option: input?.custom_id, text: input?.value ?? "" };
}
