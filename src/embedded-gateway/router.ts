import type { ModelOperation } from "../core/gateway.ts";
import { nearestName } from "../support/text.ts";
import { unknownModel, unsupportedModel } from "./api-error.ts";
import {
  sandboxModels,
  type Capability,
  type GatewayConfig,
  type ModelConfig,
  type UpstreamConfig,
} from "./gateway-config.ts";

/** A model at an upstream. */
export interface Target {
  /** The id `prefix/model`, as clients name it and as answers name it in `model`. */
  readonly publicId: string;
  readonly prefix: string;
  readonly upstream: UpstreamConfig;
  /** The upstream's own id, which may contain further slashes. */
  readonly upstreamModel: string;
  /** `undefined` when the settings do not list the model. */
  readonly model: ModelConfig | undefined;
}

/** What serves a request: the sandbox, or upstream models that are tried in order. */
export type Route =
  | { readonly kind: "sandbox"; readonly model: string }
  | { readonly kind: "upstream"; readonly targets: readonly [Target, ...Target[]] };

/** Decides which model serves a request. */
interface Router {
  /**
   * @throws ApiError 404 `model_not_found` (ids are case-sensitive), 400 `model_not_supported` when the
   *   settings do not list the capability for the operation
   */
  route(model: string, operation: ModelOperation): Route;
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

/** Splits ids at the first `/`. `knownIds` returns the ids to suggest from. */
export function createModelRouter(config: GatewayConfig, knownIds: () => readonly string[]): Router {
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

  return {
    route: (requested, operation) => {
      const id = idOf(requested);
      if (config.sandbox && sandboxModels.some((model) => model.id === id))
        return { kind: "sandbox", model: id };
      const first = toTarget(id);
      if (first === undefined) throw unknownModel(requested, nearestName(requested, knownIds()));
      const able = first.model?.capabilities;
      if (able !== undefined && !needs[operation].some((capability) => able.includes(capability))) {
        throw unsupportedModel(requested, verbs[operation]);
      }
      const chain = chainOf(config, requested) ?? chainOf(config, id) ?? [];
      const rest = chain.map((next) => toTarget(next)).filter((target) => target !== undefined);
      return { kind: "upstream", targets: [first, ...rest] };
    },
  };
}

/** Looks up fallbacks. Names that clients send are not looked up in the prototype. */
function chainOf({ fallbacks }: GatewayConfig, id: string): readonly string[] | undefined {
  return Object.hasOwn(fallbacks, id) ? fallbacks[id] : undefined;
}
