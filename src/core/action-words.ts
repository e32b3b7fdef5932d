import { currentLanguage, translateDeclared } from "../words/translate.ts";
import { replyButtons, type ReplyActionKind } from "./press.ts";

/**
 * The label of a button below an answer, in the person's language. Other programs rely on the English ones.
 */
export function actionLabel(kind: ReplyActionKind): string {
  return translateDeclared(currentLanguage(), `button.${kind}`, replyButtons[kind].label);
}
