import type { ChatMessage, Usage } from "../core/gateway.ts";
import type { ReportedUsage } from "./completion-chunk.ts";
import { type Amounts, costOf, type FoundPrice } from "./prices.ts";

/** Tokens that a picture is counted as where the gateway does not say. */
const tokensPerImage = 800;

/** About how many tokens a text has: a quarter of its UTF-8 bytes, rounded up. */
function estimateTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text, "utf8") / 4);
}

/** About how many tokens a prompt has. Pictures count the same whatever their size; their data is not looked at. */
export function estimatePromptTokens(messages: readonly ChatMessage[]): number {
  let tokens = 0;
  for (const { content } of messages) {
    if (typeof content === "string") tokens += estimateTokens(content);
    else
      for (const part of content) tokens += part.kind === "text" ? estimateTokens(part.text) : tokensPerImage;
  }
  return tokens;
}

/** What is known of a call: what the gateway reported, what was measured or estimated here, and the price. */
export interface UsageFacts {
  readonly reported: ReportedUsage | undefined;
  /** Amounts concluded here. They stand in for what was not reported. */
  readonly estimated: Amounts;
  /** Amounts that are certain though not reported: images counted, a duration the gateway told. */
  readonly counted?: Amounts;
  readonly price: FoundPrice | undefined;
}

/** Tokens and money of a call. `isEstimated` as soon as one of its numbers was not the gateway's or its operator's. */
export function toUsage(facts: UsageFacts): Usage {
  const { reported, estimated, counted = {}, price } = facts;
  const { costUsd: reportedCost, ...reportedTokens } = reported ?? {};
  const amounts: Amounts = { ...estimated, ...counted, ...reportedTokens };
  const costUsd = reportedCost ?? (price === undefined ? undefined : costOf(price.price, amounts));
  const known = { ...counted, ...reportedTokens };
  const isGuessed = Object.keys(estimated).some((key) => known[key as keyof Amounts] === undefined);
  const isPriceGuessed = reportedCost === undefined && costUsd !== undefined && price?.isGuess === true;
  return { ...amounts, ...(costUsd !== undefined && { costUsd }), isEstimated: isGuessed || isPriceGuessed };
}
