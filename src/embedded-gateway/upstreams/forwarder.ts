import { LRUCache } from "lru-cache";
import type { Log } from "../../core/telemetry.ts";
import { modelListSchema } from "../../wire/schemas.ts";
import {
  type Capability,
  type GatewayConfig,
  type ModelConfig,
  mergeModels,
  type ModelRecord,
} from "../gateway-config.ts";
import type { Exchange } from "../api-error.ts";
import type { LoadImage, PictureShelf } from "../load-image.ts";
import type { ChatBody, ImageBody, TranscriptionFields } from "../requests.ts";
import type { Upload } from "../upload.ts";
import { forwardChat } from "./forward-chat.ts";
import {
  createUpstreamClient,
  type Forwarding,
  toAnswerHeaders,
  toBrokenFailure,
  tryTargets,
  type UpstreamClient,
} from "./upstream-client.ts";
import { sniff } from "../../media/sniff.ts";
import { toForm } from "../../wire/transport.ts";
import { generatedPicturesOf, maxGenerationBytes } from "../../wire/pictures.ts";
import type { Target } from "../router.ts";

interface ForwarderOptions {
  readonly config: GatewayConfig;
  readonly log: Log;
  readonly shelf: PictureShelf;
  readonly pingMs: number;
  imageLoaderFor(exchange: Exchange): LoadImage;
  /** Whether a URL is one of this gateway's own pictures, which upstreams cannot reach. */
  isOwnPicture(exchange: Exchange, url: string): boolean;
}

type UploadedFile = Omit<Upload, "fields">;

/** A request and who serves it. */
type Forwarded = Pick<Forwarding, "exchange" | "targets">;

/**
 * The gateway's operations through the configured upstreams. Failures are ApiErrors. Each upstream has one
 * client, which connects with its first request.
 */
export function createForwarder(options: ForwarderOptions) {
  const { config, log, shelf, pingMs } = options;
  const clients = new Map<string, UpstreamClient>(
    Object.entries(config.upstreams).map(([prefix, upstream]) => [
      prefix,
      createUpstreamClient(prefix, upstream, log),
    ]),
  );
  const clientOf = (prefix: string): UpstreamClient => {
    const client = clients.get(prefix);
    if (client === undefined) throw new Error(`unknown upstream '${prefix}'`);
    return client;
  };
  const lists = createModelLists({ config, log, clientOf });
  const toForwarding = (forwarded: Forwarded): Forwarding => ({
    ...forwarded,
    log: log.child({ requestId: forwarded.exchange.requestId }),
    pingMs,
    loadImage: options.imageLoaderFor(forwarded.exchange),
    isOwnPicture: (url) => options.isOwnPicture(forwarded.exchange, url),
    clientOf: (target) => clientOf(target.prefix),
  });
  return {
    models: (requestId: string) => lists.all(requestId),
    /** Returns the ids of the cached model lists, for suggestions. */
    knownIds: () => lists.knownIds(),
    chat: (forwarded: Forwarded, body: ChatBody) => forwardChat(toForwarding(forwarded), body),
    images: (forwarded: Forwarded, body: ImageBody) => forwardImages(toForwarding(forwarded), body, shelf),
    transcribe: (forwarded: Forwarded, file: UploadedFile, fields: TranscriptionFields) =>
      forwardTranscription(toForwarding(forwarded), file, fields),
    close: async () => {
      await Promise.all([...clients.values()].map((client) => client.close()));
    },
  };
}

const freshMs = 5 * 60_000;
/** How long the last list, or none, is used after a failed fetch. */
const retryMs = 30_000;
const timeoutMs = 10_000;
const maxListBytes = 8 * 1024 * 1024;
/** The most models of one upstream. Further ones are left out. */
const maxModels = 5000;

interface ModelListsOptions {
  readonly config: GatewayConfig;
  readonly log: Log;
  readonly clientOf: (prefix: string) => UpstreamClient;
}

/** The merged model list of all upstreams. An upstream that fails keeps its last list. */
function createModelLists({ config, log, clientOf }: ModelListsOptions) {
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
    /**
     * Returns all models. It waits only for an upstream's first list. A list older than five minutes is
     * returned at once and refreshed in the background.
     */
    all: async (requestId: string) =>
      merge(
        await Promise.all(
          configured.map(
            async ({ prefix, records }) => records ?? fetched.fetch(prefix, { context: requestId }),
          ),
        ),
      ),
    /** Returns the ids of the cached lists. It never waits. */
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
  const answer = await client.request({ operation: "models", path: "/models", requestId, signal });
  const { data } = modelListSchema.parse(await answer.json(maxListBytes));
  return data.slice(0, maxModels).map((record) => ({
    ...record,
    id: `${prefix}/${record.id}`,
    object: "model",
    created: Math.floor(record.created ?? startedAt),
    owned_by: record.owned_by ?? prefix,
  }));
}

