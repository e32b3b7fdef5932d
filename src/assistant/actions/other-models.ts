import { isParleyError, ParleyError } from "../../core/errors.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { IncomingEvent } from "../../core/events.ts";
import type { Form } from "../../core/forms.ts";
import type { Gateway, Model } from "../../core/gateway.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Conversations, StoredMessage } from "../../core/storage.ts";
import { translate } from "../../words/translate.ts";
import type { Budgets } from "../access/budgets.ts";
import { maxHistory } from "../turn/ask-model.ts";
import type { ModelChoice } from "../turn/model-choice.ts";
import { afterReset, hasPictures } from "../turn/stored-messages.ts";

/** How long the first list of models may take, in milliseconds: platforms wait three seconds for a form. */
const listMs = 1500;
const fieldName = "model";
const maxNameChars = 300;
/** Most models that a sentence names. */
const maxNamed = 5;
const maxDescribedChars = 60;

/** What {@link createOtherModels} works with. */
export interface OtherModelsOptions {
  readonly conversations: Pick<Conversations, "recent" | "settings">;
  readonly inbox: Pick<Inbox, "lookUp">;
  readonly gateway: Pick<Gateway, "listModels" | "knownModels">;
  readonly models: Pick<ModelChoice, "allowed" | "choose">;
  readonly budgets: Pick<Budgets, "spentError" | "isFree">;
}

/** An answer that another model may give. */
interface Answer {
  readonly conversationId: string;
  readonly message: StoredMessage;
}

/** What a person has chosen, or why that cannot be. */
type ChosenModel =
  | { readonly model: string }
  | { readonly problems: Readonly<Record<string, string>> }
  /** No other model can answer. */
  | { readonly none: true };

/** The models that can answer a question in the place of the one that has. */
export interface OtherModels {
  /**
   * A form with those that can do it, that the operator allows, and that a spent budget does not refuse. `undefined`:
   * there are none.
   * @throws ParleyError `over-budget`, `store-unavailable`, `gateway-…`
   */
  form(key: string, answer: Answer): Promise<Form | undefined>;
  /**
   * The model that was chosen; of a typed one a part of the name is enough where it is the only one with it.
   * @throws ParleyError `over-budget`, `store-unavailable`, `gateway-…`
   */
  choose(answer: Answer, values: Readonly<Record<string, string>>): Promise<ChosenModel>;
}

/** @see {@link OtherModels} */
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
  async function showsPictures({ conversationId }: Answer): Promise<boolean> {
    const [log, { resetAfter }] = await Promise.all([
      conversations.recent(conversationId, { maxMessages: maxHistory + 1 }),
      conversations.settings(conversationId),
    ]);
    return hasPictures(afterReset(log, resetAfter));
  }

  /** Of the person who asked and is charged. `undefined`: none is spent. */
  async function spentBudget(event: IncomingEvent | undefined): Promise<ParleyError | undefined> {
    if (event === undefined) return undefined;
    const { author, platform, origin } = event;
    return await budgets.spentError({ personId: author.id, platform, origin });
  }

  async function offer(answer: Answer): Promise<{ ids: readonly string[]; withPictures: boolean }> {
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

  /** Why a model that is written out is not among those offered. */
  async function problemOf(model: string, answer: Answer, withPictures: boolean): Promise<string> {
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

/** A list without any metadata still serves chat. */
function answersQuestions({ capabilities }: Model): boolean {
  const { chats, transcribes, generatesImages } = capabilities;
  return chats ?? (transcribes !== true && generatesImages !== true);
}

function seesPictures({ capabilities }: Model): boolean {
  return capabilities.seesImages !== false;
}

/** The model that was asked for an answer. */
export function askedOf({ receipt }: Pick<StoredMessage, "receipt">): string | undefined {
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
