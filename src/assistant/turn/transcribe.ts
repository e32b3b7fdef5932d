import type { TranscriptionAnswer, TranscriptionRequest } from "../../core/gateway.ts";
import type { TurnDependencies } from "./turn.ts";

/** Words of a recording. `asked`: the model that was asked. */
export interface Transcription extends TranscriptionAnswer {
  readonly asked: string;
}

/**
 * Transcribes one recording with the model asked for, or the default one.
 * @throws ParleyError `gateway-…`
 */
export async function transcribe(
  dependencies: Pick<TurnDependencies, "gateway" | "models" | "meter">,
  request: Omit<TranscriptionRequest, "model">,
  model: string | undefined,
  signal: AbortSignal,
): Promise<Transcription> {
  const chosen = await dependencies.models.choose("transcription", model, signal);
  const answer = await dependencies.gateway.transcribe({ ...request, model: chosen }, signal);
  const labels = { operation: "transcription", outcome: "complete", model: answer.model };
  dependencies.meter.call(labels, answer.usage);
  return { ...answer, asked: chosen };
}
