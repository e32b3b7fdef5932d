import type { ModelCapabilities } from "../core/gateway.ts";
import { isFields } from "./error-body.ts";

type Mutable = { -readonly [K in keyof ModelCapabilities]?: boolean };

/**
 * Capabilities of a listed model: guessed from its name, overridden by its metadata, overridden by what calls have
 * shown. Unknown ones stay `undefined`.
 * @param record a record of the model list as the gateway sent it
 */
export function readCapabilities(
  record: Readonly<Record<string, unknown>> & { readonly id: string },
  learned: ModelCapabilities = {},
): ModelCapabilities {
  return { ...fromName(record.id), ...fromMetadata(record), ...learned };
}

function fromMetadata(record: Readonly<Record<string, unknown>>): ModelCapabilities {
  const found: Mutable = {
    ...fromKind(record["mode"] ?? record["type"]),
    ...fromFlags(record["capabilities"]),
  };
  const architecture = isFields(record["architecture"]) ? record["architecture"] : record;
  const [modalityIn, modalityOut] = splitModality(architecture["modality"]);
  const input = words(architecture["input_modalities"]) ?? modalityIn;
  const output = words(architecture["output_modalities"]) ?? modalityOut;
  if (input !== undefined) {
    found.seesImages = input.includes("image");
    if (input.length > 0 && input.every((word) => word === "audio" || word === "file")) {
      found.transcribes = output === undefined || output.includes("text");
      found.chats = false;
    }
  }
  if (output !== undefined) {
    found.chats ??= output.includes("text");
    if (!output.includes("image")) found.drawsInChat = false;
    else if (output.includes("text")) found.drawsInChat = true;
    else found.generatesImages = true;
  }
  return found;
}

function words(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return (value as unknown[]).filter((word) => typeof word === "string").map((word) => word.toLowerCase());
}

/** `text+image->text`. */
function splitModality(value: unknown): [string[] | undefined, string[] | undefined] {
  if (typeof value !== "string" || !value.includes("->")) return [undefined, undefined];
  const [input = "", output = ""] = value.toLowerCase().split("->");
  return [input.split("+"), output.split("+")];
}

/** From one word for the whole model, as some proxies send it. */
function fromKind(kind: unknown): ModelCapabilities {
  switch (kind) {
    case "chat":
    case "language":
    case "llm":
      return { chats: true, transcribes: false, generatesImages: false };
    case "image":
    case "image_generation":
      return { chats: false, transcribes: false, generatesImages: true };
    case "transcription":
    case "audio_transcription":
    case "speech-to-text":
      return { chats: false, transcribes: true, generatesImages: false };
    case "embedding":
    case "rerank":
    case "moderation":
      return { chats: false, transcribes: false, generatesImages: false };
    default:
      return {};
  }
}

const flags: Readonly<Record<string, keyof ModelCapabilities>> = {
  chat: "chats",
  completion_chat: "chats",
  vision: "seesImages",
  image_input: "seesImages",
  image_output: "drawsInChat",
  image_generation: "generatesImages",
  transcription: "transcribes",
  audio_transcription: "transcribes",
};

/** From `{vision: true}` or a list of such words. */
function fromFlags(value: unknown): ModelCapabilities {
  const found: Mutable = {};
  if (isFields(value)) {
    for (const [flag, capability] of Object.entries(flags)) {
      if (typeof value[flag] === "boolean") found[capability] = value[flag];
    }
  }
  for (const word of words(value) ?? []) {
    const capability = flags[word];
    if (capability !== undefined) found[capability] = true;
  }
  return found;
}

const byName: readonly (readonly [RegExp, ModelCapabilities])[] = [
  [
    /embed|rerank|moderation|guard\b|\btts\b|text-to-speech/,
    { chats: false, transcribes: false, generatesImages: false },
  ],
  [
    /whisper|transcri|speech-to-text|\basr\b|\bstt\b/,
    { chats: false, transcribes: true, generatesImages: false },
  ],
  [
    /dall-e|gpt-image|imagen|\bflux|stable-diffusion|\bsdxl?\b|ideogram|recraft|seedream|playground-v/,
    { chats: false, generatesImages: true, transcribes: false },
  ],
  [/[-/]image\b/, { chats: true, drawsInChat: true, seesImages: true }],
  [
    /vision|[-/]vl\b|\bvlm?\b|gpt-4o|gpt-4\.1|gpt-5|\bo[34]\b|gemini|claude|pixtral|llava|gemma-?3|llama-?4/,
    { chats: true, seesImages: true },
  ],
];

function fromName(id: string): ModelCapabilities {
  const name = id.toLowerCase();
  return byName.find(([pattern]) => pattern.test(name))?.[1] ?? {};
}
