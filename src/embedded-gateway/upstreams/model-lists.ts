import { LRUCache } from "lru-cache";
import type { Log } from "../../core/telemetry.ts";
import type { GatewayConfig, ModelConfig, UpstreamConfig } from "../settings.ts";
import { modelListSchema } from "../../gateway/schemas.ts";
import { mergeModels, type ModelRecord } from "../models.ts";
import { readAnswerJson, type UpstreamClient } from "./upstream-client.ts";

/** The merged model list of all upstreams. */
export interface ModelLists {
  /**
   * Waits for an upstream's first list only; a list older than five minutes is returned at once and refreshed in the
   * background. An upstream that fails keeps its last list.
   */
  all(requestId: string): Promise<readonly ModelRecord[]>;
  /** The ids of the cached lists; never waits. */
  knownIds(): readonly string[];
}

const freshMs = 5 * 60_000;
/** How long the last list, or none, is used after a failed fetch. */
const retryMs = 30_000;
const timeoutMs = 10_000;
const maxListBytes = 8 * 1024 * 1024;
/** Models of one upstream; further ones are left out. */
const maxModels = 5000;

/** Settings of {@link createModelLists}. */
export interface ModelListsOptions {
  readonly config: GatewayConfig;
  readonly log: Log;
  readonly clientOf: (prefix: string) => UpstreamClient;
}

/** @see {@link ModelLists} */
export function createModelLists({ config, log, clientOf }: ModelListsOptions): ModelLists {
  const startedAt = Math.floor(Date.now() / 1000);
  const configured = Object.entries(config.upstreams).map(([prefix, { models }]) => ({
    prefix,
    records: models?.map((model) => toRecord(prefix, model, startedAt)),
  }));
  const fetched = new LRUCache<string, readonly ModelRecord[], string>({
    max: Math.max(1, configured.length),
    ttl: freshMs,
    allowStale: true,
    fetchMethod: async (prefix, last, { options, context: requestId }) => {
      try {
        return await fetchList(prefix, clientOf(prefix), requestId, startedAt);
      } catch (error) {
        log.warn({ prefix, error }, "fetching the upstream's model list failed");
        options.ttl = retryMs;
        return last ?? [];
      }
    },
  });
  const merge = (lists: readonly (readonly ModelRecord[] | undefined)[]): ModelRecord[] =>
    mergeModels(
      config,
      lists.flatMap((list) => list ?? []),
    );

  return {
    all: async (requestId) =>
      merge(
        await Promise.all(
          configured.map(
            async ({ prefix, records }) => records ?? fetched.fetch(prefix, { context: requestId }),
          ),
        ),
      ),
    knownIds: () =>
      merge(configured.map(({ prefix, records }) => records ?? fetched.peek(prefix))).map(({ id }) => id),
  };
}

async function fetchList(
  prefix: string,
  client: UpstreamClient,
  requestId: string,
  startedAt: number,
): Promise<ModelRecord[]> {
  const signal = AbortSignal.timeout(timeoutMs);
  const answer = await client.request({ method: "GET", path: "/models", requestId, signal });
  const { data } = modelListSchema.parse(await readAnswerJson(prefix, answer, maxListBytes));
  return data.slice(0, maxModels).map((record) => ({
    ...record,
    id: `${prefix}/${record.id}`,
    object: "model",
    created: Math.floor(record.created ?? startedAt),
    owned_by: record.owned_by ?? prefix,
  }));
}

/** The record of a configured model. Prices are in USD a token, as services commonly send them. */
function toRecord(prefix: string, model: ModelConfig, startedAt: number): ModelRecord {
  const { capabilities, prices } = model;
  const perToken = (usd: number | undefined): string | undefined =>
    usd === undefined ? undefined : String(usd / 1_000_000);
  const pricing = {
    prompt: perToken(prices?.inputPerMillionUsd),
    completion: perToken(prices?.outputPerMillionUsd),
    image: prices?.perImageUsd?.toString(),
    audio_minute: prices?.perAudioMinuteUsd?.toString(),
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
