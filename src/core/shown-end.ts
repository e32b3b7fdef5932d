import { translate } from "../words/translate.ts";
import type { TurnEnd } from "./inbox.ts";
import type { StoredMessage } from "./storage.ts";

/**
 * Returns what people see below a stored answer: why it failed, where it has, and the notices. Where a turn
 * ended with its earlier answer, they say why there is no new one.
 */
export function toShownEnd(
  { failure, notices = [], outcome }: Pick<StoredMessage, "failure" | "notices" | "outcome">,
  end: Pick<TurnEnd, "keepsEarlier" | "why"> | undefined,
): { readonly failure?: string; readonly notices: readonly string[] } {
  const { keepsEarlier = false, why = "" } = end ?? {};
  const isFailure = failure !== undefined && end !== undefined && !keepsEarlier;
  if (isFailure || outcome === "failed") return { failure: failure ?? why, notices };
  const kept = keepsEarlier ? [translate("notice.earlier-answer", { why })] : [];
  return { notices: [...notices, ...(failure === undefined ? [] : [failure]), ...kept] };
}
