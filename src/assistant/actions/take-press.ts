import type { Actor, Asker } from "../../core/access.ts";
import { toWrittenCall } from "../../core/command-input.ts";
import type { PictureRef } from "../../core/events.ts";
import {
  type Form,
  parseActionKey,
  type ActionCall,
  type Press,
  type PressKind,
  type PressResult,
} from "../../core/press.ts";
import type { Receiver } from "../../core/receiver.ts";
import type { ReplyFile } from "../../core/reply.ts";
import type { Conversations, Rating, StoredMessage } from "../../core/storage.ts";
import type { Meter } from "../../core/telemetry.ts";
import { createKeyedQueue } from "../../support/queues.ts";
import { createRecent } from "../../support/recent.ts";
import { inLanguage, translate } from "../../words/translate.ts";
import { toLanguage } from "../../words/languages.ts";
import type { Steering } from "../scheduling/steer-turn.ts";
import type { SettingsForms } from "../settings/settings-desk.ts";
import { isFile } from "../turn/turn.ts";
import { messageIds } from "../../core/message-ids.ts";
import { textOf, voicesIn, picturesIn, picturePartsOf } from "../turn/stored-messages.ts";
import { toTranscriptFiles } from "../turn/transcript.ts";
import {
  type Answer,
  type AnswerHandler,
  type AnswerAnewOptions,
  createAnswerAnew,
  filesQuestionsOf,
} from "./answer-anew.ts";
import { toDetails } from "./details.ts";

interface PressOptions extends AnswerAnewOptions {
  readonly conversations: Pick<Conversations, "find" | "recent" | "settings" | "rate" | "summary">;
  /** @throws ParleyError `access-denied` by the operator's rules or those of the place */
  readonly expectAllowed: (asker: Asker) => Promise<void>;
  readonly steering: Steering;
  readonly forms: SettingsForms;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly meter: Meter;
}

type Handler = (press: Press, by: Actor) => Promise<PressResult>;

/** Creates {@link Receiver.press}, which runs what people press. */
export function createPress(options: PressOptions): Receiver["press"] {
  const { conversations, expectAllowed, forms, meter, now, steering } = options;
  const anew = createAnswerAnew(options);
  const isFirstClick = createDoubleClicks(now);
  /** The files of long recordings are made once at a time for a person. */
  const saving = createKeyedQueue();

  /** The transcripts of the question's recordings that are still stored, as files. */
  async function saveTranscript({ conversationId, message }: Answer): Promise<PressResult> {
    const questions = await filesQuestionsOf(conversations, conversationId, message);
    const voices = questions.flatMap((question) => voicesIn(question)).map(({ part }) => part);
    if (voices.length === 0) return { kind: "gone" };
    const files: ReplyFile[] = [];
    for (const voice of voices) files.push(...(await toTranscriptFiles(voice)));
    const markdown = voices.map(({ name }) => translate("transcript.of", { name })).join("\n");
    return { kind: "files", markdown, files };
  }

  async function detailsOf(
    { conversationId, message }: Answer,
    _: Press,
    { origin }: Actor,
  ): Promise<PressResult> {
    const { receipt, sources } = message;
    if (receipt === undefined) return { kind: "gone" };
    const isShown = receipt.context?.summedUp !== undefined && origin?.readsHistory !== false;
    // Erased messages do not name their files.
    const [questions, summary] = await Promise.all([
      filesQuestionsOf(conversations, conversationId, message),
      isShown ? conversations.summary(conversationId) : undefined,
    ]);
    const files = questions.flatMap(({ parts }) => parts).filter(isFile);
    const named = files.map((part) => ({
      name: part.name,
      ...(part.kind === "unread" ? { unread: part.reason } : {}),
    }));
    const markdown = toDetails(receipt, named, summary);
    return { kind: "told", markdown, ...(sources === undefined ? {} : { sources }) };
  }

  /** Keeps a person's rating with the answer. */
  function rate(rating: Rating): AnswerHandler {
    return async ({ conversationId, message, attempt }, _, { platform, author }) => {
      // The button of an answer that was replaced must not rate the one in its place.
      if (attempt !== undefined && attempt !== (message.attempt ?? 1)) return { kind: "gone" };
      const outcome = await conversations.rate(conversationId, message.id, { personId: author.id, rating });
      if (outcome === "gone") return { kind: "gone" };
      const last = message.receipt?.calls.at(-1);
      const model = last?.model ?? last?.asked ?? "";
      if (outcome === "rated") meter({ kind: "rated", platform, rating, model });
      return { kind: "told", markdown: translate("press.rated") };
    };
  }

  /** Makes the handler of a button below a stored answer. */
  function below(run: AnswerHandler): Handler {
    return async (press, by) => {
      const answer = await findAnswer(conversations, press.key, by);
      return answer === undefined ? { kind: "gone" } : await run(answer, press, by);
    };
  }

  /** Like `below`, for a button that shows something of the question. In private only its author may. */
  function belowQuestion(
    run: (
      answer: Answer & { readonly question: StoredMessage | undefined },
      press: Press,
      by: Actor,
    ) => Promise<PressResult>,
  ): Handler {
    return below(async (answer, press, by) => {
      const { conversationId, message } = answer;
      const question = await conversations.find(conversationId, messageIds.user(message.turnKey));
      const isAnothers = question !== undefined && question.author?.id !== by.author.id;
      return press.isPrivate === true && isAnothers
        ? { kind: "gone" }
        : await run({ ...answer, question }, press, by);
    });
  }

  function onPictures(run: (pictures: PictureAnswer, press: Press) => PressResult): Handler {
    return belowQuestion(async (answer, press, by) => {
      const result = run(answer, press);
      if (result.kind !== "call") return result;
      return isFirstClick(`${press.kind} ${press.key}`, by) ? result : { kind: "done" };
    });
  }

  const handlers: Readonly<Record<PressKind, Handler>> = {
    retry: ({ key }, by) => steering.retry(key, by),
    confirm: ({ key }, by) => steering.confirm(key, by),
    stop: ({ key }, by) => steering.stop(key, by),
    regenerate: below(anew.regenerate),
    continue: below(anew.continue),
    model: belowQuestion(anew.model),
    transcript: belowQuestion(anew.transcript),
    files: belowQuestion((answer, _, by) => saving.run(by.author.id, () => saveTranscript(answer))),
    again: onPictures((pictures) => drawAgain(pictures)),
    change: onPictures((pictures, press) => changePicture(pictures, press)),
    details: below(detailsOf),
    good: below(rate("good")),
    bad: below(rate("bad")),
    settings: ({ key, values }, by) =>
      values === undefined ? forms.open(key, by) : forms.submit(key, by, values),
  };

  return async (press, by) => {
    // Managers of a place may change its rules, even rules that exclude them.
    if (press.kind !== "settings") await expectAllowed(by);
    return await inLanguage(toLanguage(by.author.locale), () => handlers[press.kind](press, by));
  };
}

