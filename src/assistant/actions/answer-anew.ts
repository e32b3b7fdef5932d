import type { Access, Actor } from "../../core/access.ts";
import { toNotice } from "../../core/error-messages.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { IncomingEvent, FixedWords } from "../../core/events.ts";
import type { Form, FormField, Press, PressResult } from "../../core/press.ts";
import type { Gateway, Model } from "../../core/gateway.ts";
import type { AgainReason, Changed, Inbox } from "../../core/inbox.ts";
import type { Conversations, StoredMessage } from "../../core/storage.ts";
import { translate } from "../../words/translate.ts";
import type { Budgets } from "../access/budgets.ts";
import type { TurnRate } from "../access/admission.ts";
import { maySteer, type Steering } from "../scheduling/steer-turn.ts";
import { maxHistory } from "../turn/ask-model.ts";
import {
  isFixable,
  maxFixableChars,
  voicesIn,
  afterReset,
  hasPictures,
  withFixedWords,
} from "../turn/stored-messages.ts";
import type { ModelChoice } from "../turn/model-choice.ts";

export interface AnswerAnewOptions {
  readonly conversations: Pick<Conversations, "find" | "recent" | "settings">;
  readonly inbox: Pick<Inbox, "read">;
  readonly access: Pick<Access, "isAdmin" | "refusalOf">;
  readonly gateway: Pick<Gateway, "listModels" | "knownModels">;
  readonly models: Pick<ModelChoice, "allowed" | "choose" | "find">;
  readonly budgets: Pick<Budgets, "spentError" | "isFree">;
  /** Returns the error `over-budget` for an event whose author has spent a budget. */
  readonly overBudget: (event: IncomingEvent, model?: string) => Promise<ParleyError | undefined>;
  readonly turnRate: TurnRate;
  readonly steering: Pick<Steering, "again">;
}

/** A stored answer with a button below it. */
export interface Answer {
  readonly conversationId: string;
  readonly message: StoredMessage;
  /** The attempt whose answer has the button. Without it any attempt is meant. */
  readonly attempt?: number;
}

/** Handles a press of a button below a stored answer. */
export type AnswerHandler = (answer: Answer, press: Press, by: Actor) => Promise<PressResult>;

/** How many stored messages are checked for later ones than an answer. */
const maxLater = 20;

const told = (markdown: string): PressResult => ({ kind: "told", markdown });

/** The handlers of the buttons that run the turn of an answer again into the same reply. */
export function createAnswerAnew(
  options: AnswerAnewOptions,
): Readonly<Record<"regenerate" | "continue" | "model" | "transcript", AnswerHandler>> {
  const { conversations, inbox, access, models, overBudget, turnRate, steering } = options;
  const chooseOther = createOtherModels(options);

  /** Whether something was asked after an answer. */
  async function isLater({ conversationId, message }: Answer): Promise<boolean> {
    const recent = await conversations.recent(conversationId, { maxMessages: maxLater });
    const position = recent.findIndex(({ id }) => id === message.id);
    // Messages that people only saw, such as a list of models, do not count.
    const later = recent.slice(position + 1);
    return later.some((one) => one.inContext !== false && one.turnKey !== message.turnKey);
  }

  /** With `check`, it only tests whether a new answer is possible, and returns `done` if so. */
  async function run(
    wanted: AgainReason | "check",
    answer: Answer,
    by: Actor,
    { model, fixed = [] }: { readonly model?: string; readonly fixed?: readonly HeardWords[] } = {},
  ): Promise<PressResult> {
    const { message, attempt } = answer;
    const { turnKey } = message;
    if (attempt !== undefined && attempt !== (message.attempt ?? 1)) return told(translate("steer.outdated"));
    if (wanted === "continue" && message.isCut !== true) return told(translate("steer.complete"));
    const [record] = await inbox.read([turnKey]);
    if (record === undefined || record.state === "erased" || record.event.platform !== by.platform)
      return told((await isLater(answer)) ? translate("steer.not-last") : translate("steer.too-old"));
    const records = await inbox.read(record.turn?.keys ?? [turnKey]);
    if (!maySteer(by, records, access))
      throw new ParleyError("not-permitted", "somebody else's turn", {
        detail: { problem: translate("steer.not-yours") },
      });
    // A refused author would get only the refusal in place of the answer.
    if (access.refusalOf(record.event) !== undefined) return told(translate("steer.not-allowed"));
    if (wanted === "check") return { kind: "done" };
    // The person who asked pays for the new answer.
    const refusal = await overBudget(record.event, model);
    if (refusal !== undefined) throw refusal;
    const changed = await steering.again(turnKey, wanted, {
      attempt: message.attempt ?? 1,
      ...(model === undefined ? {} : { model }),
      ...(fixed.length === 0 ? {} : { toQuestion: (stored) => withCorrections(stored, fixed) }),
    });
    return changed === "done" ? { kind: "done" } : told(toWords(changed));
  }

  /** Counts as a request of the person who presses, unless nothing comes of it. */
  async function answerAnew(...wanted: Parameters<typeof run>): Promise<PressResult> {
    const [, , by] = wanted;
    const counted = await turnRate.count(by.author.id);
    if (counted.refusal !== undefined) throw counted.refusal;
    let result: PressResult | undefined;
    try {
      result = await run(...wanted);
      return result;
    } finally {
      if (result?.kind !== "done") await counted.undo();
    }
  }

  return {
    regenerate: (answer, _, by) => answerAnew("regenerate", answer, by),
    async continue(answer, _, by) {
      const { message } = answer;
      // The same model goes on, because another one would continue in other words.
      const asked = askedOf(message);
      const known = asked === undefined ? undefined : models.find(asked);
      const model = known !== undefined && models.allowed([known]).length > 0 ? { model: known.id } : {};
      return await answerAnew("continue", answer, by, model);
    },
    async model(answer, press, by) {
      const check = await run("check", answer, by);
      if (check.kind !== "done") return check;
      const chosen = await chooseOther(answer, press);
      return typeof chosen === "string"
        ? await answerAnew("regenerate", answer, by, { model: chosen })
        : chosen;
    },
    async transcript(answer, { key, values }, by) {
      const heard = await heardWordsOf(conversations, answer.conversationId, answer.message);
      if (heard.length === 0) return { kind: "gone" };
      if (values !== undefined) {
        const fixed = readTranscriptForm(heard, values);
        return Array.isArray(fixed) ? await answerAnew("edit", answer, by, { fixed }) : fixed;
      }
      const check = await run("check", answer, by);
      return check.kind === "done"
        ? { kind: "form", form: toTranscriptForm(key, heard, answer.message) }
        : check;
    },
  };
}

