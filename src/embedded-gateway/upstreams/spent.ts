import type { Prices } from "../settings.ts";

/** What a call used, as far as the upstream said. */
export interface Spent {
  readonly promptTokens?: number;
  readonly completionTokens?: number;
  readonly audioSeconds?: number;
  readonly images?: number;
  /** The upstream's own figure, in USD. */
  readonly costUsd?: number;
}

/** The usage of a chat answer or chunk; `undefined`: there is none in it. */
export function readUsage(answer: unknown): Spent | undefined {
  const usage = (answer as { usage?: Record<string, unknown> | null }).usage;
  if (typeof usage !== "object" || usage === null) return undefined;
  const read = (name: string): number | undefined =>
    typeof usage[name] === "number" ? usage[name] : undefined;
  const spent = {
    promptTokens: read("prompt_tokens") ?? read("input_tokens"),
    completionTokens: read("completion_tokens") ?? read("output_tokens"),
    audioSeconds: read("seconds"),
    costUsd: read("cost"),
  };
  return Object.fromEntries(Object.entries(spent).filter(([, value]) => value !== undefined));
}

/** In USD: the upstream's figure where it gave one, otherwise by the settings' prices; unknown prices count as 0. */
export function toCostUsd(spent: Spent, prices: Prices | undefined): number {
  if (spent.costUsd !== undefined) return spent.costUsd;
  return (
    ((spent.promptTokens ?? 0) * (prices?.inputPerMillionTokens ?? 0)) / 1_000_000 +
    ((spent.completionTokens ?? 0) * (prices?.outputPerMillionTokens ?? 0)) / 1_000_000 +
    ((spent.audioSeconds ?? 0) / 60) * (prices?.perAudioMinute ?? 0) +
    (spent.images ?? 0) * (prices?.perImage ?? 0)
  );
}
