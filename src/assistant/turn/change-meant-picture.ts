import { changedFromNotice } from "../../core/picture-words.ts";
import { isParleyError } from "../../core/errors.ts";
import { translate } from "../../words/translate.ts";
import type { AskedChange } from "./meant-pictures.ts";
import type { ReceiptDraft } from "./receipt-draft.ts";
import { requestChange } from "./request-change.ts";
import { keepPicture, type PartialAnswer } from "./stream-answer.ts";
import type { Turn, TurnDependencies } from "./turn.ts";

/** The name under which a change is stored, to be made again: that of the command which makes one. */
const drawCommand = "imagine";

/** Whether a model can change pictures, as far as is known. What that says of models is said when one is asked. */
export async function canChangePictures(
  { models }: Pick<TurnDependencies, "models">,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await models.choose("image-edit", undefined, signal);
    return true;
  } catch (error) {
    if (!isParleyError(error)) throw error;
    return false;
  } finally {
    models.takeNotices();
  }
}

/**
 * Makes the change that the chat model has asked for, in the place of its answer.
 * @throws ParleyError as {@link requestChange} does
 */
export async function changeMeantPicture(
  dependencies: TurnDependencies,
  turn: Turn,
  {
    asked,
    lead,
    receipt,
  }: { readonly asked: AskedChange; readonly lead: string; readonly receipt: ReceiptDraft },
  answer: PartialAnswer,
): Promise<void> {
  const { conversations, models } = dependencies;
  const { conversationId, reply, signal } = turn;
  const { instruction, picture } = asked;
  const { part, named, messageId } = picture;
  answer.text = "";
  reply.status(translate("status.changing-picture"));
  const model = await models.choose("image-edit", undefined, signal);
  answer.notices.push(...models.takeNotices());
  const request = { model, prompt: instruction, part, conversationId };
  const changed = await requestChange(dependencies, request, receipt, signal);
  const kept = { conversations, conversationId, altText: instruction };
  for (const image of changed.images) await keepPicture(kept, answer, image);
  answer.text = changed.text;
  const hasPicture = changed.images.length > 0;
  answer.notices.push(
    ...changed.notices,
    hasPicture ? changedFromNotice(named) : translate("drawn.only-words"),
  );
  if (hasPicture) {
    const pictures = [{ conversationId, messageId, number: named.number }];
    answer.call = { name: drawCommand, options: { prompt: instruction }, pictures };
  }
  reply.write({ lead, text: answer.text });
}
