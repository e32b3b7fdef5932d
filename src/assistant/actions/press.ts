import type { Actor, Asker, Access } from "../../core/access.ts";
import { isParleyError } from "../../core/errors.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Receiver } from "../../core/platform.ts";
import type { Receipt } from "../../core/receipt.ts";
import {
  parseActionKey,
  type ActionCall,
  type Press,
  type PressKind,
  type PressResult,
} from "../../core/press.ts";
import type { SpendingLedger } from "../../core/spending.ts";
import type { Claims, Conversations, Rating, StoredMessage } from "../../core/storage.ts";
import type { Meter } from "../../core/telemetry.ts";
import { toLanguage } from "../../words/languages.ts";
import { inLanguage, translate } from "../../words/translate.ts";
import type { RerunTurn } from "../scheduling/rerun-turn.ts";
import type { StopTurn } from "../scheduling/stop-turn.ts";
import type { SettingsForms } from "../settings/settings-desk.ts";
import { isFile } from "../turn/receipt-draft.ts";
import {
  type Answer,
  createAnswerAnew,
  type AnswerAnewOptions,
  heardWordsOf,
  readTranscriptForm,
  toTranscriptForm,
  createOtherModels,
  type OtherModelsOptions,
} from "./answer-anew.ts";
import { toDetails, type NamedFile } from "./details.ts";
import { toUtcDay } from "../../support/clock.ts";
import { createRecent } from "../../support/recent.ts";
import type { Form } from "../../core/forms.ts";
import type { PictureRef } from "../../core/events.ts";
import { toWrittenCall } from "../../core/command-input.ts";
import { picturesIn, picturePartsOf } from "../turn/stored-pictures.ts";
import { messageIds, textOf, voicesIn } from "../turn/stored-messages.ts";
import { toTranscriptFiles } from "../turn/transcript.ts";

/** The options of {@link createPress}. */
interface PressOptions
  extends
    AnswerAnewOptions,
    OtherModelsOptions,
    RecentPressesOptions,
    Omit<RateAnswerOptions, "conversations"> {
  readonly conversations: Pick<Conversations, "find" | "recent" | "settings" | "rate" | "summary">;
  readonly inbox: Pick<Inbox, "lookUp" | "listOpenIn">;
  readonly access: Pick<Access, "isAdmin" | "refusalOf">;
  /** @throws ParleyError `access-denied` by the operator's rules or those of the place */
  readonly expectAllowed: (asker: Asker) => Promise<void>;
  readonly rerun: RerunTurn;
  readonly stop: StopTurn;
  readonly forms: SettingsForms;
}

type Handler = (press: Press, by: Actor) => Promise<PressResult>;

