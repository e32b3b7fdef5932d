import { translate } from "../words/translate.ts";
import type { AnswerRule } from "./addressee.ts";

/** Says which messages are answered under a rule. Documents say it in the same words. */
export function describeRule({ answerTo, isPeoples }: AnswerRule): string {
  if (answerTo !== "addressed") return translate(`rule.${answerTo}`);
  return translate(isPeoples ? "rule.peoples" : "rule.own");
}

/** The rules of threads, for the guide of a platform. */
export const threadRules = (): readonly string[] =>
  [false, true].map((isPeoples) => describeRule({ answerTo: "addressed", isPeoples }));
