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
import type { Receiver } from "../../../core/platform.ts";
import type { Log } from "../../../core/telemetry.ts";
import { inTime } from "../../../support/clock.ts";
import { translate } from "../../../words/translate.ts";
import { tokenOf, type Acknowledgements } from "./acknowledgements.ts";
import type { DiscordApi } from "../transport/api.ts";
import { toPrivateMessages, toPrivateSentence, toActionId } from "../reply/content.ts";
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

/**
 * Handles clicks on the buttons that change a reply (Retry, confirm, Stop, Regenerate, Continue) or rate it,
 * and forms that change one: acknowledges the click and calls the receiver. Problems are told to the person
 * alone.
 */
export function createButtonHandler(options: {
  readonly api: Pick<DiscordApi, "followUp">;
  readonly acknowledgements: Acknowledgements;
  readonly receiver: Receiver;
  readonly toActor: ToActor;
  readonly log: Log;
}): (interaction: Interaction, press: Press) => Promise<void> {
  const { api, acknowledgements, receiver, log } = options;

  /** Resolves to what the person is told, or to `undefined` where they see the result. */
  async function run(press: Press, by: Actor): Promise<string | undefined> {
    const result = await receiver.press(press, by);
    switch (result.kind) {
      case "told":
        return result.markdown;
      case "problems":
        return Object.values(result.problems).join("\n");
      case "gone":
        return goneNotice(press.kind);
      case "done":
        return undefined;
      case "files":
      case "form":
      case "call":
        throw new ParleyError(
          "internal",
          `a press of ${press.kind} changes the reply and asks for a ${result.kind}`,
        );
    }
  }

  return async (interaction, press) => {
    // A process that is stopping can still stop an answer, because that only sets a mark.
    if (receiver.isStopping() && press.kind !== "stop")
      return acknowledgements.refuse(interaction, new ParleyError("stopping", "the process is stopping"));
    // One of several instances handles a click: the one whose response Discord takes.
    const isOurs = await acknowledgements.send(interaction, {
      type: ResponseType.DeferredMessageUpdate,
    });
    if (!isOurs) return;
    let problem: string | undefined;
    try {
      problem = await run(press, await options.toActor(interaction));
    } catch (error) {
      if (isRefusal(error))
        log.info({ interaction: interaction.id, code: error.code }, "button click refused");
      else log.error({ interaction: interaction.id, err: error }, "button click not handled");
      problem = toNotice(error);
    }
    if (problem !== undefined) await api.followUp(tokenOf(interaction), toPrivateSentence(problem));
  };
}

/** How long a result is waited for. Discord's deadline is three seconds. */
const answerWithinMs = 2000;

/** What {@link createActionHandler} works with. */
interface ActionHandlerOptions {
  readonly api: Pick<DiscordApi, "followUp">;
  readonly acknowledgements: Acknowledgements;
  readonly receiver: Pick<Receiver, "press" | "isStopping">;
  readonly toActor: ToActor;
  /** Makes a call of its own from what an action asks for, and answers it within the rest of the deadline. */
  readonly takeCall: (interaction: Interaction, call: ActionCall, spentMs: number) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Handles clicks on the buttons below answers, and what is submitted with their forms. The response is the
 * result, which only the person sees, or a call. All instances handle each click, and Discord takes one
 * response.
 */
export function createActionHandler(
  options: ActionHandlerOptions,
): (interaction: Interaction, press: Press) => Promise<void> {
  const { acknowledgements, receiver, clock, log } = options;

  /** @throws ParleyError also where there is no result within Discord's deadline */
  async function run(interaction: Interaction, press: Press): Promise<PressResult> {
    const running = options.toActor(interaction).then((by) => receiver.press(press, by));
    const result = await inTime(running, answerWithinMs, { clock });
    if (result === undefined)
      throw new ParleyError("store-unavailable", "no result within Discord's deadline");
    return result;
  }

  async function tellAll(
    interaction: Interaction,
    told: Extract<PressResult, { kind: "told" }>,
  ): Promise<void> {
    const [first, ...others] = toPrivateMessages(told);
    const isOurs = await acknowledgements.send(interaction, {
      type: ResponseType.ChannelMessageWithSource,
      data: first,
    });
    if (!isOurs) return;
    for (const content of others) await options.api.followUp(tokenOf(interaction), content);
  }

  /** Discord's response takes no files, so they follow it. */
  async function giveFiles(
    interaction: Interaction,
    { markdown, files }: Extract<PressResult, { kind: "files" }>,
  ): Promise<void> {
    if (!(await acknowledgements.tell(interaction, markdown))) return;
    const token = tokenOf(interaction);
    const maxBytes = interaction.attachment_size_limit;
    try {
      await createUploads(undefined).run(files, maxBytes, async (batch) => {
        const content = { ...toPrivateSentence(""), content: "" };
        return (await options.api.followUp(token, withAltTexts(content, batch), { files: batch })).id;
      });
    } catch (error) {
      log.warn({ interaction: interaction.id, err: error }, "files of a press not shown");
      await options.api.followUp(token, toPrivateSentence(toNotice(error)));
    }
  }

  async function respond(
    interaction: Interaction,
    { kind, key }: Press,
    result: PressResult,
    spentMs: number,
  ): Promise<void> {
    switch (result.kind) {
      case "told":
        await tellAll(interaction, result);
        return;
      case "files":
        await giveFiles(interaction, result);
        return;
      case "gone":
        await acknowledgements.tell(interaction, goneNotice(kind));
        return;
      case "problems":
        await acknowledgements.tell(interaction, Object.values(result.problems).join("\n"));
        return;
      case "form":
        await acknowledgements.send(interaction, {
          type: ResponseType.Modal,
          data: { ...toFormModal(result.form, {}), custom_id: toActionId(kind, key) },
        });
        return;
      case "call":
        await options.takeCall(interaction, result.call, spentMs);
        return;
      case "done":
        await acknowledgements.send(interaction, { type: ResponseType.DeferredMessageUpdate });
    }
  }

  return async (interaction, press) => {
    if (receiver.isStopping())
      return acknowledgements.refuse(interaction, new ParleyError("stopping", "the process is stopping"));
    const startedAt = clock.monotonic();
    let result: PressResult;
    try {
      result = await run(interaction, press);
    } catch (error) {
      log.info({ interaction: interaction.id, err: error }, "button below an answer not handled");
      await acknowledgements.tell(interaction, toNotice(error));
      return;
    }
    await respond(interaction, press, result, clock.monotonic() - startedAt);
  };
}

/** Opens and submits forms. Every instance does so with each interaction: saving twice changes nothing. */
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