/** Every platform can show a form with this many fields. */
const maxFields = 5;
const maxLabelChars = 45;

/** The words of a recording in an answer's question. */
interface HeardWords extends FixedWords {
  /** The {@link IncomingEvent.key} of the message or command with the recording. */
  readonly messageKey: string;
}

/** The messages of an answer's question that have files and are still stored. */
export async function filesQuestionsOf(
  conversations: Pick<Conversations, "find">,
  conversationId: string,
  { receipt }: Pick<StoredMessage, "receipt">,
): Promise<readonly StoredMessage[]> {
  const ids = receipt?.files?.of ?? [];
  const questions = await Promise.all(ids.map((id) => conversations.find(conversationId, id)));
  return questions.filter((question) => question !== undefined);
}

/** At most five recordings of an answer's question that are still stored and fit into a form. */
export async function heardWordsOf(
  conversations: Pick<Conversations, "find">,
  conversationId: string,
  answer: Pick<StoredMessage, "receipt">,
): Promise<readonly HeardWords[]> {
  const questions = await filesQuestionsOf(conversations, conversationId, answer);
  return (
    questions
      // What others said in the thread does not belong to the question.
      .filter(({ room }) => room === undefined)
      .flatMap((question) =>
        voicesIn(question).flatMap(({ part, position }) =>
          isFixable(part)
            ? [{ messageKey: question.turnKey, name: part.name, position, text: part.text }]
            : [],
        ),
      )
      .slice(0, maxFields)
  );
}

