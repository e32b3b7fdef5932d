import { InteractionResponseType, type APIMessageComponentInteraction } from "discord.js";
import type { Actor } from "../../core/access.ts";
import { ParleyError } from "../../core/errors.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { Receiver } from "../../core/platform.ts";
import { goneWords, type ReplyAction } from "../../core/reply-actions.ts";
import type { Log } from "../../core/telemetry.ts";
import { sleepUnlessAborted } from "../../support/sleep.ts";
import type { Acknowledgements } from "./acknowledgements.ts";
import { toPrivateSentence } from "./content.ts";

/** How long a result is waited for. Discord's deadline is three seconds. */
const answerWithinMs = 2000;

/**
 * Handles clicks on the buttons below answers: the result is the response to the click, for the person alone. All
 * instances handle each click, and Discord takes one response.
 */
export function createActionHandler(options: {
  readonly acknowledgements: Acknowledgements;
  readonly receiver: Pick<Receiver, "act" | "isStopping">;
  readonly toActor: (interaction: APIMessageComponentInteraction) => Promise<Actor | undefined>;
  readonly log: Log;
}): (interaction: APIMessageComponentInteraction, action: ReplyAction) => Promise<void> {
  const { acknowledgements, receiver, log } = options;

  async function run(
    interaction: APIMessageComponentInteraction,
    action: ReplyAction,
  ): Promise<string | undefined> {
    const by = await options.toActor(interaction);
    if (by === undefined) return undefined;
    const result = await receiver.act(action, by);
    return result.kind === "told" ? result.markdown : goneWords;
  }

  /** The result in words, or why there is none. `undefined`: nobody is there to be told. */
  async function wordsOf(
    interaction: APIMessageComponentInteraction,
    action: ReplyAction,
  ): Promise<string | undefined> {
    const ended = new AbortController();
    const [result] = await Promise.race([
      Promise.allSettled([run(interaction, action)]).finally(() => ended.abort()),
      sleepUnlessAborted(answerWithinMs, ended.signal).then(() => [undefined]),
    ]);
    if (result?.status === "fulfilled") return result.value;
    const error: unknown =
      result?.reason ?? new ParleyError("store-unavailable", "no result within Discord's deadline");
    log.info({ interaction: interaction.id, err: error }, "button below an answer not handled");
    return toNotice(error);
  }

  return async (interaction, action) => {
    if (receiver.isStopping())
      return acknowledgements.refuse(interaction, new ParleyError("stopping", "the process is stopping"));
    const text = await wordsOf(interaction, action);
    if (text === undefined) return;
    await acknowledgements.send(interaction, {
      type: InteractionResponseType.ChannelMessageWithSource,
      data: toPrivateSentence(text),
    });
  };
}
