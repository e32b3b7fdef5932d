import { currentLanguage, translateDeclared } from "../words/translate.ts";
import { actionLabels, type ReplyActionKind } from "./reply-actions.ts";

/** The label of a button below an answer, in the person's language. Other programs rely on the English ones. */
export function actionLabel(kind: ReplyActionKind): string {
  return translateDeclared(currentLanguage(), `button.${kind}`, actionLabels[kind]);
}
