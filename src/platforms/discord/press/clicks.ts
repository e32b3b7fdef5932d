import {
  ComponentType,
  InteractionResponseType as ResponseType,
  type APIMessageComponentInteraction,
  type APIModalSubmitInteraction,
} from "discord.js";
import type { Actor } from "../../../core/access.ts";
import type { Clock } from "../../../core/clock.ts";
import { goneNotice, toNotice } from "../../../core/error-messages.ts";
import { ParleyError, isRefusal } from "../../../core/errors.ts";
import type { ActionCall, Press, PressResult } from "../../../core/press.ts";
import type { Receiver } from "../../../core/receiver.ts";
import type { ReplyFile } from "../../../core/reply.ts";
import type { Log } from "../../../core/telemetry.ts";
import { inTime } from "../../../support/clock.ts";
import { translate } from "../../../words/translate.ts";
import { tokenOf, type Acknowledgements } from "./acknowledgements.ts";
import type { DiscordApi } from "../transport/api.ts";
import { toPrivateMessages, toPrivateSentence, toActionId, type DiscordContent } from "../reply/content.ts";
import {
  formOfFixButton,
  formOfModal,
  formSelectId,
  readFormModal,
  toFixButton,
  toFormModal,
} from "./form-modal.ts";
import { createUploads, withAltTexts } from "../intake/files.ts";

type Interaction = APIMessageComponentInteraction | APIModalSubmitInteraction;

/** Returns the person who used a button, menu or form. @throws ParleyError where it cannot be looked up */
type ToActor = (interaction: Interaction) => Promise<Actor>;

/** How long a result is waited for. Discord's deadline is three seconds. */
const answerWithinMs = 2000;

/** What {@link createActionHandler} works with. */
interface ActionHandlerOptions {
  readonly api: Pick<DiscordApi, "followUp">;
  readonly acknowledgements: Acknowledgements;
  readonly receiver: Pick<Receiver, "press">;
  readonly toActor: ToActor;
  /** Makes a call of its own from what an action asks for, and answers it within the rest of the deadline. */
  readonly takeCall: (interaction: Interaction, call: ActionCall, spentMs: number) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Handles clicks on the buttons of replies, and what is submitted with their forms. The response is the
 * result, which only the person sees, or a call. A result that takes longer follows a mere acknowledgement.
 */
export function createActionHandler(
  options: ActionHandlerOptions,
): (interaction: Interaction, press: Press) => Promise<void> {
  const { api, acknowledgements, receiver, clock, log } = options;

  /** Shows something to the person alone. Returns whether Discord took it. */
  async function show(
    interaction: Interaction,
    contents: readonly DiscordContent[],
    isLate: boolean,
  ): Promise<boolean> {
    const [first, ...others] = contents;
    const response = { type: ResponseType.ChannelMessageWithSource, data: first };
    if (!isLate && !(await acknowledgements.send(interaction, response))) return false;
    for (const content of isLate ? contents : others) await api.followUp(tokenOf(interaction), content);
    return true;
  }

  /** Discord's response takes no files, so they follow it. */
  async function giveFiles(interaction: Interaction, files: readonly ReplyFile[]): Promise<void> {
    const token = tokenOf(interaction);
    const maxBytes = interaction.attachment_size_limit;
    try {
      await createUploads(undefined).run(files, maxBytes, async (batch) => {
        const content = { ...toPrivateSentence(""), content: "" };
        return (await api.followUp(token, withAltTexts(content, batch), { files: batch })).id;
      });
    } catch (error) {
      log.warn({ interaction: interaction.id, err: error }, "files of a press not shown");
      await api.followUp(token, toPrivateSentence(toNotice(error)));
    }
  }

  async function respond(
    interaction: Interaction,
    { kind, key }: Press,
    result: PressResult,
    { spentMs, isLate }: { readonly spentMs: number; readonly isLate: boolean },
  ): Promise<void> {
    const tell = (text: string): Promise<boolean> => show(interaction, [toPrivateSentence(text)], isLate);
    switch (result.kind) {
      case "told":
        await show(interaction, toPrivateMessages(result), isLate);
        return;
      case "files":
        if (await tell(result.markdown)) await giveFiles(interaction, result.files);
        return;
      case "gone":
        await tell(goneNotice(kind));
        return;
      case "problems":
        await tell(Object.values(result.problems).join("\n"));
        return;
      case "form":
      case "call":
        // Both are the response, for which it is too late then.
        if (isLate) throw new ParleyError("store-unavailable", "no result within Discord's deadline");
        if (result.kind === "call") await options.takeCall(interaction, result.call, spentMs);
        else
          await acknowledgements.send(interaction, {
            type: ResponseType.Modal,
            data: { ...toFormModal(result.form, {}), custom_id: toActionId(kind, key) },
          });
        return;
      case "done":
        if (!isLate) await acknowledgements.send(interaction, { type: ResponseType.DeferredMessageUpdate });
    }
  }

  return async (interaction, press) => {
    const startedAt = clock.monotonic();
    const running = options.toActor(interaction).then((by) => receiver.press(press, by));
    let isLate = false;
    try {
      let result = await inTime(running, answerWithinMs, { clock });
      if (result === undefined) {
        isLate = await acknowledgements.send(interaction, { type: ResponseType.DeferredMessageUpdate });
        result = await running;
        if (!isLate) return;
      }
      await respond(interaction, press, result, { spentMs: clock.monotonic() - startedAt, isLate });
    } catch (error) {
      const fields = { interaction: interaction.id, err: error };
      if (isRefusal(error)) log.info(fields, "button click refused");
      else log.error(fields, "button click not handled");
      await show(interaction, [toPrivateSentence(toNotice(error))], isLate);
    }
  };
}

/** Opens and submits forms. */
interface FormClicks {
  /** Whether somebody clicked a form's select or button. */
  isForm(interaction: APIMessageComponentInteraction): boolean;
  /** Shows the form with its current values. */
  open(interaction: APIMessageComponentInteraction): Promise<void>;
  isSubmission(interaction: APIModalSubmitInteraction): boolean;
  /** Saves what was typed, and tells only the person what became of it. */
  submit(interaction: APIModalSubmitInteraction): Promise<void>;
}

/** @param options `notes` are shown on fields that do not work with this connection */
export function createFormClicks(options: {
  readonly receiver: Pick<Receiver, "press">;
  readonly acknowledgements: Acknowledgements;
  readonly toActor: ToActor;
  readonly notes: () => Readonly<Record<string, string>>;
}): FormClicks {
  const { receiver, acknowledgements, toActor, notes } = options;
  async function openForm(interaction: APIMessageComponentInteraction): Promise<void> {
    const { data } = interaction;
    const key =
      data.component_type === ComponentType.StringSelect
        ? (data.values[0] ?? "")
        : (formOfFixButton(data.custom_id) ?? "");
    const result = await receiver.press({ kind: "settings", key }, await toActor(interaction));
    if (result.kind !== "form") throw new ParleyError("internal", "settings without a form");
    const modal = toFormModal(result.form, notes());
    await acknowledgements.send(interaction, { type: ResponseType.Modal, data: modal });
  }

  async function submitForm(interaction: APIModalSubmitInteraction): Promise<void> {
    const key = formOfModal(interaction.data.custom_id) ?? "";
    const values = readFormModal(interaction);
    const result = await receiver.press({ kind: "settings", key, values }, await toActor(interaction));
    if (result.kind === "told") {
      await acknowledgements.tell(interaction, result.markdown);
      return;
    }
    if (result.kind !== "problems") throw new ParleyError("internal", "settings neither saved nor refused");
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
