import {
  ComponentType,
  InteractionResponseType as ResponseType,
  InteractionResponseType,
  type APIMessageComponentInteraction,
  type APIModalSubmitInteraction,
} from "discord.js";
import type { Actor } from "../../../core/access.ts";
import type { Clock } from "../../../core/clock.ts";
import { goneNotice, toNotice } from "../../../core/error-messages.ts";
import { ParleyError, isRefusal } from "../../../core/errors.ts";
import type { Form } from "../../../core/forms.ts";
import type { Receiver } from "../../../core/platform.ts";
import type { ActionCall, Press, PressResult } from "../../../core/press.ts";
import type { Log } from "../../../core/telemetry.ts";
import { inTime } from "../../../support/clock.ts";
import { translate } from "../../../words/translate.ts";
import type { Acknowledgements, FreshTokens } from "./acknowledgements.ts";
import type { DiscordApi, InteractionToken } from "../transport/api.ts";
import {
  privateFlags,
  toDiscordContent,
  toPrivateMessages,
  toPrivateSentence,
  toActionId,
} from "../reply/content.ts";
import {
  formOfFixButton,
  formOfModal,
  formSelectId,
  readFormModal,
  toFixButton,
  toFormModal,
} from "./form-modal.ts";
import { createUploads, withAltTexts } from "../intake/files.ts";
import { toAuthor } from "../intake/incoming.ts";
import type { Origins } from "../intake/origin.ts";
import { createRecent } from "../../../support/recent.ts";

type Interaction = APIMessageComponentInteraction | APIModalSubmitInteraction;

/**
 * Handles clicks on the buttons that change a reply (Retry, confirm, Stop, Regenerate, Continue) or rate it,
 * and forms that change one: acknowledges the click, keeps its token for edits of the message, and calls the
 * receiver. Problems are told to the person alone.
 */
export function createButtonHandler(options: {
  readonly api: Pick<DiscordApi, "followUp">;
  readonly acknowledgements: Acknowledgements;
  readonly receiver: Receiver;
  readonly freshTokens: FreshTokens;
  readonly origins: Pick<Origins, "ofInteraction">;
  readonly log: Log;
}): (interaction: Interaction, press: Press) => Promise<void> {
  const { api, acknowledgements, receiver, freshTokens, origins, log } = options;

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
    const user = interaction.member?.user ?? interaction.user;
    if (user === undefined) return;
    const token: InteractionToken = { applicationId: interaction.application_id, token: interaction.token };
    // A process that is stopping can still stop an answer, because that only sets a mark.
    if (receiver.isStopping() && press.kind !== "stop")
      return acknowledgements.refuse(interaction, new ParleyError("stopping", "the process is stopping"));
    // One of several instances handles a click: the one whose response Discord takes.
    const isOurs = await acknowledgements.send(interaction, {
      type: InteractionResponseType.DeferredMessageUpdate,
    });
    if (!isOurs) return;
    if (interaction.message !== undefined) freshTokens.add(interaction.message.id, token);
    let problem: string | undefined;
    try {
      const origin = await origins.ofInteraction(interaction);
      problem = await run(press, {
        platform: "discord",
        author: toAuthor(user, interaction.member, interaction.locale),
        origin,
      });
    } catch (error) {
      if (isRefusal(error))
        log.info({ interaction: interaction.id, code: error.code }, "button click refused");
      else log.error({ interaction: interaction.id, err: error }, "button click not handled");
      problem = toNotice(error);
    }
    if (problem !== undefined) await api.followUp(token, toPrivateSentence(problem));
  };
}

/** How long a result is waited for. Discord's deadline is three seconds. */
const answerWithinMs = 2000;

/** What {@link createActionHandler} works with. */
interface ActionHandlerOptions {
  readonly api: Pick<DiscordApi, "followUp">;
  readonly acknowledgements: Acknowledgements;
  readonly receiver: Pick<Receiver, "press" | "isStopping">;
  readonly toActor: (interaction: Interaction) => Promise<Actor | undefined>;
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

  async function run(interaction: Interaction, press: Press): Promise<PressResult | undefined> {
    const by = await options.toActor(interaction);
    return by && (await receiver.press(press, by));
  }

