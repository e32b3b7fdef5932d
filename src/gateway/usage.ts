import type { ChatMessage, Usage } from "../core/gateway.ts";
import { type BilledAmounts, costOf } from "../core/model-price.ts";
import type { ReportedUsage } from "./completion-chunk.ts";
import type { FoundPrice } from "./prices.ts";

/** Tokens estimated for an image when the gateway reports no usage. */
const tokensPerImage = 800;

/** Estimated tokens of a text: a quarter of its UTF-8 bytes, rounded up. */
function estimateTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text, "utf8") / 4);
}

/** Estimated tokens of a prompt. Every image counts the same, whatever its size. */
export function estimatePromptTokens(messages: readonly ChatMessage[]): number {
  let tokens = 0;
  for (const { content } of messages) {
    if (typeof content === "string") tokens += estimateTokens(content);
    else
      for (const part of content) tokens += part.kind === "text" ? estimateTokens(part.text) : tokensPerImage;
  }
  return tokens;
}

/** What is known about the usage of a call. */
export interface UsageFacts {
  readonly reported: ReportedUsage | undefined;
  /** BilledAmounts concluded here. They stand in for what was not reported. */
  readonly estimated: BilledAmounts;
  /** BilledAmounts that are certain though not reported: images counted, a duration the gateway told. */
  readonly counted?: BilledAmounts;
  readonly price: FoundPrice | undefined;
}

/** Tokens and money of a call. `isEstimated` when any number was neither reported by the gateway nor configured. */
export function toUsage(facts: UsageFacts): Usage {
  const { reported, estimated, counted = {}, price } = facts;
  const { costUsd: reportedCost, ...reportedTokens } = reported ?? {};
  const amounts: BilledAmounts = { ...estimated, ...counted, ...reportedTokens };
  const costUsd = reportedCost ?? (price === undefined ? undefined : costOf(price.price, amounts));
  const known = { ...counted, ...reportedTokens };
  const isGuessed = Object.keys(estimated).some((key) => known[key as keyof BilledAmounts] === undefined);
  const isPriceGuessed = reportedCost === undefined && costUsd !== undefined && price?.isGuess === true;
  return { ...amounts, ...(costUsd !== undefined && { costUsd }), isEstimated: isGuessed || isPriceGuessed };
}
