import { LRUCache } from "lru-cache";
import { codeOf, isParleyError } from "../core/errors.ts";
import type { Model, ModelCapabilities } from "../core/gateway.ts";
import type { ModelPrice } from "../core/model-price.ts";
import type { Log } from "../core/telemetry.ts";
import { nearestName } from "../support/nearest-name.ts";
import { readCapabilities } from "./capabilities.ts";
import { describePrice, findPrice, type FoundPrice, type PriceTable } from "./prices.ts";
import { modelRecordSchema } from "./schemas.ts";

/** Models whose learned capabilities are remembered, listed or not. */
const maxLearnedModels = 1000;
/** A fetched list is used for this long before it is fetched again. */
const freshMs = 5 * 60_000;
/** Delay before the next background refresh after a failed one. */
const coolDownMs = 30_000;
/** How long an error message may wait for the list to suggest a model. */
const suggestWaitMs = 2000;

/** The cached model list of the gateway. */
export interface ModelCatalogue {
  /**
   * Waits only for the first list; a stale one is returned at once and refreshed in the background.
   * @throws ParleyError `gateway-…` when no list was ever fetched; the signal's reason
   */
  list(signal: AbortSignal): Promise<readonly Model[]>;
  /** The cached list, maybe empty. Starts a background refresh when it is stale. Never waits, never throws. */
  known(): readonly Model[];
  priceOf(modelId: string): FoundPrice | undefined;
  /** Records what a call has shown a model to support or not. */
  learn(modelId: string, shown: ModelCapabilities): void;
  /** The id that was probably meant. Waits at most 2 s for a list. */
  suggest(modelId: string, signal: AbortSignal): Promise<string | undefined>;
  close(): void;
}

/** Settings of {@link createModelCatalogue}. */
export interface ModelCatalogueOptions {
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

/** A catalogue that fetches with its first use. While the gateway is unreachable the last list stays. */
export function createModelCatalogue(options: ModelCatalogueOptions): ModelCatalogue {
  const { prices, log } = options;
  const closing = new AbortController();
  const learned = new LRUCache<string, ModelCapabilities>({ max: maxLearnedModels });
  let entries: ReadonlyMap<string, Entry> = new Map();
  let models: readonly Model[] = [];
  let fetchedAt: number | undefined;
  let triedAt = -Infinity;
  let running: Promise<void> | undefined;

  const priceOf = (modelId: string) => findPrice(modelId, prices, entries.get(modelId)?.listedPrice);

  const rebuild = () => {
    models = [...entries.values()].map(({ record, model }) => {
      const price = describePrice(priceOf(record.id));
      return {
        ...model,
        capabilities: readCapabilities(record, learned.get(record.id)),
        ...(price !== undefined && { price }),
      };
    });
  };

  const fetchAll = async () => {
    triedAt = performance.now();
    const records = await options.fetchRecords(closing.signal);
    entries = new Map(records.flatMap(toEntry).map((entry) => [entry.record.id, entry]));
    fetchedAt = performance.now();
    rebuild();
  };

  /** One fetch at a time, shared by all callers. */
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
    async list(signal) {
      signal.throwIfAborted();
      if (fetchedAt === undefined) await withSignal(refresh(), signal);
      else refreshInBackground();
      return models;
    },
    known() {
      refreshInBackground();
      return models;
    },
    priceOf,
    learn(modelId, shown) {
      const before = learned.get(modelId);
      const isNew = Object.entries(shown).some(
        ([capability, value]) => before?.[capability as keyof ModelCapabilities] !== value,
      );
      if (!isNew) return;
      learned.set(modelId, { ...before, ...shown });
      if (entries.has(modelId)) rebuild();
    },
    async suggest(modelId, signal) {
      if (fetchedAt === undefined) {
        try {
          await withSignal(refresh(), AbortSignal.any([signal, AbortSignal.timeout(suggestWaitMs)]));
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
    close() {
      closing.abort();
    },
  };
}

/** Waits for a shared promise until this caller's signal aborts. */
async function withSignal<T>(shared: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([shared, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
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
      listedPrice: Object.keys(listed).length === 0 ? undefined : listed,
    },
  ];
}