  /** @throws ParleyError that says why there is no result within Discord's deadline */
  async function withinDeadline(running: Promise<PressResult | undefined>): Promise<PressResult | undefined> {
    const ended = await inTime(
      running.then((result) => ({ result })),
      answerWithinMs,
      { clock },
    );
    if (ended === undefined)
      throw new ParleyError("store-unavailable", "no result within Discord's deadline");
    return ended.result;
  }

  const tell = (interaction: Interaction, text: string): Promise<boolean> =>
    acknowledgements.send(interaction, {
      type: InteractionResponseType.ChannelMessageWithSource,
      data: toPrivateSentence(text),
    });

  async function tellAll(
    interaction: Interaction,
    told: Extract<PressResult, { kind: "told" }>,
  ): Promise<void> {
    const [first, ...others] = toPrivateMessages(told);
    const isOurs = await acknowledgements.send(interaction, {
      type: InteractionResponseType.ChannelMessageWithSource,
      data: first,
    });
    if (!isOurs) return;
    const token = { applicationId: interaction.application_id, token: interaction.token };
    for (const content of others) await options.api.followUp(token, content);
  }

  /** Discord's response takes no files, so they follow it. */
  async function giveFiles(
    interaction: Interaction,
    { markdown, files }: Extract<PressResult, { kind: "files" }>,
  ): Promise<void> {
    if (!(await tell(interaction, markdown))) return;
    const token = { applicationId: interaction.application_id, token: interaction.token };
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
        await tell(interaction, goneNotice(kind));
        return;
      case "problems":
        await tell(interaction, Object.values(result.problems).join("\n"));
        return;
      case "form":
        await acknowledgements.send(interaction, {
          type: InteractionResponseType.Modal,
          data: { ...toFormModal(result.form, {}), custom_id: toActionId(kind, key) },
        });
        return;
      case "call":
        await options.takeCall(interaction, result.call, spentMs);
        return;
      case "done":
        await acknowledgements.send(interaction, { type: InteractionResponseType.DeferredMessageUpdate });
    }
  }

  return async (interaction, press) => {
    if (receiver.isStopping())
      return acknowledgements.refuse(interaction, new ParleyError("stopping", "the process is stopping"));
    const startedAt = clock.monotonic();
    let result: PressResult | undefined;
    try {
      result = await withinDeadline(run(interaction, press));
    } catch (error) {
      log.info({ interaction: interaction.id, err: error }, "button below an answer not handled");
      await tell(interaction, toNotice(error));
      return;
    }
    if (result !== undefined) await respond(interaction, press, result, clock.monotonic() - startedAt);
  };
}

/** How many inputs with problems are kept until people correct them. */
const maxDrafts = 500;

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
  readonly origins: Pick<Origins, "ofInteraction">;
  readonly notes: () => Readonly<Record<string, string>>;
}): FormClicks {
  const { receiver, acknowledgements, origins, notes } = options;
  const drafts = createRecent<Readonly<Record<string, string>>>(maxDrafts);

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
    const result = await receiver.press({ kind: "settings", key }, by);
    if (result.kind !== "form") throw new ParleyError("internal", "settings without a form");
    const modal = toFormModal(withDraft(result.form, draft), notes());
    await acknowledgements.send(interaction, { type: ResponseType.Modal, data: modal });
  }

  async function submitForm(interaction: APIModalSubmitInteraction): Promise<void> {
    const key = formOfModal(interaction.data.custom_id) ?? "";
    const values = readFormModal(interaction);
    const by = await actorOf(interaction);
    const result = await receiver.press({ kind: "settings", key, values }, by);
    if (result.kind === "told") {
      drafts.delete(draftKey(by, key));
      const { overflow: _, ...content } = toDiscordContent({ text: result.markdown, state: "finished" });
      await acknowledgements.send(interaction, {
        type: ResponseType.ChannelMessageWithSource,
        data: { ...content, flags: privateFlags },
      });
      return;
    }
    if (result.kind !== "problems") throw new ParleyError("internal", "settings neither saved nor refused");
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
