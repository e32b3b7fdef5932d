import { isWebPage, ParleyError } from "../core/errors.ts";
import type { GatewayTrouble, Operation, TroubleKind } from "../core/gateway.ts";
import { nearestName } from "../support/text.ts";

/** What a call, with all its attempts, showed of the gateway. */
export type GatewayOutcome =
  /** The gateway listed these models. */
  | { readonly kind: "listed"; readonly models: readonly string[] }
  /** A model answered. */
  | { readonly kind: "answered" }
  | { readonly kind: "failed"; readonly operation: Operation; readonly error: ParleyError };

/** The settings that tell a gateway's trouble from one of a single request. */
interface TroubleContext {
  readonly hasKey: boolean;
  /** The default model for chat, or `undefined` for the first that can chat. */
  readonly chatModel: string | undefined;
}

const lastingHoldMs = 10 * 60_000;
const passingHoldMs = 60_000;

/** Returns the trouble behind a failed call, or `undefined` where it says nothing about other calls. */
export function toTrouble(
  { operation, error }: Extract<GatewayOutcome, { kind: "failed" }>,
  { hasKey, chatModel }: TroubleContext,
): GatewayTrouble | undefined {
  const { reason, status, model, suggestion, redirectsTo, isBase } = error.detail;
  const isList = operation === "models";
  const holdsMs = isList ? 0 : passingHoldMs;
  const of = (kind: TroubleKind, text: string, holds = holdsMs): GatewayTrouble => ({
    kind,
    text,
    error,
    holdsMs: holds,
  });
  if (redirectsTo !== undefined) {
    const what = isBase === undefined ? ", which is no gateway" : ": set GATEWAY_BASE_URL to that";
    return of("redirects", `redirects to ${redirectsTo}${what}`, isList ? 0 : lastingHoldMs);
  }
  switch (error.code) {
    case "gateway-unreachable":
      return of("unreachable", `cannot be reached (${reason ?? "connection lost"})`, 0);
    case "gateway-timeout":
      // One model may just be slow.
      return isList ? of("unreachable", "does not answer in time") : undefined;
    case "gateway-unauthorized":
      if (!isList && status !== 401) return undefined;
      return of(
        "key-refused",
        hasKey ? `refuses the key (${status})` : `asks for a key (${status})`,
        isList ? 0 : lastingHoldMs,
      );
    case "gateway-payment":
      return of("unpaid", "asks for payment: the account has run out of credit or budget", lastingHoldMs);
    case "gateway-rate-limited": {
      const waitMs = Math.min(error.retryAfterMs ?? passingHoldMs, lastingHoldMs);
      return of("busy", `is busy (${status})`, isList ? 0 : waitMs);
    }
    case "gateway-error":
      return of("failing", `fails (${status})`);
    case "gateway-bad-answer":
    case "gateway-unsupported":
    case "gateway-bad-request":
      return isWebPage(error.detail)
        ? of("web-page", "answers with a web page, not with an API", isList ? 0 : lastingHoldMs)
        : undefined;
    case "gateway-unknown-model":
      return chatModel !== undefined && model === chatModel
        ? of("no-model", toMissing(chatModel, suggestion), 0)
        : undefined;
    default:
      return undefined;
  }
}

/** Returns the trouble of a model list without the default one. An empty list says nothing. */
export function findMissingModel(
  models: readonly string[],
  { chatModel }: Pick<TroubleContext, "chatModel">,
): GatewayTrouble | undefined {
  if (chatModel === undefined || models.length === 0 || models.includes(chatModel)) return undefined;
  const suggestion = nearestName(chatModel, models);
  return {
    kind: "no-model",
    text: toMissing(chatModel, suggestion),
    error: new ParleyError("gateway-unknown-model", "the gateway does not list CHAT_MODEL", {
      detail: { model: chatModel, ...(suggestion === undefined ? {} : { suggestion }) },
    }),
    holdsMs: 0,
  };
}

function toMissing(model: string, suggestion: string | number | undefined): string {
  return `has no model ${model}${suggestion === undefined ? "" : ` (did you mean ${suggestion}?)`}`;
}
