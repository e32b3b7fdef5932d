import type { AnswerMeter } from "../../support/answer-limits.ts";
import { maxImagesPerAnswer } from "../worst-case.ts";
import { createAnswerCounter, type AnswerCount } from "./count-answer.ts";

type Fields = Record<string, unknown>;

/**
 * Cuts an answer that was not streamed at its limits, in place: the text is shortened, what is beyond is dropped, and
 * the finish reason becomes `length`. Returns what is left.
 */
export function cutAnswer(choices: readonly unknown[], meter: AnswerMeter): AnswerCount {
  const total: AnswerCount = { textChars: 0, asideChars: 0, images: 0 };
  for (const choice of choices) {
    if (typeof choice !== "object" || choice === null) continue;
    const fields = choice as Fields;
    const message = fields["message"];
    if (typeof message !== "object" || message === null) continue;
    const count = createAnswerCounter();
    let counted = count(message);
    const isOver =
      counted.textChars > meter.left("text") ||
      counted.asideChars > meter.left("aside") ||
      counted.images > maxImagesPerAnswer;
    if (isOver) {
      const cut = cutMessage(message as Fields, Math.max(0, meter.left("text")));
      fields["message"] = cut;
      fields["finish_reason"] = "length";
      counted = createAnswerCounter()(cut);
    }
    meter.add("text", counted.textChars);
    meter.add("aside", counted.asideChars);
    total.textChars += counted.textChars;
    total.asideChars += counted.asideChars;
    total.images += counted.images;
  }
  return total;
}

/** The role, the beginning of the text and the first images of a message or delta that is over a limit. */
export function cutMessage({ role, content, images }: Fields, maxChars: number): Fields {
  return {
    ...(typeof role === "string" ? { role } : {}),
    ...(typeof content === "string" ? { content: cutText(content, maxChars) } : {}),
    ...(Array.isArray(images) ? { images: images.slice(0, maxImagesPerAnswer) } : {}),
  };
}

/** Surrogate pairs stay whole. */
function cutText(text: string, maxChars: number): string {
  const cut = text.slice(0, maxChars);
  return /[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut;
}
