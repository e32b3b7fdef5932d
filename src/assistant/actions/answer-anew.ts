import type { Access, Actor } from "../../core/access.ts";
import { toNotice } from "../../core/error-messages.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { IncomingEvent, FixedWords } from "../../core/events.ts";
import type { Form, FormField } from "../../core/forms.ts";
import type { Gateway, Model } from "../../core/gateway.ts";
import type { Inbox, Redo } from "../../core/inbox.ts";
import type { PressResult } from "../../core/press.ts";
import type { Conversations, StoredMessage } from "../../core/storage.ts";
import { translate } from "../../words/translate.ts";
import type { Budgets } from "../access/budgets.ts";
import type { TurnRate } from "../access/turn-rate.ts";
import { storedIn } from "../scheduling/pending-turn.ts";
import type { RedoTurn } from "../scheduling/rerun-turn.ts";
import { maySteer } from "../scheduling/stop-turn.ts";
import { maxHistory } from "../turn/ask-model.ts";
import { isFixable, maxFixableChars, voicesIn, afterReset, hasPictures } from "../turn/stored-messages.ts";
import type { ModelChoice } from "../turn/model-choice.ts";

export interface AnswerAnewOptions {
  readonly conversations: Pick<Conversations, "recent">;
  readonly inbox: Pick<Inbox, "lookUp" | "listOpenIn">;
  readonly access: Pick<Access, "isAdmin" | "refusalOf">;
  /** Returns the error `over-budget` for an event whose author has spent a budget. */
  readonly overBudget: (event: IncomingEvent, model?: string) => Promise<ParleyError | undefined>;
  /** Whether a model is still listed and allowed. */
  readonly isAvailable: (model: string) => boolean;
  readonly turnRate: TurnRate;
  readonly redo: RedoTurn;
}

/** A stored answer with a button below it. */
export interface Answer {
  readonly conversationId: string;
  readonly message: StoredMessage;
  /** The attempt whose answer has the button. Without it any attempt is meant. */
  readonly attempt?: number;
}

/** How many stored messages are checked for later ones than an answer. */
const maxLater = 20;

const told = (markdown: string): PressResult => ({ kind: "told", markdown });

/**
 * Runs the turn of an answer again into the same reply, for Regenerate, Continue and corrected words. `check`
 * only tests whether that is possible, and returns `done` if so.
 */
