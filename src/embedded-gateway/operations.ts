import type { ModelOperation } from "../core/gateway.ts";
import type { Log } from "../core/telemetry.ts";
import type { Downloader } from "../media/guarded-download.ts";
import { type Access, createRouter, type Route, type Charge, type WorstCase } from "./router.ts";
import type { Exchange } from "./api-error.ts";
import {
  limitChat,
  limitImage,
  limitTranscription,
  parseChatBody,
  parseImageBody,
  parseTranscriptionFields,
} from "./requests.ts";
import { mergeModels, type GatewayConfig } from "./gateway-config.ts";
import { picturePath, type PictureShelf, type LoadImage } from "./load-image.ts";
import { readJson } from "./body-memory.ts";
import type { createSandbox } from "./sandbox/sandbox.ts";
import { readUpload } from "./upload.ts";
import type { createForwarder, Forwarded } from "./upstreams/forwarder.ts";
import { chatWorstCase, imageWorstCase, transcriptionWorstCase } from "./worst-case.ts";

type Forwarder = ReturnType<typeof createForwarder>;

type Sandbox = ReturnType<typeof createSandbox>;

/** The options of {@link createOperations}. */
interface OperationsOptions {
  readonly config: GatewayConfig;
  readonly log: Log;
  readonly shelf: PictureShelf;
  readonly maxJsonBytes: number;
  readonly maxUploadBytes: number;
  readonly pingMs: number;
  readonly sandboxWordDelayMs: number;
}

type Operate = (exchange: Exchange, access: Access) => Promise<void>;

/** The four operations of the gateway API. Each sends its response. Failures are thrown as ApiErrors. */
interface Operations {
  readonly models: Operate;
  readonly chat: Operate;
  readonly images: Operate;
  readonly transcribe: Operate;
  close(): Promise<void>;
}

/**
 * Routes each request by its model to the sandbox or to an upstream. The sandbox is loaded with its first
 * request, and the forwarder only when upstreams are configured.
 */
export async function createOperations(options: OperationsOptions): Promise<Operations> {
  const { config, shelf, maxJsonBytes, maxUploadBytes } = options;
  const forwarder = Object.keys(config.upstreams).length > 0 ? await openForwarder(options) : undefined;
  const ownIds = mergeModels(config, []).map(({ id }) => id);
  const router = createRouter(config, () => forwarder?.knownIds() ?? ownIds);

  const findOwn = (exchange: Exchange, url: string): Buffer | undefined => {
    if (!url.startsWith(`${exchange.origin}${picturePath}`)) return undefined;
    return shelf.get(url.slice(exchange.origin.length))?.bytes;
  };
  let downloader: Downloader | undefined;
  const loadImageFor =
    (exchange: Exchange): LoadImage =>
    async (image, use) => {
      const { createImageDownloader, createImageLoader } = await import("./load-image.ts");
      downloader ??= createImageDownloader();
      const { signal } = exchange;
      const load = createImageLoader({ signal, downloader, findOwn: (url) => findOwn(exchange, url) });
      return load(image, use);
    };
  let opened: Promise<Sandbox> | undefined;
  const sandbox = (): Promise<Sandbox> => (opened ??= openSandbox(options, loadImageFor));

  /** Reserves the worst case, and charges what was used, however the request ends. */
  const charged = async (
    access: Access,
    operation: ModelOperation,
    route: Route,
    worst: WorstCase,
    work: (charge: Charge) => Promise<void>,
  ): Promise<void> => {
    const targets = route.kind === "sandbox" ? [] : route.targets;
    const charge = await access.reserve(operation, targets, worst);
    try {
      await work(charge);
    } finally {
      charge.end();
    }
  };
  const forward = (
    exchange: Exchange,
    charge: Charge,
    { targets }: Route & { kind: "upstream" },
    send: (forwarder: Forwarder, forwarded: Forwarded) => Promise<void>,
  ): Promise<void> => {
    if (forwarder === undefined) throw new Error("target without upstreams");
    return send(forwarder, {
      exchange,
      targets,
      charge,
      loadImage: loadImageFor(exchange),
      isOwnPicture: (url) => findOwn(exchange, url) !== undefined,
    });
  };

  return {
    models: async (exchange, access) => {
      const all = (await forwarder?.models(exchange.requestId)) ?? mergeModels(config, []);
      const data = all.filter(({ id }) => router.isVisible(id, access));
      exchange.sendJson(200, { object: "list", data });
    },

    chat: async (exchange, access) => {
      const json = await readJson(exchange.request, maxJsonBytes);
      const parsed = parseChatBody(json, (url) => findOwn(exchange, url) !== undefined);
      const body = access.isLimited ? limitChat(parsed) : parsed;
      const route = router.route(body.model, "chat", access);
      await charged(access, "chat", route, chatWorstCase(body), async (charge) => {
        if (route.kind === "upstream")
          return forward(exchange, charge, route, (to, forwarded) => to.chat(forwarded, body));
        await (await sandbox()).chat(exchange, { ...body, model: route.model });
        charge.settle(undefined, {});
      });
    },

    images: async (exchange, access) => {
      const parsed = parseImageBody(await readJson(exchange.request, maxJsonBytes));
      const body = access.isLimited ? limitImage(parsed) : parsed;
      const route = router.route(body.model, "image", access);
      await charged(access, "image", route, imageWorstCase(body), async (charge) => {
        if (route.kind === "upstream")
          return forward(exchange, charge, route, (to, forwarded) => to.images(forwarded, body));
        await (await sandbox()).images(exchange, { ...body, model: route.model });
        charge.settle(undefined, { images: body.n });
      });
    },

    transcribe: async (exchange, access) => {
      const { fields: given, ...file } = await readUpload(exchange.request, maxUploadBytes);
      const parsed = parseTranscriptionFields(given);
      const fields = access.isLimited ? limitTranscription(parsed) : parsed;
      const route = router.route(fields.model, "transcription", access);
      const worst = transcriptionWorstCase(fields, file.bytes);
      await charged(access, "transcription", route, worst, async (charge) => {
        if (route.kind === "upstream")
          return forward(exchange, charge, route, (to, forwarded) =>
            to.transcribe(forwarded, file, fields, worst.most),
          );
        await (await sandbox()).transcribe(exchange, { ...fields, model: route.model }, file.bytes);
        charge.settle(undefined, {});
      });
    },

    close: async () => {
      await Promise.all([forwarder?.close(), downloader?.close()]);
    },
  };
}

async function openForwarder({ config, log, shelf, pingMs }: OperationsOptions): Promise<Forwarder> {
  const { createForwarder } = await import("./upstreams/forwarder.ts");
  return createForwarder({ config, log, shelf, pingMs });
}

async function openSandbox(
  { shelf, sandboxWordDelayMs: wordDelayMs }: OperationsOptions,
  imageLoaderFor: (exchange: Exchange) => LoadImage,
): Promise<Sandbox> {
  const { createSandbox } = await import("./sandbox/sandbox.ts");
  return createSandbox({ wordDelayMs, shelf, imageLoaderFor });
}
