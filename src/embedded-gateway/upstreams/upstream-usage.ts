import type { Usage } from "../../core/gateway.ts";

/** Usage of one call as the upstream reported it. */
export type UpstreamUsage = Omit<Usage, "isEstimated">;

/** The usage in a chat answer or chunk. `undefined` when there is none. */
export function readUsage(answer: unknown): UpstreamUsage | undefined {
  const usage = (answer as { usage?: Record<string, unknown> | null }).usage;
  if (typeof usage !== "object" || usage === null) return undefined;
  const read = (name: string): number | undefined =>
    typeof usage[name] === "number" ? usage[name] : undefined;
  const fields = {
    promptTokens: read("prompt_tokens") ?? read("input_tokens"),
    completionTokens: read("completion_tokens") ?? read("output_tokens"),
    audioSeconds: read("seconds"),
    costUsd: read("cost"),
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
