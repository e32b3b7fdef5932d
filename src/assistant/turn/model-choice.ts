import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Gateway, Model, ModelCapabilities, ModelOperation } from "../../core/gateway.ts";
import { bestMatches } from "../../core/setting-values.ts";
import { nearestName } from "../../support/text.ts";
import { translate } from "../../words/translate.ts";
import type { AllowedModels } from "../access/access.ts";

type Operation = ModelOperation | "image-edit";

/** The models that the operator set. Without one, the first listed model that is able is used. */
export interface ModelSettings {
  readonly chat: string | undefined;
  readonly image: string | undefined;
  readonly transcription: string | undefined;
}

export interface ModelChoice {
  /**
   * Chooses the model for an operation: the one asked for, else the one set, else the first listed and
   * allowed one that is able.
   * @throws ParleyError `model-not-allowed` or `gateway-unknown-model`, both with suggestions, or
   * `gateway-unsupported` if no model is able
   */
  choose(operation: Operation, asked: string | undefined, signal: AbortSignal): Promise<string>;
  /**
   * An allowed chat model that accepts pictures, for one that is known not to. It is the first listed, if
   * possible one that answers in words. It is `undefined` if the model may accept them or no other does.
   */
  insteadForPictures(model: string, signal: AbortSignal): Promise<string | undefined>;
  /** Selects the models that may be used. */
  allowed(models: readonly Model[]): readonly Model[];
  /** What is known of a model, or `undefined` if it is not listed. */
  find(id: string): Model | undefined;
}

/** A choice of models by the settings in force. */
export interface LayeredModelChoice extends ModelChoice {
  /** Returns sentences about set models that could not be used, each once. */
  takeNotices(): string[];
}

const capabilityOf: Record<Operation, keyof ModelCapabilities> = {
  chat: "chats",
  image: "generatesImages",
  "image-edit": "drawsInChat",
  transcription: "transcribes",
};

/** The gateway's models. A gateway without a list has none. @throws ParleyError `gateway-…` */
export async function listModels(
  gateway: Pick<Gateway, "listModels">,
  signal: AbortSignal,
): Promise<readonly Model[]> {
  try {
    return await gateway.listModels(signal);
  } catch (error) {
    if (isParleyError(error, "gateway-unsupported")) return [];
    throw error;
  }
}

export function createModelChoice(
  gateway: Pick<Gateway, "listModels" | "knownModels">,
  settings: ModelSettings,
  { isAllowed, expectAllowed }: AllowedModels,
): ModelChoice {
  const allowed = (models: readonly Model[]): readonly Model[] => models.filter(({ id }) => isAllowed(id));
  const find = (id: string): Model | undefined => gateway.knownModels().find((model) => model.id === id);

  async function choose(
    operation: Operation,
    asked: string | undefined,
    signal: AbortSignal,
  ): Promise<string> {
    if (asked !== undefined) {
      const models = await listModels(gateway, signal);
      const able = models.filter(({ capabilities }) => capabilities[capabilityOf[operation]] !== false);
      expectAllowed(
        asked,
        able.map(({ id }) => id),
      );
      checkListed(asked, allowed(models));
      return asked;
    }
    const set = settings[operation === "image-edit" ? "image" : operation];
    const capability = capabilityOf[operation];
    if (set !== undefined && (operation !== "image-edit" || find(set)?.capabilities[capability] !== false))
      return set;
    const models = allowed(await listModels(gateway, signal));
    const able =
      models.find((model) => model.capabilities[capability] === true) ?? fallback(operation, models);
    if (able === undefined) {
      throw new ParleyError("gateway-unsupported", `no listed model for ${operation}`, {
        detail:
          models.length === 0 ? { lacks: "models" } : { problem: translate(`error.no-model.${operation}`) },
      });
    }
    return able.id;
  }

  async function insteadForPictures(model: string, signal: AbortSignal): Promise<string | undefined> {
    if (find(model)?.capabilities.seesImages !== false) return undefined;
    const seeing = allowed(await listModels(gateway, signal)).filter(
      ({ capabilities }) => capabilities.seesImages === true && capabilities.chats !== false,
    );
    return (seeing.find(({ capabilities }) => capabilities.drawsInChat !== true) ?? seeing[0])?.id;
  }

  return { choose, find, insteadForPictures, allowed };
}

/**
 * A list without metadata still serves chat with the first model that is not known to be something else. A
 * model that is listed with words and pictures as output can also generate images.
 */
function fallback(operation: Operation, models: readonly Model[]): Model | undefined {
  if (operation === "image") {
    return models.find(
      ({ capabilities }) => capabilities.drawsInChat === true && capabilities.generatesImages !== false,
    );
  }
  if (operation !== "chat") return undefined;
  return models.find(
    ({ capabilities }) => capabilities.chats === undefined && capabilities.transcribes !== true,
  );
}

function checkListed(id: string, models: readonly Model[]): void {
  if (models.length === 0 || models.some((model) => model.id === id)) return;
  const suggestion = nearestName(
    id,
    models.map((model) => model.id),
  );
  throw new ParleyError("gateway-unknown-model", "the asked model is not in the gateway's list", {
    detail: { model: id.slice(0, 100), ...(suggestion === undefined ? {} : { suggestion }) },
  });
}

/** Which models an autocomplete offers. */
interface ModelSuggestions {
  /** Default 25. */
  readonly max?: number | undefined;
  /** Models that support it come first, then unknown ones. Default: all. */
  readonly operation?: ModelOperation | undefined;
}

/** Ids for an autocomplete: first those that start with the query, then those that contain it. */
export function suggestModels(
  models: readonly Model[],
  query: string,
  { max = 25, operation }: ModelSuggestions = {},
): string[] {
  const ids = (operation === undefined ? models : ableFirst(models, operation)).map(({ id }) => id);
  return bestMatches(ids, query).slice(0, max);
}

/** Puts able models first. Many gateways say of no model what it can do. */
function ableFirst(models: readonly Model[], operation: ModelOperation): readonly Model[] {
  const isUnknown = ({ capabilities }: Model): boolean =>
    Object.values(capabilities).every((value) => value === undefined);
  const unknown = models.filter((model) => isUnknown(model) && !canDo(model, operation));
  return [...models.filter((model) => canDo(model, operation)), ...unknown];
}

const abilities: Readonly<Record<ModelOperation, (can: ModelCapabilities) => boolean>> = {
  chat: (can) => can.chats !== false,
  image: (can) => can.generatesImages ?? can.drawsInChat === true,
  transcription: (can) => can.transcribes === true,
};

/** Whether a model supports an operation, as far as its gateway says. */
export function canDo({ capabilities }: Model, operation: ModelOperation): boolean {
  return abilities[operation](capabilities);
}
