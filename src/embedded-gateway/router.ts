import type { BilledAmounts, ModelOperation } from "../core/gateway.ts";
import { nearestName } from "../support/text.ts";
import { modelNotAllowed, unknownModel, unsupportedModel } from "./api-error.ts";
import {
  sandboxModels,
  type Capability,
  type GatewayConfig,
  type ModelConfig,
  type UpstreamConfig,
} from "./gateway-config.ts";
import type { UpstreamUsage } from "./upstreams/upstream-client.ts";

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
   * Returns only targets that the caller may use. A model that the caller may not use gets the same error
   * whether it exists or not.
   * @throws ApiError 403 `model_not_allowed`, 404 `model_not_found` (ids are case-sensitive), 400
   *   `model_not_supported` when the settings do not list the capability for the operation
   */
  route(model: string, operation: ModelOperation, caller: Caller): Route;
  /** Whether the caller may use the model or alias `id`. */
  isVisible(id: string, caller: Caller): boolean;
}

/** Which models a request's caller may use. */
interface Caller {
  /** Whether the caller may use a model, and sees it in the model list. `id` names a model or an alias. */
  sees(id: string): boolean;
  /**
   * Whether a request for the id `requested` may be served by the model `target`. `isFallback` means that the
   * target is not the model that the id stands for.
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
  const isVisible: Router["isVisible"] = (id, caller) =>
    caller.sees(id) && caller.allowsTarget(id, idOf(id), false);

  return {
    isVisible,
    route: (requested, operation, caller) => {
      const id = idOf(requested);
      if (!isVisible(requested, caller)) throw modelNotAllowed(requested);
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

/** Looks up fallbacks. Names that clients send are not looked up in the prototype. */
function chainOf({ fallbacks }: GatewayConfig, id: string): readonly string[] | undefined {
  return Object.hasOwn(fallbacks, id) ? fallbacks[id] : undefined;
}

/** The permissions and the budget of one request's caller. */
export interface Access extends Caller {
  /** What the caller's share of memory counts for. All keys without restriction have the same. */
  readonly keyId: string;
  /** Whether the caller's key has restrictions. Its requests keep only the fields that cannot widen them. */
  readonly isLimited: boolean;
  /**
   * Reserves the cost of a request before anything is sent. `targets` is empty for the sandbox, which is
   * free.
   * @throws ApiError 402 (budget used up), 403 (a model without price), 429 (the budget is reserved by other
   *   requests)
   */
  reserve(operation: ModelOperation, targets: readonly Target[], worst: WorstCase): Promise<Charge>;
  /** Notes that the request has ended. It is called once. */
  release(): void;
}

/** Access without restriction, with the gateway's own keys, or where no key is needed. */
export const fullAccess: Access = {
  keyId: "",
  isLimited: false,
  sees: () => true,
  allowsTarget: () => true,
  reserve: async () => freeCharge,
  release: () => {},
};

/** The amounts that a request may cost, known before it is sent. */
export interface WorstCase {
  /** The most that it can use, which is reserved. */
  readonly most: BilledAmounts;
  /** Charged when the client leaves after the request was sent and before any of the answer was forwarded. */
  readonly whenLeft: BilledAmounts;
  /** Charged when the upstream breaks off before any of the answer was forwarded. */
  readonly whenBroken: BilledAmounts;
  /**
   * Whether all of `most` must be within the budget. Otherwise a request may pass it by its own reserve,
   * since most requests cost far less.
   */
  readonly mustFit?: boolean;
}

/** The cost of one request, from the moment it was reserved. Contract: no member throws. */
export interface Charge {
  /** Notes that the request is sent. From now on it costs `whenLeft`, unless something else is recorded. */
  begin(target: Target): void;
  /** Notes a failed attempt. `free` was never sent, or refused. `broken` may have been billed. */
  fail(how: "free" | "broken"): void;
  /** Records the usage of the answer. Later calls are ignored. `target` is `undefined` for the sandbox. */
  settle(target: Target | undefined, usage: UpstreamUsage): void;
  /** Ends the request and frees what was reserved and not used. It is called on every path. */
  end(): void;
}

/** The charge of a caller without a budget. */
const freeCharge: Charge = { begin: () => {}, fail: () => {}, settle: () => {}, end: () => {} };

/**
 * Creates a charge that calls `record` exactly once, at its end: with the usage of the answer, with the
 * amounts of an aborted request, or with `undefined` when nothing was used.
 */
export function createCharge(
  worst: WorstCase,
  record: (target: Target | undefined, usage: UpstreamUsage | undefined) => void,
): Charge {
  let due: { readonly target: Target | undefined; readonly usage: UpstreamUsage } | undefined;
  let isSettled = false;
  return {
    begin: (target) => {
      if (!isSettled) due = { target, usage: worst.whenLeft };
    },
    fail: (how) => {
      if (isSettled) return;
      due = how === "free" || due === undefined ? undefined : { ...due, usage: worst.whenBroken };
    },
    settle: (target, usage) => {
      if (isSettled) return;
      isSettled = true;
      due = { target, usage };
    },
    end: () => record(due?.target, due?.usage),
  };
}
