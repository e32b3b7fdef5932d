import type { Log } from "../../core/telemetry.ts";
import type { GatewayConfig, ModelConfig, UpstreamConfig } from "../settings.ts";
import { modelListSchema } from "../../gateway/schemas.ts";
import { mergeModels, type ModelRecord } from "../models.ts";
import { readAnswerJson, type UpstreamClient } from "./upstream-client.ts";

/** The merged model list. */
export interface ModelLists {
  /** Fresh for five minutes; older lists are answered at once and renewed behind. An upstream that fails keeps its last. */
  all(requestId: string): Promise<readonly ModelRecord[]>;
  /** Ids as last seen; never waits. */
  knownIds(): readonly string[];
}

const freshMs = 5 * 60_000;
const retryMs = 30_000;
const firstWaitMs = 10_000;
const maxListBytes = 16 * 1024 * 1024;

export interface ModelListsOptions {
  readonly config: GatewayConfig;
  readonly log: Log;
  readonly clientOf: (prefix: string) => UpstreamClient;
}

interface Entry {
  records: readonly ModelRecord[];
  staleAt: number;
  running?: Promise<void> | undefined;
}

export function createModelLists({ config, log, clientOf }: ModelListsOptions): ModelLists {
  const startedAt = Math.floor(Date.now() / 1000);
  const entries = new Map<string, Entry>();
  for (const [prefix, upstream] of Object.entries(config.upstreams)) {
    const records = (upstream.models ?? []).map((model) => toRecord(prefix, model, startedAt));
    entries.set(prefix, { records, staleAt: upstream.models === undefined ? 0 : Number.POSITIVE_INFINITY });
  }

  const renew = (prefix: string, entry: Entry, requestId: string): Promise<void> => {
    entry.running ??= fetchList(prefix, clientOf(prefix), requestId, startedAt)
      .then((records) => {
        entry.records = records;
        entry.staleAt = Date.now() + freshMs;
      })
      .catch((error: unknown) => {
        entry.staleAt = Date.now() + retryMs;
        log.warn({ prefix, error }, "upstream's model list could not be read");
      })
      .finally(() => {
        entry.running = undefined;
      });
    return entry.running;
  };

  const merged = (): ModelRecord[] =>
    mergeModels(
      config,
      [...entries.values()].flatMap((entry) => entry.records),
    );

  return {
    all: async (requestId) => {
      const waits: Promise<void>[] = [];
      for (const [prefix, entry] of entries) {
        if (entry.staleAt > Date.now()) continue;
        const renewal = renew(prefix, entry, requestId);
        if (entry.staleAt === 0) waits.push(renewal);
      }
      await Promise.all(waits);
      return merged();
    },
    knownIds: () => merged().map(({ id }) => id),
  };
}

async function fetchList(
  prefix: string,
  client: UpstreamClient,
  requestId: string,
  startedAt: number,
): Promise<ModelRecord[]> {
  const signal = AbortSignal.timeout(firstWaitMs);
  const answer = await client.request({ method: "GET", path: "/models", requestId, signal });
  const { data } = modelListSchema.parse(await readAnswerJson(prefix, answer, maxListBytes));
  return data.map((record) => ({
    ...record,
    id: `${prefix}/${record.id}`,
    object: "model",
    created: Math.floor(record.created ?? startedAt),
    owned_by: record.owned_by ?? prefix,
  }));
}

/** A model of the settings' own list, described as services commonly do: prices in USD a token. */
function toRecord(prefix: string, model: ModelConfig, startedAt: number): ModelRecord {
  const { capabilities, prices } = model;
  const perToken = (usd: number | undefined): string | undefined =>
    usd === undefined ? undefined : String(usd / 1_000_000);
  const pricing = {
    prompt: perToken(prices?.inputPerMillionTokens),
    completion: perToken(prices?.outputPerMillionTokens),
    image: prices?.perImage?.toString(),
    audio_minute: prices?.perAudioMinute?.toString(),
  };
  return {
    id: `${prefix}/${model.id}`,
    object: "model",
    created: startedAt,
    owned_by: prefix,
    ...(model.contextLength === undefined ? {} : { context_length: model.contextLength }),
    ...(capabilities === undefined ? {} : { architecture: toArchitecture(capabilities) }),
    ...(prices === undefined ? {} : { pricing }),
  };
}

function toArchitecture(
  capabilities: NonNullable<UpstreamConfig["models"]>[number]["capabilities"] & object,
) {
  const has = new Set<string>(capabilities);
  const chats = has.has("chat") || has.has("vision") || has.has("draws-in-chat");
  return {
    input_modalities: [
      ...(chats || has.has("images") ? ["text"] : []),
      ...(has.has("vision") ? ["image"] : []),
      ...(has.has("transcription") ? ["audio"] : []),
    ],
    output_modalities: [
      ...(chats || has.has("transcription") ? ["text"] : []),
      ...(has.has("images") || has.has("draws-in-chat") ? ["image"] : []),
    ],
  };
}
