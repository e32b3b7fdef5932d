import { unknownModel, wrongKindOfModel } from "./api-error.ts";
import type { Capability, GatewayConfig, ModelConfig, UpstreamConfig } from "./settings.ts";
import { sandboxModels, type Operation } from "./models.ts";

/** A model at an upstream. */
export interface Target {
  /** What clients call it, `prefix/model`: returned in `model`. */
  readonly publicId: string;
  readonly prefix: string;
  readonly upstream: UpstreamConfig;
  /** What the upstream calls it; may hold further slashes. */
  readonly upstreamModel: string;
  /** As the settings describe it. */
  readonly model: ModelConfig | undefined;
}

/** Who answers: the sandbox, or the first of some upstream models that can. */
export type Route =
  | { readonly kind: "sandbox"; readonly model: string }
  | { readonly kind: "upstream"; readonly targets: readonly [Target, ...Target[]] };

export interface Router {
  /**
   * @throws ApiError 404 `model_not_found` (ids are case-sensitive), 400 `model_not_supported` where the settings
   * say that it cannot do the operation
   */
  route(model: string, operation: Operation): Route;
}

const needs: Readonly<Record<Operation, readonly Capability[]>> = {
  chat: ["chat", "vision", "draws-in-chat"],
  images: ["images"],
  transcription: ["transcription"],
};
const verbs: Readonly<Record<Operation, string>> = {
  chat: "chat",
  images: "generate images",
  transcription: "transcribe",
};

/** Ids are split at the first `/`. `knownIds` are for suggestions. */
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

  return {
    route: (asked, operation) => {
      const id = Object.hasOwn(config.aliases, asked) ? (config.aliases[asked] ?? asked) : asked;
      if (config.sandbox && sandboxModels.some((model) => model.id === id))
        return { kind: "sandbox", model: id };
      const first = toTarget(id);
      if (first === undefined) throw unknownModel(asked, nearest(asked, knownIds()));
      const able = first.model?.capabilities;
      if (able !== undefined && !needs[operation].some((capability) => able.includes(capability))) {
        throw wrongKindOfModel(asked, verbs[operation]);
      }
      const chain = config.fallbacks[asked] ?? config.fallbacks[id] ?? [];
      const rest = chain.map((next) => toTarget(next)).filter((target) => target !== undefined);
      return { kind: "upstream", targets: [first, ...rest] };
    },
  };
}

/** The same id in another case, or with its prefix forgotten. */
function nearest(asked: string, ids: readonly string[]): string | undefined {
  const wanted = asked.toLowerCase();
  return (
    ids.find((id) => id.toLowerCase() === wanted) ?? ids.find((id) => id.toLowerCase().endsWith(`/${wanted}`))
  );
}
