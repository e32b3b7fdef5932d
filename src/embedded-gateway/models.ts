import type { GatewayConfig } from "./settings.ts";

/** A record of `GET /v1/models`, with common additional metadata. */
export interface ModelRecord {
  readonly id: string;
  readonly object: "model";
  /** Unix seconds. */
  readonly created: number;
  readonly owned_by: string;
  readonly [field: string]: unknown;
}

/** Unix seconds. */
const releasedAt = 1_767_225_600;

const free = { prompt: "0", completion: "0", image: "0", audio_minute: "0" };

function sandboxModel(
  name: string,
  description: string,
  input: readonly string[],
  output: readonly string[],
): ModelRecord {
  return {
    id: `sandbox/${name}`,
    object: "model",
    created: releasedAt,
    owned_by: "parley-sandbox",
    name: `Parley sandbox: ${name}`,
    description,
    context_length: 131_072,
    architecture: {
      modality: `${input.join("+")}->${output.join("+")}`,
      input_modalities: input,
      output_modalities: output,
    },
    pricing: free,
  };
}

/** The models that need no upstream. None is a language model, and each says so. */
export const sandboxModels: readonly ModelRecord[] = [
  sandboxModel("chat", "Answers by rules; no language model.", ["text", "image"], ["text"]),
  sandboxModel("image", "Draws scenes by rules and changes pictures.", ["text", "image"], ["text", "image"]),
  sandboxModel("transcribe", "Measures sound; recognises no words.", ["audio"], ["text"]),
];

/** The whole model list. Aliases come first, with the metadata of the model that they stand for. */
export function mergeModels(config: GatewayConfig, upstreamModels: readonly ModelRecord[]): ModelRecord[] {
  const records = [...(config.sandbox ? sandboxModels : []), ...upstreamModels];
  const aliases = Object.entries(config.aliases).map(([alias, id]): ModelRecord => {
    const target = records.find((record) => record.id === id);
    return { created: releasedAt, owned_by: "alias", ...target, id: alias, object: "model" };
  });
  return [...aliases, ...records];
}
