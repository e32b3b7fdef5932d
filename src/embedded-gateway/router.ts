import type { ModelOperation } from "../core/gateway.ts";
import { nearestName } from "../support/nearest-name.ts";
import { modelNotAllowed, unknownModel, unsupportedModel } from "./api-error.ts";
import { sandboxModels } from "./models.ts";
import type { Capability, GatewayConfig, ModelConfig, UpstreamConfig } from "./settings.ts";

/** A model at an upstream. */
export interface Target {
  /** `prefix/model`, as clients name it and as answers name it in `model`. */
  readonly publicId: string;
  readonly prefix: string;
  readonly upstream: UpstreamConfig;
  /** The upstream's own id; may contain further slashes. */
  readonly upstreamModel: string;
  /** `undefined` when the settings do not list it. */
  readonly model: ModelConfig | undefined;
}

/** What serves a request: the sandbox, or upstream models that are tried in order. */
export type Route =
  | { readonly kind: "sandbox"; readonly model: string }
  | { readonly kind: "upstream"; readonly targets: readonly [Target, ...Target[]] };

/** Decides which model serves a request. */
export interface Router {
  /**
   * Only targets that the caller may use are returned. A model that the caller may not use gets the same error whether
   * it exists or not.
   * @throws ApiError 403 `model_not_allowed`, 404 `model_not_found` (ids are case-sensitive), 400 `model_not_supported`
   * when the settings do not list the capability for the operation
   */
  route(model: string, operation: ModelOperation, caller: Caller): Route;
  /** Whether the caller may use the model or alias `id`. */
  isVisible(id: string, caller: Caller): boolean;
}

/** Which models a request's caller may use. */
export interface Caller {
  /** Whether the caller may use a model, and sees it in the model list. `id` is of a model or an alias. */
  sees(id: string): boolean;
  /** @throws ApiError 403 when the caller's key does not allow the model */
  expectModel(id: string): void;
  /**
   * Whether a request for the id `requested` may be served by the model `target`. `isFallback`: the target is not the
   * model that the id stands for.
   */
  allowsTarget(requested: string, target: string, isFallback: boolean): boolean;
}

const needs: Readonly<Record<ModelOperation, readonly Capability[]>> = {
  chat: ["chat", "vision", "draws-in-chat"],
  image: ["images"],
  transcription: ["transcription"],
};
const verbs: Readonly<Record<ModelOperation, string>> = {
  chat: "chat",
  image: "generate images",
  transcription: "transcribe",
};

/** Ids are split at the first `/`. `knownIds` returns the ids to suggest from. */
export function createRouter(config: GatewayConfig, knownIds: () => readonly string[]): Router {
  const toTarget = (publicId: string): Target | undefined => {
    const slash = publicId.indexOf("/");
    const prefix = publicId.slice(0, Math.max(slash, 0));
    const upstreamModel = publicId.slice(slash + 1);
    if (slash <= 0 || upstreamModel === "" || !Object.hasOwn(config.upstreams, prefix)) return undefined;
    const upstream = config.upstreams[prefix];
    const model = upstream?.models?.find(({ id }) => id === upstreamModel);
    if (upstream === undefined || (upstream.models !== undefined && model === undefined)) return undefined;
    return { publicId, prefix, upstream, upstreamModel, model };
  };

  const idOf = (requested: string): string =>
    Object.hasOwn(config.aliases, requested) ? (config.aliases[requested] ?? requested) : requested;
  const isVisible: Router["isVisible"] = (id, caller) =>
    caller.sees(id) && caller.allowsTarget(id, idOf(id), false);

  return {
    isVisible,
    route: (requested, operation, caller) => {
      caller.expectModel(requested);
      const id = idOf(requested);
      if (!caller.allowsTarget(requested, id, false)) throw modelNotAllowed(requested);
      if (config.sandbox && sandboxModels.some((model) => model.id === id))
        return { kind: "sandbox", model: id };
      const first = toTarget(id);
      if (first === undefined) {
        const visible = knownIds().filter((known) => isVisible(known, caller));
        throw unknownModel(requested, nearestName(requested, visible));
      }
      const able = first.model?.capabilities;
      if (able !== undefined && !needs[operation].some((capability) => able.includes(capability))) {
        throw unsupportedModel(requested, verbs[operation]);
      }
      const chain = chainOf(config, requested) ?? chainOf(config, id) ?? [];
      const rest = chain
        .filter((next) => caller.allowsTarget(requested, next, true))
        .map((next) => toTarget(next))
        .filter((target) => target !== undefined);
      return { kind: "upstream", targets: [first, ...rest] };
    },
  };
}

/** Names of clients are not looked up in the prototype. */
function chainOf({ fallbacks }: GatewayConfig, id: string): readonly string[] | undefined {
  return Object.hasOwn(fallbacks, id) ? fallbacks[id] : undefined;
}