export function createAnswerAnew(options: AnswerAnewOptions) {
  const { conversations, inbox, access, overBudget, isAvailable, turnRate } = options;

  /** Says in words why the answer cannot be changed now. */
  async function obstacleOf(
    { conversationId, message }: Answer,
    ownKeys: readonly string[],
  ): Promise<string | undefined> {
    const [recent, open] = await Promise.all([
      conversations.recent(conversationId, { maxMessages: maxLater }),
      inbox.listOpenIn(conversationId),
    ]);
    const isOwn = (key: string): boolean => ownKeys.includes(key);
    if (open.some(({ event }) => !isOwn(event.key) && storedIn(event) === conversationId))
      return translate("steer.busy");
    const position = recent.findIndex(({ id }) => id === message.id);
    const later = position === -1 ? [message] : recent.slice(position + 1);
    // Messages that people only saw, such as a list of models, do not count.
    return later.some((one) => one.inContext !== false && !isOwn(one.turnKey)) || position === -1
      ? translate("steer.not-last")
      : undefined;
  }

  async function run(
    wanted: Redo | "check",
    answer: Answer,
    by: Actor,
    fixed: readonly HeardWords[],
  ): Promise<PressResult> {
    const { turnKey } = answer.message;
    const [entry] = await inbox.lookUp([turnKey]);
    // Only the last turn of a conversation stays known for long.
    if (entry === undefined || entry.event.platform !== by.platform)
      return told((await obstacleOf(answer, [turnKey])) ?? translate("steer.too-old"));
    const keys = entry.turn?.keys ?? [turnKey];
    const entries = await inbox.lookUp(keys);
    if (!maySteer(by, entries, access))
      throw new ParleyError("not-permitted", "somebody else's turn", {
        detail: { problem: translate("steer.not-yours") },
      });
    const obstacle = await obstacleOf(answer, keys);
    if (obstacle !== undefined) return told(obstacle);
    // A refused author would get only the refusal in place of the answer.
    if (access.refusalOf(entry.event) !== undefined) return told(translate("steer.not-allowed"));
    if (wanted === "check") return { kind: "done" };
    // The person who asked pays for the new answer.
    const refusal = await overBudget(entry.event, wanted.model);
    if (refusal !== undefined) throw refusal;
    const events = entries.map(({ event }) => event);
    const edited = withCorrections(events, fixed);
    const outcome = await options.redo(turnKey, wanted, { attempts: entry.turn?.attempts ?? 1, edited });
    if (outcome === "accepted") return { kind: "done" };
    return told(outcome === "gone" ? translate("steer.too-old") : translate("steer.under-way"));
  }

  /** A continued answer uses the same model, because another one would continue in other words. */
  function withModel(wanted: Redo, message: StoredMessage): Redo {
    const model = askedOf(message);
    if (wanted.kind !== "continue" || model === undefined || !isAvailable(model)) return wanted;
    return { ...wanted, model };
  }

  return async function answerAnew(
    wanted: Redo | "check",
    answer: Answer,
    by: Actor,
    fixed: readonly HeardWords[] = [],
  ): Promise<PressResult> {
    const { message, attempt } = answer;
    const redo = wanted === "check" ? wanted : withModel(wanted, message);
    if (attempt !== undefined && attempt !== (message.attempt ?? 1)) return told(translate("steer.outdated"));
    if (redo === "check") return await run(redo, answer, by, fixed);
    if (redo.kind === "continue" && message.isCut !== true) return told(translate("steer.complete"));
    const counted = await turnRate.count(by.author.id);
    if (counted.refusal !== undefined) throw counted.refusal;
    let result: PressResult | undefined;
    try {
      result = await run(redo, answer, by, fixed);
      return result;
    } finally {
      if (result?.kind !== "done") await counted.undo();
    }
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

/** The corrected words that a person submitted, or the result to show instead. */
type SubmittedWords = { readonly fixed: readonly HeardWords[] } | { readonly result: PressResult };

/** At most five recordings of an answer's question that are still stored and fit into a form. */
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
      // What others said in the thread does not belong to the question.
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

/** A form with the recognized words. Without `isAnswered` these words are the whole answer. */
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

/** Reads the values of a form of {@link toTranscriptForm}. A missing field keeps its words. */
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
 * Returns the events of a turn whose words are corrected. Each holds its own corrections, so that they are
 * erased with it. A later correction of a recording replaces an earlier one.
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

/** How long the first list of models may take, in milliseconds. Platforms wait three seconds for a form. */
const listMs = 1500;
const fieldName = "model";
const maxNameChars = 300;
/** How many models a sentence names. */
const maxNamed = 5;
const maxDescribedChars = 60;

/** The options of {@link createOtherModels}. */
export interface OtherModelsOptions {
  readonly conversations: Pick<Conversations, "recent" | "settings">;
  readonly inbox: Pick<Inbox, "lookUp">;
  readonly gateway: Pick<Gateway, "listModels" | "knownModels">;
  readonly models: Pick<ModelChoice, "allowed" | "choose">;
  readonly budgets: Pick<Budgets, "spentError" | "isFree">;
}

/** An answer that another model may replace. */
interface AnsweredTurn {
  readonly conversationId: string;
  readonly message: StoredMessage;
}

/** The model that a person has chosen, or why it cannot answer. */
type ChosenModel =
  | { readonly model: string }
  | { readonly problems: Readonly<Record<string, string>> }
  /** No other model can answer. */
  | { readonly none: true };

/** The models that can answer a question in place of the one that answered. */
interface OtherModels {
  /**
   * A form with the models that can answer, that the operator allows, and that no spent budget refuses. It is
   * `undefined` if there are none.
   * @throws ParleyError `over-budget`, `store-unavailable`, `gateway-…`
   */
  form(key: string, answer: AnsweredTurn): Promise<Form | undefined>;
  /**
   * The chosen model. A part of its name is enough if only one name contains it.
   * @throws ParleyError `over-budget`, `store-unavailable`, `gateway-…`
   */
  choose(answer: AnsweredTurn, values: Readonly<Record<string, string>>): Promise<ChosenModel>;
}

/** Creates the {@link OtherModels}. */
export function createOtherModels(options: OtherModelsOptions): OtherModels {
  const { conversations, inbox, gateway, models, budgets } = options;

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
  async function showsPictures({ conversationId }: AnsweredTurn): Promise<boolean> {
    const [log, { resetAfter }] = await Promise.all([
      conversations.recent(conversationId, { maxMessages: maxHistory + 1 }),
      conversations.settings(conversationId),
    ]);
    return hasPictures(afterReset(log, resetAfter));
  }

  /** The error for a spent budget of the person who asked and pays, if any. */
  async function spentBudget(event: IncomingEvent | undefined): Promise<ParleyError | undefined> {
    if (event === undefined) return undefined;
    const { author, platform, origin } = event;
    return await budgets.spentError({ personId: author.id, platform, origin });
  }

  async function offer(answer: AnsweredTurn): Promise<{ ids: readonly string[]; withPictures: boolean }> {
    const [all, withPictures, [entry]] = await Promise.all([
      listed(),
      showsPictures(answer),
      inbox.lookUp([answer.message.turnKey]),
    ]);
    const spent = await spentBudget(entry?.event);
    const able = models
      .allowed(all)
      .filter((model) => answersQuestions(model) && (!withPictures || seesPictures(model)))
      .filter(({ id }) => id !== askedOf(answer.message));
    const affordable = spent === undefined ? able : able.filter(({ id }) => budgets.isFree("chat", id));
    if (spent !== undefined && affordable.length === 0) throw spent;
    return { ids: affordable.map(({ id }) => id), withPictures };
  }

  /** Says why a model that was typed is not offered. */
  async function problemOf(model: string, answer: AnsweredTurn, withPictures: boolean): Promise<string> {
    if (model === askedOf(answer.message)) return translate("other-model.unfit.same", { model });
    try {
      await models.choose("chat", model, AbortSignal.timeout(listMs));
    } catch (error) {
      return toNotice(error);
    }
    const known = gateway.knownModels().find(({ id }) => id === model);
    if (known !== undefined && !answersQuestions(known))
      return translate("other-model.unfit.chat", { model });
    if (withPictures && known !== undefined && !seesPictures(known))
      return translate("other-model.unfit.pictures", { model });
    const { message } = answer;
    const [entry] = await inbox.lookUp([message.turnKey]);
    const spent = await spentBudget(entry?.event);
    return spent === undefined ? translate("other-model.none") : toNotice(spent);
  }

  return {
    async form(key, answer) {
      const { ids } = await offer(answer);
      return ids.length === 0 ? undefined : toForm(key, answer.message, ids);
    },
    async choose(answer, values) {
      const typed = (values[fieldName] ?? "").trim().slice(0, maxNameChars);
      if (typed === "") return { problems: { [fieldName]: translate("other-model.missing") } };
      const { ids, withPictures } = await offer(answer);
      if (ids.length === 0) return { none: true };
      if (ids.includes(typed)) return { model: typed };
      const wanted = typed.toLowerCase();
      const like = ids.filter((id) => id.toLowerCase().includes(wanted));
      const [only = typed, ...others] = like;
      const isKnown = gateway.knownModels().some(({ id }) => id === typed);
      if (like.length === 1 && !isKnown) return { model: only };
      const problem =
        others.length > 0 && !isKnown
          ? translate("other-model.several", { models: like.slice(0, maxNamed).join(", ") })
          : await problemOf(typed, answer, withPictures);
      return { problems: { [fieldName]: problem } };
    },
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

function toForm(key: string, message: StoredMessage, ids: readonly string[]): Form {
  const asked = askedOf(message) ?? "?";
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
