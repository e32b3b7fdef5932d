import type { FixedWords, IncomingEvent } from "../../core/events.ts";
import type { Form, FormField } from "../../core/forms.ts";
import type { ActionResult } from "../../core/reply-actions.ts";
import type { Conversations, StoredMessage } from "../../core/storage.ts";
import { translate } from "../../words/translate.ts";
import { isFixable, maxFixableChars, voicesIn } from "../turn/fixed-words.ts";

/** A form has as many fields as every platform shows. */
const maxFields = 5;
const maxLabelChars = 45;

/** The words of a recording of an answer's question. */
export interface HeardWords extends FixedWords {
  /** {@link IncomingEvent.key} of the message or command that has the recording. */
  readonly messageKey: string;
}

/** What a person submitted: the corrected words, or the result to show instead. */
export type SubmittedWords = { readonly fixed: readonly HeardWords[] } | { readonly result: ActionResult };

/** The recordings of an answer's question that are still stored and fit into a form; at most five. */
export async function heardWordsOf(
  conversations: Pick<Conversations, "find">,
  conversationId: string,
  { receipt }: Pick<StoredMessage, "receipt">,
): Promise<readonly HeardWords[]> {
  const questions = await Promise.all(
    (receipt?.files?.of ?? []).map((id) => conversations.find(conversationId, id)),
  );
  return questions
    .flatMap((question) =>
      // What others said in the thread is no part of the question.
      question === undefined || question.room !== undefined
        ? []
        : voicesIn(question).flatMap(({ part, position }) =>
            isFixable(part)
              ? [{ messageKey: question.turnKey, name: part.name, position, text: part.text }]
              : [],
          ),
    )
    .slice(0, maxFields);
}

/** A form with the words that were heard. `isAnswered`: a model has answered them; otherwise they are all that is shown. */
export function toTranscriptForm(
  key: string,
  heard: readonly HeardWords[],
  { isAnswered }: { readonly isAnswered: boolean },
): Form {
  return {
    key,
    title: translate("fix.title"),
    introduction: translate(isAnswered ? "fix.introduction" : "fix.introduction.transcript"),
    fields: heard.map(({ text, name }, index): FormField => ({
      name: toFieldName(index),
      label: name.length <= maxLabelChars ? name : `${name.slice(0, maxLabelChars - 1)}…`,
      description: translate("fix.description"),
      value: text,
      maxChars: maxFixableChars,
      isLong: true,
      placeholder: translate("fix.placeholder"),
      isRequired: true,
    })),
    ...(isAnswered ? { submitLabel: translate("fix.submit") } : {}),
  };
}

/** Checks what was submitted with a form of {@link toTranscriptForm}. A field that is missing stays as it is. */
export function readTranscriptForm(
  heard: readonly HeardWords[],
  values: Readonly<Record<string, string>>,
): SubmittedWords {
  const typed = heard.map(({ text }, index) => (values[toFieldName(index)] ?? text).trim());
  const empty = typed.flatMap((text, index) =>
    text === "" ? [[toFieldName(index), translate("fix.empty")]] : [],
  );
  if (empty.length > 0) {
    return { result: { kind: "problems", problems: Object.fromEntries(empty) as Record<string, string> } };
  }
  const fixed = heard.flatMap((one, index) => {
    const right = (typed[index] ?? "").slice(0, maxFixableChars);
    return right === one.text.trim() ? [] : [{ ...one, text: right }];
  });
  return fixed.length === 0 ? { result: { kind: "told", markdown: translate("fix.unchanged") } } : { fixed };
}

/**
 * Those of a turn's events whose words are corrected, with the corrections: each has its own, so that they are erased
 * with it. A later one of the same recording replaces an earlier one.
 */
export function withCorrections(
  events: readonly IncomingEvent[],
  fixed: readonly HeardWords[],
): IncomingEvent[] {
  return events.flatMap((event) => {
    const own = fixed.filter(({ messageKey }) => messageKey === event.key);
    if (own.length === 0) return [];
    const isReplaced = (one: FixedWords) =>
      own.some(({ name, position }) => name === one.name && position === one.position);
    const kept = (event.fixedWords ?? []).filter((one) => !isReplaced(one));
    const added = own.map(({ name, position, text }) => ({ name, position, text }));
    return [{ ...event, fixedWords: [...kept, ...added] }];
  });
}

function toFieldName(index: number): string {
  return `words-${index + 1}`;
}
