import { ApiError, invalidForm, unknownInteraction, unknownMessage, unknownWebhook } from "./api-error.ts";
import type { Gateway } from "./gateway.ts";
import type { Answer, Route } from "./http.ts";
import { readModal } from "./modals.ts";
import { createBotMessage, editBotMessage, requireMessage, type Form } from "./message-form.ts";
import { renderMessage } from "./render.ts";
import { removeMessage } from "./deletions.ts";
import { dispatchMessage } from "./routes-channels.ts";
import {
  addMessage,
  messageFlags,
  type SimChannel,
  type SimInteraction,
  type SimMessage,
  type World,
} from "./world.ts";

/** How long an interaction can be acknowledged. Later acknowledgements are rejected. */
export const acknowledgeWithinMs = 3000;
const tokenLifetimeMs = 15 * 60 * 1000;

/** The response types that each type of interaction accepts. */
const responseTypesOf: Readonly<Record<number, readonly number[]>> = {
  2: [4, 5, 9],
  3: [4, 5, 6, 7, 9],
  4: [8],
  5: [4, 5, 6, 7],
};

/** Creates the routes of interaction callbacks and of the webhook of an interaction's messages. */
export function interactionRoutes(world: World, gateway: () => Gateway): Route[] {
  const shown = (message: SimMessage) => renderMessage(world, message, { hideContent: false });

  const channelOf = (interaction: SimInteraction): SimChannel => {
    const channel = world.channels.get(interaction.channelId);
    if (channel === undefined) throw new Error(`no channel ${interaction.channelId}`);
    return channel;
  };

  /** Returns the acknowledged interaction of a path. @throws ApiError if there is none or it has expired */
  const byToken = (parameters: Readonly<Record<string, string>>): SimInteraction => {
    if (parameters["webhook_id"] !== world.applicationId) throw unknownWebhook();
    const interaction = [...world.interactions.values()].find(
      (one) => one.token === parameters["webhook_token"],
    );
    if (interaction === undefined || world.now() - interaction.createdAt > tokenLifetimeMs)
      throw new ApiError(401, 50027, "Invalid Webhook Token");
    if (interaction.ackedAt === undefined) throw unknownWebhook();
    return interaction;
  };

  const messageOf = (interaction: SimInteraction, id: string): SimMessage => {
    const message = requireMessage(world, interaction.channelId, id);
    if (message.interactionId !== interaction.id && interaction.sourceMessageId !== id)
      throw new ApiError(404, 10008, "Unknown Message");
    return message;
  };

  const edit = (interaction: SimInteraction, messageId: string, form: Form): Answer => {
    const message = messageOf(interaction, messageId);
    editBotMessage({ world, channel: channelOf(interaction), form, interaction }, message);
    if (message.id === interaction.originalId) interaction.isPlaceholderOpen = false;
    dispatchMessage(world, gateway(), "MESSAGE_UPDATE", message);
    return { status: 200, body: shown(message) };
  };

  const originalOf = (interaction: SimInteraction): string => {
    if (interaction.originalId === undefined) throw new ApiError(404, 10008, "Unknown Message");
    return interaction.originalId;
  };

  return [
    {
      method: "POST",
      template: "/interactions/{interaction_id}/{interaction_token}/callback",
      isOpen: true,
      handle({ parameters, form, arrivedAt }) {
        const interaction = world.interactions.get(parameters["interaction_id"] ?? "");
        if (interaction === undefined || interaction.token !== parameters["interaction_token"])
          throw unknownInteraction();
        if (interaction.ackedAt !== undefined)
          throw new ApiError(400, 40060, "Interaction has already been acknowledged.");
        if (arrivedAt - interaction.createdAt > acknowledgeWithinMs) throw unknownInteraction();
        const type = Number(form.json["type"]);
        if (responseTypesOf[interaction.type]?.includes(type) !== true)
          throw invalidForm(
            "type",
            "BASE_TYPE_CHOICES",
            "This interaction does not accept that response type.",
          );
        acknowledge(interaction, type, form);
        interaction.ackedAt = world.now();
        interaction.ackType = type;
        return { status: 204 };
      },
    },
    ...(["GET", "PATCH"] as const).map((method): Route => ({
      method,
      template: "/webhooks/{webhook_id}/{webhook_token}/messages/@original",
      isOpen: true,
      handle({ parameters, form }) {
        const interaction = byToken(parameters);
        const id = originalOf(interaction);
        if (method === "GET") return { status: 200, body: shown(messageOf(interaction, id)) };
        return edit(interaction, id, form);
      },
    })),
    {
      method: "PATCH",
      template: "/webhooks/{webhook_id}/{webhook_token}/messages/{message_id}",
      isOpen: true,
      handle({ parameters, form }) {
        const interaction = byToken(parameters);
        // The first response cannot be named by its id.
        if (parameters["message_id"] === interaction.originalId) throw unknownMessage();
        return edit(interaction, parameters["message_id"] ?? "", form);
      },
    },
    {
      method: "DELETE",
      template: "/webhooks/{webhook_id}/{webhook_token}/messages/{message_id}",
      isOpen: true,
      handle({ parameters }) {
        const interaction = byToken(parameters);
        const asked = parameters["message_id"] ?? "";
        if (asked === "@original" || asked === interaction.originalId) interaction.isPlaceholderOpen = false;
        const message = messageOf(interaction, asked === "@original" ? originalOf(interaction) : asked);
        removeMessage(world, gateway(), message);
        return { status: 204 };
      },
    },
    {
      method: "POST",
      template: "/webhooks/{webhook_id}/{webhook_token}",
      isOpen: true,
      handle({ parameters, form }) {
        const interaction = byToken(parameters);
        if (interaction.isPlaceholderOpen) return edit(interaction, originalOf(interaction), form);
        interaction.followUps += 1;
        const isEphemeral = isForCallerAlone(form.json["flags"]);
        const message = createBotMessage({
          world,
          channel: channelOf(interaction),
          form,
          interaction,
          ephemeralTo: isEphemeral ? interaction.user.id : undefined,
        });
        dispatchMessage(world, gateway(), "MESSAGE_CREATE", message);
        return { status: 200, body: shown(message) };
      },
    },
  ];

  function acknowledge(interaction: SimInteraction, type: number, form: Form): void {
    const data = (form.json["data"] ?? {}) as Readonly<Record<string, unknown>>;
    const inner: Form = { json: data, files: form.files };
    const isEphemeral = isForCallerAlone(data["flags"]);
    const ephemeralTo = isEphemeral ? interaction.user.id : undefined;
    switch (type) {
      case 4: {
        const message = createBotMessage({
          world,
          channel: channelOf(interaction),
          form: inner,
          interaction,
          ephemeralTo,
        });
        interaction.originalId = message.id;
        return dispatchMessage(world, gateway(), "MESSAGE_CREATE", message);
      }
      case 5: {
        const message = addMessage(world, {
          channelId: interaction.channelId,
          author: world.bot,
          content: "",
          type: interaction.type === 2 ? 20 : 0,
          flags: messageFlags.loading | (isEphemeral ? messageFlags.ephemeral : 0),
          webhookId: world.applicationId,
          interactionId: interaction.id,
          ephemeralTo,
        });
        interaction.originalId = message.id;
        interaction.isPlaceholderOpen = true;
        return dispatchMessage(world, gateway(), "MESSAGE_CREATE", message);
      }
      case 6:
        interaction.originalId = interaction.sourceMessageId;
        return;
      case 7: {
        if (interaction.sourceMessageId === undefined) throw unknownInteraction();
        interaction.originalId = interaction.sourceMessageId;
        edit(interaction, interaction.sourceMessageId, inner);
        return;
      }
      case 8:
        interaction.choices = readChoices(data["choices"]);
        return;
      case 9:
        interaction.modal = readModal(data);
        return;
      default:
        throw invalidForm("type", "BASE_TYPE_CHOICES", "Unknown response type");
    }
  }
}

/** Whether a response is ephemeral. Members may lack the permission to show a user app's responses. */
function isForCallerAlone(flags: unknown): boolean {
  return (Number(flags ?? 0) & messageFlags.ephemeral) !== 0;
}

function readChoices(given: unknown): { name: string; value: string | number }[] {
  const choices = (given ?? []) as { name: string; value: string | number }[];
  if (choices.length > 25)
    throw invalidForm("data.choices", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.");
  for (const { name, value } of choices) {
    if (name.length < 1 || name.length > 100 || String(value).length > 100 || value === "")
      throw invalidForm("data.choices", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.");
  }
  return choices;
}