/** Returns the record of a configured model. Prices are in USD a token, as services commonly send them. */
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

function toArchitecture(capabilities: readonly Capability[]) {
  const has = new Set(capabilities);
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

/** The largest picture of a generation. */
const maxPictureBytes = 20 * 1024 * 1024;

/**
 * Forwards an image generation. Every item of the answer has a `url`. Images that arrive as base64 are put on
 * the picture shelf, unless the client asked for base64.
 */
async function forwardImages(forwarding: Forwarding, body: ImageBody, shelf: PictureShelf): Promise<void> {
  const { exchange } = forwarding;
  const { size, response_format: format, ...rest } = body;
  const { target, answer, json, pictures } = await tryTargets(forwarding, true, async (target) => {
    const answer = await forwarding.clientOf(target).request({
      operation: "image",
      path: "/images/generations",
      // Fields that the client left out are not sent, since upstreams support different ones.
      body: {
        ...rest,
        ...(typeof size !== "string" ? {} : { size }),
        ...(typeof format !== "string" ? {} : { response_format: format }),
        model: target.upstreamModel,
      },
      requestId: exchange.requestId,
      signal: exchange.signal,
    });
    const json = await answer.json(maxGenerationBytes(body.n, maxPictureBytes));
    const found = generatedPicturesOf(json) ?? [];
    if (found.length === 0) throw toBrokenFailure(target.prefix, "sent no image", "upstream_empty");
    return { target, answer, json, pictures: found.slice(0, body.n) };
  });
  const data = pictures.map((item) => (format === "b64_json" ? item : withUrl(item, exchange.origin, shelf)));
  exchange.sendJson(
    200,
    { created: Math.floor(Date.now() / 1000), ...json, data },
    toAnswerHeaders(target, answer.headers),
  );
}

type Generated = NonNullable<ReturnType<typeof generatedPicturesOf>>[number];

function withUrl(item: Generated, origin: string, shelf: PictureShelf): Generated {
  const { b64_json: base64, ...rest } = item;
  if (base64 === undefined || rest.url !== undefined) return item;
  const bytes = Buffer.from(base64, "base64");
  const file = sniff(bytes);
  if (file.kind !== "image") return item;
  return {
    ...rest,
    url: origin + shelf.put({ bytes, mediaType: file.mediaType, extension: file.extension }),
  };
}

const maxAnswerBytes = 16 * 1024 * 1024;
/** Other content types are sent as plain text, so that no browser runs an upstream's answer. */
const textTypes = /^(?:text\/(?:plain|vtt|event-stream)|application\/x-subrip)(?:; ?charset=[\w-]{1,20})?$/i;

/**
 * Forwards a transcription. The form is written anew with a boundary that the sender does not know, since
 * another server may see a delimiter where this one sees none.
 */
async function forwardTranscription(
  forwarding: Forwarding,
  file: UploadedFile,
  fields: TranscriptionFields,
): Promise<void> {
  const { exchange } = forwarding;
  const { target, answer, type, text, json } = await tryTargets(forwarding, true, async (target) => {
    const answer = await forwarding.clientOf(target).request({
      operation: "transcription",
      path: "/audio/transcriptions",
      // It may be text or subtitles, as the form says.
      accept: "*/*",
      body: toForm(toFields(fields, target), file),
      requestId: exchange.requestId,
      signal: exchange.signal,
    });
    const text = await answer.text(maxAnswerBytes);
    const type = String(answer.headers["content-type"] ?? "application/json");
    const json = /^application\/json/i.test(type) ? answer.parse(text) : undefined;
    return { target, answer, type, text, json };
  });

  const headers = toAnswerHeaders(target, answer.headers);
  // Subtitles and plain text are forwarded unchanged.
  if (json !== undefined) return exchange.sendJson(200, json, headers);
  const contentType = textTypes.test(type) ? type : "text/plain; charset=utf-8";
  exchange.sendBytes(200, text, { "content-type": contentType, ...headers });
}

function toFields(fields: TranscriptionFields, target: Target): Record<string, string> {
  const texts = Object.entries(fields).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  return { ...Object.fromEntries(texts), model: target.upstreamModel };
}