/** Creates {@link Receiver.press}, which runs what people press. */
export function createPress(options: PressOptions): Receiver["press"] {
  const { conversations, expectAllowed, rerun, forms } = options;
  const answerAnew = createAnswerAnew(options);
  const otherModels = createOtherModels(options);
  const presses = createRecentPresses(options);
  const rate = createRateAnswer(options);

  async function questionsOf(conversationId: string, { files }: Receipt): Promise<readonly StoredMessage[]> {
    const questions = await Promise.all(
      (files?.of ?? []).map((id) => conversations.find(conversationId, id)),
    );
    return questions.filter((question) => question !== undefined);
  }

  /** The transcripts of the question's recordings that are still stored, as files. */
  async function saveTranscript({ conversationId, message }: Answer): Promise<PressResult> {
    const questions = message.receipt === undefined ? [] : await questionsOf(conversationId, message.receipt);
    const voices = questions.flatMap((question) => voicesIn(question)).map(({ part }) => part);
    if (voices.length === 0) return { kind: "gone" };
    return {
      kind: "files",
      markdown: voices.map(({ name }) => translate("transcript.of", { name })).join("\n"),
      files: voices.flatMap(toTranscriptFiles),
    };
  }

  /** The files of the question that are still stored. Erased messages do not name theirs. */
  async function filesOf(conversationId: string, receipt: Receipt): Promise<NamedFile[]> {
    return (await questionsOf(conversationId, receipt))
      .flatMap(({ parts }) => parts)
      .filter(isFile)
      .map((part) => ({ name: part.name, ...(part.kind === "unread" ? { unread: part.reason } : {}) }));
  }

  async function detailsOf(
    conversationId: string,
    { receipt, sources }: StoredMessage,
    { origin }: Actor,
  ): Promise<PressResult> {
    if (receipt === undefined) return { kind: "gone" };
    const isShown = receipt.context?.summedUp !== undefined && origin?.readsHistory !== false;
    const [files, summary] = await Promise.all([
      filesOf(conversationId, receipt),
      isShown ? conversations.summary(conversationId) : undefined,
    ]);
    const markdown = toDetails(receipt, files, summary);
    return { kind: "told", markdown, ...(sources === undefined ? {} : { sources }) };
  }

  async function stop({ key }: Press, by: Actor): Promise<PressResult> {
    const outcome = await options.stop(key, by);
    return outcome === "stopped" ? { kind: "done" } : { kind: "told", markdown: translate("steer.ended") };
  }

  async function oncePerClick(
    result: PressResult,
    { kind, key }: Press,
    { platform, author }: Actor,
  ): Promise<PressResult> {
    if (result.kind !== "call") return result;
    const isFirst = await presses.isFirst(`${kind} ${key}`, { platform, personId: author.id });
    return isFirst ? result : { kind: "done" };
  }

  /** Makes the handler of a button below a stored answer. */
  function below(run: (answer: Answer, press: Press, by: Actor) => Promise<PressResult>): Handler {
    return async (press, by) => {
      const answer = await findAnswer(conversations, press.key, by);
      return answer === undefined ? { kind: "gone" } : await run(answer, press, by);
    };
  }

  /** Like `below`, for a button that shows something of the question. In private only its author may. */
  function belowQuestion(
    run: (
      answer: Answer,
      question: StoredMessage | undefined,
      press: Press,
      by: Actor,
    ) => Promise<PressResult>,
  ): Handler {
    return below(async (answer, press, by) => {
      const question = await findQuestion(conversations, answer.conversationId, answer.message);
      const isAnothers = question !== undefined && question.author?.id !== by.author.id;
      return press.isPrivate === true && isAnothers
        ? { kind: "gone" }
        : await run(answer, question, press, by);
    });
  }

  function onPictures(run: (pictures: PictureAnswer, press: Press) => PressResult): Handler {
    return belowQuestion(({ conversationId, message }, question, press, by) =>
      oncePerClick(run({ conversationId, answer: message, question }, press), press, by),
    );
  }

  const handlers: Readonly<Record<PressKind, Handler>> = {
    retry: ({ key }, by) => rerun.retry(key, by),
    confirm: ({ key }, by) => rerun.confirm(key, by),
    stop,
    regenerate: below((answer, _, by) => answerAnew({ kind: "regenerate" }, answer, by)),
    continue: below((answer, _, by) => answerAnew({ kind: "continue" }, answer, by)),
    model: belowQuestion((answer, _, press, by) => regenerateWithOther(press, answer, by)),
    transcript: belowQuestion((answer, _, press, by) => fixTranscript(press, answer, by)),
    files: belowQuestion((answer) => saveTranscript(answer)),
    again: onPictures((pictures) => drawAgain(pictures)),
    change: onPictures((pictures, { key, values }) => changePicture(pictures, key, values)),
    details: below(({ conversationId, message }, _, by) => detailsOf(conversationId, message, by)),
    good: below((answer, _, by) => rate(answer, "good", by)),
    bad: below((answer, _, by) => rate(answer, "bad", by)),
    settings: ({ key, values }, by) =>
      values === undefined ? forms.open(key, by) : forms.submit(key, by, values),
  };

  /** Opens a form with the recognized words. Submitting it answers anew, or shows the corrected words. */
  async function fixTranscript({ key, values }: Press, answer: Answer, by: Actor): Promise<PressResult> {
    const heard = await heardWordsOf(conversations, answer.conversationId, answer.message);
    if (heard.length === 0) return { kind: "gone" };
    if (values === undefined) {
      const check = await answerAnew("check", answer, by, heard);
      if (check.kind !== "done") return check;
      const isAnswered = answer.message.receipt?.calls.at(-1)?.operation === "chat";
      return { kind: "form", form: toTranscriptForm(key, heard, { isAnswered }) };
    }
    const submitted = readTranscriptForm(heard, values);
    if ("result" in submitted) return submitted.result;
    return await answerAnew({ kind: "edit" }, answer, by, submitted.fixed);
  }

  /** Opens a form with the models that can answer instead. Submitting it makes the chosen one answer. */
  async function regenerateWithOther(
    { key, values }: Press,
    answer: Answer,
    by: Actor,
  ): Promise<PressResult> {
    const check = await answerAnew("check", answer, by);
    if (check.kind !== "done") return check;
    const none: PressResult = { kind: "told", markdown: translate("other-model.none") };
    if (values === undefined) {
      const form = await otherModels.form(key, answer);
      return form === undefined ? none : { kind: "form", form };
    }
    const chosen = await otherModels.choose(answer, values);
    if ("none" in chosen) return none;
    if ("problems" in chosen) return { kind: "problems", problems: chosen.problems };
    return await answerAnew({ kind: "regenerate", model: chosen.model }, answer, by);
  }

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

/** The options of {@link createRateAnswer}. */
interface RateAnswerOptions {
  readonly conversations: Pick<Conversations, "rate">;
  readonly ledger: Pick<SpendingLedger, "rate">;
  readonly meter: Meter;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** Returns a function that keeps a person's rating of an answer, and counts it by model and command. */
function createRateAnswer({ conversations, ledger, meter, now }: RateAnswerOptions) {
  return async (
    answer: Answer,
    rating: Rating,
    { platform, author, origin }: Actor,
  ): Promise<PressResult> => {
    const { conversationId, message, attempt } = answer;
    // The button of an answer that was replaced must not rate the one in its place.
    if (attempt !== undefined && attempt !== (message.attempt ?? 1)) return { kind: "gone" };
    const outcome = await conversations.rate(conversationId, message.id, { personId: author.id, rating });
    if (outcome === "gone") return { kind: "gone" };
    const last = message.receipt?.calls.at(-1);
    const model = last?.model ?? last?.asked ?? "";
    // A rating that is stored already is counted too, since the process may have ended before it was counted.
    const labels = {
      personId: author.id,
      channel: origin?.channel,
      model,
      operation: last?.operation ?? "chat",
      command: message.command,
      answer: `${message.id} ${message.attempt ?? 1}`,
      day: toUtcDay(message.createdAt),
    } as const;
    await ledger.rate(labels, rating, now());
    if (outcome === "rated") meter({ kind: "rated", platform, rating, model });
    return { kind: "told", markdown: translate("press.rated") };
  };
}

/** Two uses of a button by one person within so many milliseconds are a double click. */
const doubleClickMs = 1000;
const maxRemembered = 1000;

/** The options of {@link createRecentPresses}. */
interface RecentPressesOptions {
  /** Returns Unix milliseconds. */
  readonly now: () => number;
  readonly claims: Claims;
  /** Whether processes share the presses of a platform. Otherwise each process gets all of them. */
  readonly areSharedOut: (platform: string) => boolean;
}

/** Tells double clicks from separate presses. */
interface RecentPresses {
  /** Records a press. Returns false if the same person pressed the same button less than a second ago. */
  isFirst(button: string, by: { readonly platform: string; readonly personId: string }): Promise<boolean>;
}

/** Remembers this process's last 1,000 presses, and claims those that another process may get again. */
export function createRecentPresses({ now, claims, areSharedOut }: RecentPressesOptions): RecentPresses {
  const usedAt = createRecent<number>(maxRemembered);
  return {
    async isFirst(button, { platform, personId }) {
      const name = `${personId} ${button}`;
      const sinceMs = now() - (usedAt.get(name) ?? Number.NEGATIVE_INFINITY);
      // A clock that was set back must not block the button.
      if (sinceMs >= 0 && sinceMs < doubleClickMs) return false;
      usedAt.set(name, now());
      // If every process gets each press, another process's claim is for the same press.
      if (!claims.isShared || !areSharedOut(platform)) return true;
      try {
        return await claims.claim(`press ${name}`, doubleClickMs);
      } catch (error) {
        // Accepting the call reports the unavailable store.
        if (isParleyError(error, "store-unavailable")) return true;
        throw error;
      }
    },
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
interface PictureAnswer {
  readonly conversationId: string;
  readonly answer: StoredMessage;
  /** The first message that it answers, or `undefined` if that is erased. */
  readonly question: StoredMessage | undefined;
}

/** Finds the first message that an answer answers. */
function findQuestion(
  conversations: Pick<Conversations, "find">,
  conversationId: string,
  { turnKey }: StoredMessage,
): Promise<StoredMessage | undefined> {
  return conversations.find(conversationId, messageIds.user(turnKey));
}

/** Asks again with the same prompt, model, size, count and pictures of the question. */
function drawAgain(target: PictureAnswer): PressResult {
  const { answer, question } = target;
  if (question === undefined) return { kind: "gone" };
  const last = answer.receipt?.calls.at(-1);
  const model = last === undefined ? {} : { model: last.asked };
  const call = answer.call ?? question.call;
  const pictures =
    call?.pictures === undefined ? refsOf(target.conversationId, question) : { pictures: call.pictures };
  const [{ altText = "" } = {}] = picturesIn(answer.parts);
  if (call !== undefined || last?.operation === "image") {
    // Earlier versions did not store the call.
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

/** Returns a form for the change, or the call that makes it. */
function changePicture(
  target: PictureAnswer,
  key: string,
  values: Readonly<Record<string, string>> | undefined,
): PressResult {
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

/** A lone command has its own conversation, named by its key. Calls that follow from it stand alone too. */
function toCall(
  { conversationId, answer }: PictureAnswer,
  call: Omit<ActionCall, "conversationId">,
): PressResult {
  const isLone = answer.turnKey === conversationId;
  return { kind: "call", call: { ...call, ...(isLone ? {} : { conversationId }) } };
}
