import type { Form } from "../../core/forms.ts";
import type { PictureRef } from "../../core/events.ts";
import type { ActionCall, ActionResult } from "../../core/reply-actions.ts";
import type { Conversations, StoredMessage } from "../../core/storage.ts";
import { translate } from "../../words/translate.ts";
import { toWrittenCall } from "../../core/written-call.ts";
import { picturesIn } from "../turn/show-pictures.ts";
import { picturePartsOf } from "../turn/stored-pictures.ts";
import { messageIds, textOf } from "../turn/stored-messages.ts";

/** The command that draws and changes pictures, and the one that asks the chat model. */
const drawCommand = "imagine";
const askCommand = "ask";
/** Longest description of a change, in characters: what forms of all platforms take. */
const maxChangeChars = 3000;
/** Alt texts of pictures are cut there: a longer prompt is in its question alone. */
const wholeAltTextChars = 1000;

/** An answer with pictures that a button is used on. */
export interface PictureAnswer {
  readonly conversationId: string;
  readonly answer: StoredMessage;
  /** The first message that it answers. `undefined`: erased. */
  readonly question: StoredMessage | undefined;
}

/** The first message that an answer answers. */
export function findQuestion(
  conversations: Pick<Conversations, "find">,
  conversationId: string,
  { turnKey }: StoredMessage,
): Promise<StoredMessage | undefined> {
  return conversations.find(conversationId, messageIds.user(turnKey));
}

/** The same prompt, model, size and count once more; what the question showed comes along. */
export function drawAgain(target: PictureAnswer): ActionResult {
  const { answer, question } = target;
  if (question === undefined) return { kind: "gone" };
  const last = answer.receipt?.calls.at(-1);
  const model = last === undefined ? {} : { model: last.asked };
  const call = answer.call ?? question.call;
  const pictures =
    call?.pictures === undefined ? refsOf(target.conversationId, question) : { pictures: call.pictures };
  const [{ altText = "" } = {}] = picturesIn(answer.parts);
  if (call !== undefined || last?.operation === "image") {
    // Earlier versions have not stored the call.
    const { name, options } = call ?? { name: drawCommand, options: { prompt: altText } };
    const all: Readonly<Record<string, string | number | boolean>> = { ...options, ...model };
    const { prompt, ...others } = all;
    const written = toWrittenCall(name, typeof prompt === "string" ? prompt : undefined, others);
    return toCall(target, { name, options: all, ...pictures, written });
  }
  // The alt text holds the words of all messages that were answered together.
  const asked = altText !== "" && altText.length < wholeAltTextChars ? altText : textOf(question.parts);
  if (asked === "") return { kind: "gone" };
  return toCall(target, {
    name: askCommand,
    options: { prompt: asked, ...model },
    ...pictures,
    written: asked,
  });
}

/** A form for the change, or the call that makes it. */
export function changePicture(
  target: PictureAnswer,
  key: string,
  values: Readonly<Record<string, string>> | undefined,
): ActionResult {
  const count = picturesIn(target.answer.parts).length;
  if (count === 0) return { kind: "gone" };
  if (values === undefined) return { kind: "form", form: toForm(key, count) };
  const change = (values["change"] ?? "").trim().slice(0, maxChangeChars);
  const number = Number(values["picture"] ?? 1);
  if (change === "") return { kind: "problems", problems: { change: translate("change.what.missing") } };
  if (!Number.isInteger(number) || number < 1 || number > count)
    return { kind: "problems", problems: { picture: translate("change.which.missing", { count }) } };
  const { conversationId, answer } = target;
  return toCall(target, {
    name: drawCommand,
    options: { prompt: change },
    pictures: [{ conversationId, messageId: answer.id, number }],
    written: toWrittenCall(drawCommand, change),
  });
}

function toForm(key: string, count: number): Form {
  const numbers = Array.from({ length: count }, (_, index) => `${index + 1}`);
  const which = {
    name: "picture",
    label: translate("change.which"),
    description: translate("change.which.hint"),
    value: "1",
    options: numbers.map((value) => ({
      value,
      label: translate("change.which.option", { number: value, count }),
    })),
    maxChars: 2,
    isLong: false,
    placeholder: "1",
    isRequired: true,
  };
  return {
    key,
    title: translate("change.title"),
    introduction: translate("change.introduction"),
    fields: [
      {
        name: "change",
        label: translate("change.what"),
        description: translate("change.what.hint"),
        value: "",
        maxChars: maxChangeChars,
        isLong: true,
        placeholder: translate("change.what.example"),
        isRequired: true,
      },
      ...(count === 1 ? [] : [which]),
    ],
    submitLabel: translate("change.submit"),
  };
}

function refsOf(
  conversationId: string,
  question: StoredMessage,
): { readonly pictures?: readonly PictureRef[] } {
  const pictures = picturePartsOf(question).map((_, index) => ({
    conversationId,
    messageId: question.id,
    number: index + 1,
  }));
  return pictures.length === 0 ? {} : { pictures };
}

/** A lone command has a conversation of its own, named by its key: what follows from it stands alone too. */
function toCall(
  { conversationId, answer }: PictureAnswer,
  call: Omit<ActionCall, "conversationId">,
): ActionResult {
  const isLone = answer.turnKey === conversationId;
  return { kind: "call", call: { ...call, ...(isLone ? {} : { conversationId }) } };
}
