import { InteractionResponseType, InteractionType, MessageFlags } from "discord-api-types/v10";
import type { APIMessageComponentInteraction, APIModalSubmitInteraction } from "discord.js";
import type { Actor } from "../../core/access.ts";
import type { Clock } from "../../core/clock.ts";
import { ParleyError } from "../../core/errors.ts";
import { goneNotice, toNotice } from "../../core/error-messages.ts";
import type { Receiver } from "../../core/platform.ts";
import type { ActionCall, ActionResult, ReplyAction } from "../../core/reply-actions.ts";
import type { Log } from "../../core/telemetry.ts";
import { sleepUnlessAborted } from "../../support/sleep.ts";
import type { Acknowledgements } from "./acknowledgements.ts";
import { toActionId, toPrivateSentence } from "./content.ts";
import { readFormModal, toFormModal } from "./form-modal.ts";

/** How long a result is waited for. Discord's deadline is three seconds. */
const answerWithinMs = 2000;

type Interaction = APIMessageComponentInteraction | APIModalSubmitInteraction;

/** What {@link createActionHandler} works with. */
export interface ActionHandlerOptions {
  readonly acknowledgements: Acknowledgements;
  readonly receiver: Pick<Receiver, "act" | "isStopping">;
  readonly toActor: (interaction: Interaction) => Promise<Actor | undefined>;
  /** Makes what an action asks for a call of its own and answers it, within what is left of the deadline. */
  readonly takeCall: (interaction: Interaction, call: ActionCall, spentMs: number) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Handles clicks on the buttons below answers, and what is submitted with their forms: the result is the response, for
 * the person alone, or a call. All instances handle each click, and Discord takes one response.
 */
export function createActionHandler(
  options: ActionHandlerOptions,
): (interaction: Interaction, action: ReplyAction) => Promise<void> {
  const { acknowledgements, receiver, clock, log } = options;

  async function run(interaction: Interaction, action: ReplyAction): Promise<ActionResult | undefined> {
    const by = await options.toActor(interaction);
    if (by === undefined) return undefined;
    const isPrivate = ((interaction.message?.flags ?? 0) & MessageFlags.Ephemeral) !== 0;
    const isForm = interaction.type === InteractionType.ModalSubmit;
    const values = isForm ? { values: readFormModal(interaction) } : {};
    return await receiver.act(action, by, { ...values, isPrivate });
  }

  /** @throws ParleyError why there is no result within Discord's deadline */
  async function inTime(running: Promise<ActionResult | undefined>): Promise<ActionResult | undefined> {
    const ended = new AbortController();
    const [result] = await Promise.race([
      Promise.allSettled([running]).finally(() => ended.abort()),
      sleepUnlessAborted(answerWithinMs, ended.signal, clock).then(() => [undefined]),
    ]);
    if (result?.status === "fulfilled") return result.value;
    throw result?.reason ?? new ParleyError("store-unavailable", "no result within Discord's deadline");
  }

  const tell = (interaction: Interaction, text: string): Promise<boolean> =>
    acknowledgements.send(interaction, {
      type: InteractionResponseType.ChannelMessageWithSource,
      data: toPrivateSentence(text),
    });

  async function respond(
    interaction: Interaction,
    { kind, key }: ReplyAction,
    result: ActionResult,
    spentMs: number,
  ): Promise<void> {
    switch (result.kind) {
      case "told":
        await tell(interaction, result.markdown);
        return;
      case "gone":
        await tell(interaction, goneNotice());
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

  return async (interaction, action) => {
    if (receiver.isStopping())
      return acknowledgements.refuse(interaction, new ParleyError("stopping", "the process is stopping"));
    const startedAt = clock.monotonic();
    let result: ActionResult | undefined;
    try {
      result = await inTime(run(interaction, action));
    } catch (error) {
      log.info({ interaction: interaction.id, err: error }, "button below an answer not handled");
      await tell(interaction, toNotice(error));
      return;
    }
    if (result !== undefined) await respond(interaction, action, result, clock.monotonic() - startedAt);
  };
}
