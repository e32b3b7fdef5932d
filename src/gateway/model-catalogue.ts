import { codeOf, isParleyError, ParleyError } from "../core/errors.ts";
import type { ModelCapabilities, Model, ModelPrice } from "../core/gateway.ts";
import type { Log } from "../core/telemetry.ts";
import { nearestName } from "../support/text.ts";
import { isFields } from "../wire/failures.ts";
import { localPrice } from "../wire/public-prices.ts";
import { findPrice, type PriceTable } from "../wire/prices.ts";
import { modelRecordSchema } from "../wire/schemas.ts";
import { createRecent } from "../support/recent.ts";
import { untilAborted } from "../support/clock.ts";

/** How many models have their learned capabilities remembered, listed or not. */
const maxLearnedModels = 1000;
/** A fetched list is used for this long before it is fetched again. */
const freshMs = 5 * 60_000;
/** The delay before the next background refresh after a failed one. */
const coolDownMs = 30_000;
/** How long an error message may wait for the list to suggest a model. */
const suggestWaitMs = 2000;

interface ModelCatalogueOptions {
  /** Fetches the raw records. Contract: throws ParleyErrors. */
  fetchRecords(signal: AbortSignal): Promise<readonly unknown[]>;
  readonly prices: PriceTable | undefined;
  readonly log: Log;
}

interface Entry {
  readonly record: Readonly<Record<string, unknown>> & { readonly id: string };
  readonly model: Omit<Model, "capabilities" | "price">;
  readonly listedPrice: ModelPrice | undefined;
}

/**
 * The cached model list of the gateway, fetched on first use. While it is unreachable, the last list stays.
 */
export function createModelCatalogue(options: ModelCatalogueOptions) {
  const { prices, log } = options;
  const closing = new AbortController();
  const learned = createRecent<ModelCapabilities>(maxLearnedModels);
  let entries: ReadonlyMap<string, Entry> = new Map();
  let models: readonly Model[] = [];
  let fetchedAt: number | undefined;
  let triedAt = -Infinity;
  let running: Promise<void> | undefined;
  /** Whether the gateway has said that it has no list. */
  let lacksList = false;

  const priceOf = (modelId: string) => findPrice(modelId, prices, entries.get(modelId)?.listedPrice);

  const rebuild = () => {
    models = [...entries.values()].map(({ record, model }) => {
      const price = priceOf(record.id);
      return {
        ...model,
        capabilities: readCapabilities(record, learned.get(record.id)),
        ...(price !== undefined && { price }),
      };
    });
  };

  const fetchAll = async () => {
    triedAt = performance.now();
    const records = await options.fetchRecords(closing.signal).catch((error: unknown) => {
      lacksList = isParleyError(error, "gateway-unsupported");
      throw error;
    });
    lacksList = records.length === 0;
    entries = new Map(records.flatMap(toEntry).map((entry) => [entry.record.id, entry]));
    fetchedAt = performance.now();
    rebuild();
  };

  /** Runs one fetch at a time, which all callers share. */
  const refresh = () => {
    running ??= fetchAll().finally(() => {
      running = undefined;
    });
    return running;
  };

  const refreshInBackground = () => {
    const now = performance.now();
    const isFresh = fetchedAt !== undefined && now - fetchedAt < freshMs;
    if (isFresh || closing.signal.aborted || (running === undefined && now - triedAt < coolDownMs)) return;
    refresh().catch((error: unknown) => {
      if (!closing.signal.aborted) log.warn({ code: codeOf(error) }, "model list refresh failed");
    });
  };

  return {
    /**
     * Returns the list. It waits only for the first one. A stale list is returned at once and refreshed in
     * the background.
     * @throws ParleyError `gateway-…` when no list was ever fetched, or the signal's reason
     */
    async list(signal: AbortSignal): Promise<readonly Model[]> {
      signal.throwIfAborted();
      if (fetchedAt === undefined) await untilAborted(refresh(), signal);
      else refreshInBackground();
      return models;
    },
    /** Returns the cached list, maybe empty. A stale one is refreshed in the background. It never throws. */
    known(): readonly Model[] {
      refreshInBackground();
      return models;
    },
    priceOf,
    /** Records what a call has shown a model to support or not. */
    learn(modelId: string, shown: ModelCapabilities): void {
      const before = learned.get(modelId);
      const isNew = Object.entries(shown).some(
        ([capability, value]) => before?.[capability as keyof ModelCapabilities] !== value,
      );
      if (!isNew) return;
      learned.set(modelId, { ...before, ...shown });
      if (entries.has(modelId)) rebuild();
    },
    /** Whether the gateway has no list, or an empty one, as far as is known. */
    isLacking: () => lacksList,
    /** Returns the id that was probably meant. It waits at most 2 s for a list. */
    async suggest(modelId: string, signal: AbortSignal): Promise<string | undefined> {
      if (fetchedAt === undefined) {
        try {
          await untilAborted(refresh(), AbortSignal.any([signal, AbortSignal.timeout(suggestWaitMs)]));
        } catch (error) {
          // A missing suggestion must not replace the error that it was for.
          log.debug(
            { code: isParleyError(error) ? error.code : "timeout" },
            "no model list for a suggestion",
          );
        }
      }
      return nearestName(modelId, [...entries.keys()]);
    },
    close(): void {
      closing.abort(new ParleyError("stopping", "the gateway client is closed"));
    },
  };
}

