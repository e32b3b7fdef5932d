import { ComponentType, InteractionResponseType as ResponseType } from "discord-api-types/v10";
import type { APIMessageComponentInteraction, APIModalSubmitInteraction } from "discord.js";
import { LRUCache } from "lru-cache";
import type { Actor } from "../../core/access.ts";
import type { Form } from "../../core/forms.ts";
import type { Receiver } from "../../core/platform.ts";
import type { Acknowledgements } from "./acknowledgements.ts";
import { privateFlags, toDiscordContent, toPrivateSentence } from "./content.ts";
import {
  formOfFixButton,
  formOfModal,
  formSelectId,
  readFormModal,
  toFixButton,
  toFormModal,
} from "./form-modal.ts";
import { toAuthor } from "./incoming.ts";
import type { Origins } from "./origin.ts";
import { translate } from "../../words/translate.ts";

/** What people typed into forms that were not right, kept until they correct it. */
const maxDrafts = 500;

type Interaction = APIMessageComponentInteraction | APIModalSubmitInteraction;

/** Opens and submits forms. Every instance does so with each interaction: saving twice changes nothing. */
export interface FormClicks {
  /** Whether a click is one on a form's select or button. */
  isForm(interaction: APIMessageComponentInteraction): boolean;
  /** Shows the form, filled in. */
  open(interaction: APIMessageComponentInteraction): Promise<void>;
  isSubmission(interaction: APIModalSubmitInteraction): boolean;
  /** Saves what was typed, and tells the person alone what became of it. */
  submit(interaction: APIModalSubmitInteraction): Promise<void>;
}

/** @param options `notes`: on fields that do not work with this connection */
export function createFormClicks(options: {
  readonly receiver: Pick<Receiver, "forms">;
  readonly acknowledgements: Acknowledgements;
  readonly origins: Pick<Origins, "ofInteraction">;
  readonly notes: () => Readonly<Record<string, string>>;
}): FormClicks {
  const { receiver, acknowledgements, origins, notes } = options;
  const drafts = new LRUCache<string, Readonly<Record<string, string>>>({ max: maxDrafts });

  async function actorOf(interaction: Interaction): Promise<Actor> {
    const user = interaction.member?.user ?? interaction.user;
    const author =
      user === undefined ? { id: "", name: "" } : toAuthor(user, interaction.member, interaction.locale);
    return { platform: "discord", author, origin: await origins.ofInteraction(interaction) };
  }

  const draftKey = (by: Actor, key: string) => `${by.author.id} ${key}`;

  function withDraft(form: Form, draft: Readonly<Record<string, string>> | undefined): Form {
    if (draft === undefined) return form;
    return {
      ...form,
      fields: form.fields.map((field) => ({ ...field, value: draft[field.name] ?? field.value })),
    };
  }

  async function openForm(interaction: APIMessageComponentInteraction): Promise<void> {
    const { data } = interaction;
    const fixed = formOfFixButton(data.custom_id);
    const key = data.component_type === ComponentType.StringSelect ? (data.values[0] ?? "") : (fixed ?? "");
    const by = await actorOf(interaction);
    const draft = fixed === undefined ? undefined : drafts.get(draftKey(by, key));
    const form = withDraft(await receiver.forms.open(key, by), draft);
    await acknowledgements.send(interaction, { type: ResponseType.Modal, data: toFormModal(form, notes()) });
  }

  async function submitForm(interaction: APIModalSubmitInteraction): Promise<void> {
    const key = formOfModal(interaction.data.custom_id) ?? "";
    const values = readFormModal(interaction);
    const by = await actorOf(interaction);
    const result = await receiver.forms.submit(key, by, values);
    if (result.kind === "saved") {
      drafts.delete(draftKey(by, key));
      const { overflow: _, ...content } = toDiscordContent({ text: result.text, state: "finished" });
      await acknowledgements.send(interaction, {
        type: ResponseType.ChannelMessageWithSource,
        data: { ...content, flags: privateFlags },
      });
      return;
    }
    drafts.set(draftKey(by, key), values);
    const lines = Object.values(result.problems).map((problem) => `⚠️ ${problem}`);
    await acknowledgements.send(interaction, {
      type: ResponseType.ChannelMessageWithSource,
      data: {
        ...toPrivateSentence([translate("form.nothing-saved"), ...lines].join("\n")),
        components: [toFixButton(key)],
      },
    });
  }

  async function orRefuse(interaction: Interaction, work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      await acknowledgements.refuse(interaction, error);
    }
  }

  return {
    isForm: ({ data }) => data.custom_id === formSelectId || formOfFixButton(data.custom_id) !== undefined,
    open: (interaction) => orRefuse(interaction, openForm(interaction)),
    isSubmission: ({ data }) => formOfModal(data.custom_id) !== undefined,
    submit: (interaction) => orRefuse(interaction, submitForm(interaction)),
  };
}