/** A form with the recognized words, which are the whole answer of a command that transcribes. */
function toTranscriptForm(key: string, heard: readonly HeardWords[], { receipt }: StoredMessage): Form {
  const isAnswered = receipt?.calls.at(-1)?.operation === "chat";
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

/** The corrected words of a form of {@link toTranscriptForm}, or the result to show instead. */
function readTranscriptForm(
  heard: readonly HeardWords[],
  values: Readonly<Record<string, string>>,
): HeardWords[] | PressResult {
  // A missing field keeps its words.
  const typed = heard.map(({ text }, index) => (values[toFieldName(index)] ?? text).trim());
  const empty = typed.flatMap((text, index) =>
    text === "" ? [[toFieldName(index), translate("fix.empty")] as const] : [],
  );
  if (empty.length > 0) return { kind: "problems", problems: Object.fromEntries(empty) };
  const fixed = heard.flatMap((one, index) => {
    const right = (typed[index] ?? "").slice(0, maxFixableChars);
    return right === one.text.trim() ? [] : [{ ...one, text: right }];
  });
  return fixed.length === 0 ? told(translate("fix.unchanged")) : fixed;
}

/** The question with corrected words, if it has such recordings. */
export function withCorrections(stored: StoredMessage, fixed: readonly HeardWords[]): StoredMessage {
  return withFixedWords(
    stored,
    fixed.filter(({ messageKey }) => messageKey === stored.turnKey),
  );
}

/** Why a turn is not run again. */
function toWords(changed: Exclude<Changed, "done">): string {
  switch (changed) {
    case "not-last":
      return translate("steer.not-last");
    case "outdated":
      return translate("steer.outdated");
    case "under-way":
      return translate("steer.under-way");
    case "gone":
    case "unknown":
    case "unchanged":
    case "ended":
      return translate("steer.too-old");
  }
}

function toFieldName(index: number): string {
  return `words-${index + 1}`;
}

/** How long the first list of models may take, in milliseconds. Platforms wait three seconds for a form. */
const listMs = 1500;
const fieldName = "model";
const maxNameChars = 300;
/** How many models a sentence names. */
const maxNamed = 5;
const maxDescribedChars = 60;

/**
 * Asks with a form which other model is to answer. The function returns the id of the chosen model, the form
 * with the models that can answer, that the operator allows and that no spent budget refuses, or what is
 * wrong. A part of a model's name is enough if only one name contains it.
 */
function createOtherModels({ conversations, inbox, gateway, models, budgets }: AnswerAnewOptions) {
  /** @throws ParleyError `gateway-…` */
  async function listed(): Promise<readonly Model[]> {
    const known = gateway.knownModels();
    if (known.length > 0) return known;
    try {
      return await gateway.listModels(AbortSignal.timeout(listMs));
    } catch (error) {
      if (isParleyError(error)) throw error;
      throw new ParleyError("gateway-unreachable", "the list of models did not come in time", {
        cause: error,
      });
    }
  }

  /** Whether the model would be sent pictures that people have shown. */
  async function showsPictures({ conversationId }: Answer): Promise<boolean> {
    const [log, { resetAfter }] = await Promise.all([
      conversations.recent(conversationId, { maxMessages: maxHistory + 1 }),
      conversations.settings(conversationId),
    ]);
    return hasPictures(afterReset(log, resetAfter));
  }

  /** The error for a spent budget of the person who asked and pays, if any. */
  async function spentBudget({ message }: Answer): Promise<ParleyError | undefined> {
    const [record] = await inbox.read([message.turnKey]);
    if (record === undefined || record.state === "erased") return undefined;
    const { author, platform, origin } = record.event;
    return await budgets.spentError({ personId: author.id, platform, origin });
  }

  /**
   * Says why a model that was typed is not offered, or `undefined` where only a budget or nothing refuses it.
   */
  async function unfitWords(model: string, asked: string | undefined, withPictures: boolean) {
    if (model === asked) return translate("other-model.unfit.same", { model });
    try {
      await models.choose("chat", model, AbortSignal.timeout(listMs));
    } catch (error) {
      return toNotice(error);
    }
    const known = models.find(model);
    if (known !== undefined && !answersQuestions(known))
      return translate("other-model.unfit.chat", { model });
    if (withPictures && known !== undefined && !seesPictures(known))
      return translate("other-model.unfit.pictures", { model });
    return undefined;
  }

  return async (answer: Answer, { key, values }: Press): Promise<PressResult | string> => {
    const [all, withPictures, spent] = await Promise.all([
      listed(),
      showsPictures(answer),
      spentBudget(answer),
    ]);
    const asked = askedOf(answer.message);
    const able = models
      .allowed(all)
      .filter((model) => answersQuestions(model) && (!withPictures || seesPictures(model)))
      .map(({ id }) => id)
      .filter((id) => id !== asked);
    const ids = spent === undefined ? able : able.filter((id) => budgets.isFree("chat", id));
    if (ids.length === 0 && spent !== undefined) throw spent;
    const none = translate("other-model.none");
    if (ids.length === 0) return told(none);
    if (values === undefined) return { kind: "form", form: toModelForm(key, asked ?? "?", ids) };

    const typed = (values[fieldName] ?? "").trim().slice(0, maxNameChars);
    const problem = (words: string): PressResult => ({ kind: "problems", problems: { [fieldName]: words } });
    if (typed === "") return problem(translate("other-model.missing"));
    if (ids.includes(typed)) return typed;
    const isKnown = gateway.knownModels().some(({ id }) => id === typed);
    const like = isKnown ? [] : ids.filter((id) => id.toLowerCase().includes(typed.toLowerCase()));
    if (like.length > 1)
      return problem(translate("other-model.several", { models: like.slice(0, maxNamed).join(", ") }));
    const [only] = like;
    if (only !== undefined) return only;
    const unfit = await unfitWords(typed, asked, withPictures);
    return problem(unfit ?? (spent === undefined ? none : toNotice(spent)));
  };
}

/** A model in a list without metadata still counts as a chat model. */
function answersQuestions({ capabilities }: Model): boolean {
  const { chats, transcribes, generatesImages } = capabilities;
  return chats ?? (transcribes !== true && generatesImages !== true);
}

function seesPictures({ capabilities }: Model): boolean {
  return capabilities.seesImages !== false;
}

/** The model that was asked for this answer. */
function askedOf({ receipt }: Pick<StoredMessage, "receipt">): string | undefined {
  return receipt?.calls.findLast(({ operation }) => operation === "chat")?.asked;
}

function toModelForm(key: string, asked: string, ids: readonly string[]): Form {
  return {
    key,
    title: translate("other-model.title"),
    introduction: translate("other-model.introduction"),
    fields: [
      {
        name: fieldName,
        label: translate("other-model.field"),
        description: translate("other-model.description", { model: asked.slice(0, maxDescribedChars) }),
        value: "",
        options: ids.map((id) => ({ value: id, label: id })),
        maxChars: maxNameChars,
        isLong: false,
        placeholder: translate("other-model.placeholder"),
        isRequired: true,
      },
    ],
    submitLabel: translate("other-model.submit"),
  };
}