function toEntry(raw: unknown): Entry[] {
  const parsed = modelRecordSchema.safeParse(raw);
  if (!parsed.success) return [];
  const { id, owned_by: ownedBy, created, context_length: contextLength, pricing } = parsed.data;
  const perMillion = (each: number | undefined) =>
    each === undefined ? undefined : Math.round(each * 1e12) / 1e6;
  const inputPerMillionUsd = perMillion(pricing?.prompt);
  const outputPerMillionUsd = perMillion(pricing?.completion);
  const { image: perImageUsd, audio_minute: perAudioMinuteUsd } = pricing ?? {};
  const listed: ModelPrice = {
    ...(inputPerMillionUsd !== undefined && { inputPerMillionUsd }),
    ...(outputPerMillionUsd !== undefined && { outputPerMillionUsd }),
    ...(perImageUsd !== undefined && { perImageUsd }),
    ...(perAudioMinuteUsd !== undefined && { perAudioMinuteUsd }),
  };
  return [
    {
      record: parsed.data,
      model: {
        id,
        ...(ownedBy !== undefined && ownedBy !== "" && { ownedBy }),
        ...(created !== undefined && { createdAt: created * 1000 }),
        ...(contextLength !== undefined && { contextLength }),
      },
      listedPrice: Object.keys(listed).length === 0 ? localPrice(ownedBy) : listed,
    },
  ];
}

type Mutable = { -readonly [K in keyof ModelCapabilities]?: boolean };

/**
 * Returns the capabilities of a listed model: guessed from its name, overridden by its metadata, overridden
 * by what calls have shown. Unknown ones stay `undefined`.
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

/** Splits a modality such as `text+image->text`. */
function splitModality(value: unknown): [string[] | undefined, string[] | undefined] {
  if (typeof value !== "string" || !value.includes("->")) return [undefined, undefined];
  const [input = "", output = ""] = value.toLowerCase().split("->");
  return [input.split("+"), output.split("+")];
}

/** Reads one word for the whole model, which some proxies send. */
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

/** Reads `{vision: true}` or a list of such words. */
function fromFlags(value: unknown): ModelCapabilities {
  const found: Mutable = {};
  if (isFields(value)) {
    for (const [flag, capability] of Object.entries(flags)) {
      if (typeof value[flag] === "boolean") found[capability] = value[flag];
    }
  }
  for (const word of words(value) ?? []) {
    const capability = Object.hasOwn(flags, word) ? flags[word] : undefined;
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
