import type { Usage } from "../../core/gateway.ts";

/** Usage of one call as the upstream reported it. */
export type UpstreamUsage = Omit<Usage, "isEstimated">;

/** More in one call is no amount but a mistake or an attack: it would use up any budget for good. */
const maxTokens = 1e9;
const maxSeconds = 1e6;
const maxCostUsd = 1e5;

/**
 * The usage in a chat answer or chunk, `undefined` when there is none. Fields that are not finite, negative or absurdly
 * large count as not reported.
 */
export function readUsage(answer: unknown): UpstreamUsage | undefined {
  if (typeof answer !== "object" || answer === null || !("usage" in answer)) return undefined;
  const { usage } = answer;
  if (typeof usage !== "object" || usage === null) return undefined;
  const record = usage as Readonly<Record<string, unknown>>;
  const read = (name: string, max: number): number | undefined => toAmount(record[name], max);
  const fields = {
    promptTokens: read("prompt_tokens", maxTokens) ?? read("input_tokens", maxTokens),
    completionTokens: read("completion_tokens", maxTokens) ?? read("output_tokens", maxTokens),
    audioSeconds: read("seconds", maxSeconds),
    costUsd: read("cost", maxCostUsd),
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** The duration in a transcription, in seconds. Some services send it as text. */
export function readDuration(answer: Readonly<Record<string, unknown>>): number | undefined {
  const seconds = toAmount(Number(answer["duration"] ?? Number.NaN), maxSeconds);
  return seconds === 0 ? undefined : seconds;
}

function toAmount(value: unknown, max: number): number | undefined {
  return typeof value === "number" && value >= 0 && value <= max ? value : undefined;
}