/** The answer of a button's key, or `undefined` if it is erased or the key belongs to another platform. */
async function findAnswer(
  conversations: Pick<Conversations, "find">,
  key: string,
  { platform }: Actor,
): Promise<Answer | undefined> {
  const target = parseActionKey(key);
  // Ids of conversations begin with the platform, and people see only conversations of their platform.
  if (target?.conversationId.startsWith(`${platform}:`) !== true) return undefined;
  const { conversationId, messageId, attempt } = target;
  const message = await conversations.find(conversationId, messageId);
  return message && { conversationId, message, ...(attempt === undefined ? {} : { attempt }) };
}

/** Two uses of a button by one person within so many milliseconds are a double click. */
const doubleClickMs = 1000;
const maxRemembered = 1000;

/**
 * Tells double clicks from separate presses: the function returns false if the same person pressed the same
 * button less than a second ago. It remembers this process's last 1,000 presses.
 * @param now returns Unix milliseconds
 */
export function createDoubleClicks(now: () => number) {
  const usedAt = createRecent<number>(maxRemembered);
  return (button: string, { author }: Actor): boolean => {
    const name = `${author.id} ${button}`;
    const sinceMs = now() - (usedAt.get(name) ?? Number.NEGATIVE_INFINITY);
    // A clock that was set back must not block the button.
    if (sinceMs >= 0 && sinceMs < doubleClickMs) return false;
    usedAt.set(name, now());
    return true;
  };
}

/** The commands that draw or change pictures, and that ask the chat model. */
const drawCommand = "imagine";
const askCommand = "ask";
/** The longest description of a change that the forms of all platforms accept, in characters. */
const maxChangeChars = 3000;
/** Alt texts are cut at this length. Only the question then has the whole prompt. */
const wholeAltTextChars = 1000;

/** An answer with pictures whose button was pressed. */
interface PictureAnswer extends Pick<Answer, "conversationId" | "message"> {
  /** The first message that it answers, or `undefined` if that is erased. */
  readonly question: StoredMessage | undefined;
}

/** Asks again with the same prompt, model, size, count and pictures of the question. */
function drawAgain(target: PictureAnswer): PressResult {
  const { conversationId, message, question } = target;
  if (question === undefined) return { kind: "gone" };
  const last = message.receipt?.calls.at(-1);
  const model = last === undefined ? {} : { model: last.asked };
  const call = message.call ?? question.call;
  const pictures =
    call?.pictures === undefined ? refsOf(conversationId, question) : { pictures: call.pictures };
  if (call !== undefined) {
    const { name } = call;
    const options: Readonly<Record<string, string | number | boolean>> = { ...call.options, ...model };
    const { prompt, ...others } = options;
    const written = toWrittenCall(name, typeof prompt === "string" ? prompt : undefined, others);
    return toCall(target, { name, options, ...pictures, written });
  }
  const [{ altText = "" } = {}] = picturesIn(message.parts);
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

/** Returns a form for the change, or the call that makes it. */
function changePicture(target: PictureAnswer, { key, values }: Press): PressResult {
  const { conversationId, message } = target;
  const count = picturesIn(message.parts).length;
  if (count === 0) return { kind: "gone" };
  if (values === undefined) return { kind: "form", form: toForm(key, count) };
  const change = (values["change"] ?? "").trim().slice(0, maxChangeChars);
  const number = Number(values["picture"] ?? 1);
  if (change === "") return { kind: "problems", problems: { change: translate("change.what.missing") } };
  if (!Number.isInteger(number) || number < 1 || number > count)
    return { kind: "problems", problems: { picture: translate("change.which.missing", { count }) } };
  return toCall(target, {
    name: drawCommand,
    options: { prompt: change },
    pictures: [{ conversationId, messageId: message.id, number }],
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

/** A lone command has its own conversation, named by its key. Calls that follow from it stand alone too. */
function toCall(
  { conversationId, message }: PictureAnswer,
  call: Omit<ActionCall, "conversationId">,
): PressResult {
  const isLone = message.turnKey === conversationId;
  return { kind: "call", call: { ...call, ...(isLone ? {} : { conversationId }) } };
}
