import type { ModelOperation } from "../core/gateway.ts";
import type { Log } from "../core/telemetry.ts";
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
import type { GatewayConfig } from "./gateway-config.ts";
import {
  createImageDownloader,
  createImageLoader,
  type LoadImage,
  picturePath,
  type PictureShelf,
} from "./load-image.ts";
import { readJson } from "./body-memory.ts";
import { createSandbox } from "./sandbox/sandbox.ts";
import { readUpload } from "./upload.ts";
import { createForwarder } from "./upstreams/forwarder.ts";
import { chatWorstCase, imageWorstCase, transcriptionWorstCase } from "./worst-case.ts";

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

/**
 * The four operations of the gateway API. They route each request by its model to the sandbox or to an
 * upstream, and send its response. Failures are thrown as ApiErrors.
 */
export function createOperations(options: OperationsOptions) {
  const { config, log, shelf, maxJsonBytes, maxUploadBytes, pingMs } = options;
  const findOwn = ({ origin }: Exchange, url: string): Buffer | undefined =>
    url.startsWith(`${origin}${picturePath}`) ? shelf.get(url.slice(origin.length))?.bytes : undefined;
  const downloader = createImageDownloader();
  const imageLoaderFor = (exchange: Exchange): LoadImage =>
    createImageLoader({
      signal: exchange.signal,
      downloader,
      findOwn: (url) => findOwn(exchange, url),
    });
  const isOwnPicture = (exchange: Exchange, url: string): boolean => findOwn(exchange, url) !== undefined;
  const forwarder = createForwarder({ config, log, shelf, pingMs, imageLoaderFor, isOwnPicture });
  const sandbox = createSandbox({ wordDelayMs: options.sandboxWordDelayMs, shelf, imageLoaderFor });
  const router = createRouter(config, () => forwarder.knownIds());

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
  const operations: Record<"models" | "chat" | "images" | "transcribe", Operate> = {
    models: async (exchange, access) => {
      const all = await forwarder.models(exchange.requestId);
      const data = all.filter(({ id }) => router.isVisible(id, access));
      exchange.sendJson(200, { object: "list", data });
    },

    chat: async (exchange, access) => {
      const json = await readJson(exchange.request, maxJsonBytes);
      const parsed = parseChatBody(json, (url) => isOwnPicture(exchange, url));
      const body = access.isLimited ? limitChat(parsed) : parsed;
      const route = router.route(body.model, "chat", access);
      await charged(access, "chat", route, chatWorstCase(body), async (charge) => {
        if (route.kind === "upstream")
          return forwarder.chat({ exchange, charge, targets: route.targets }, body);
        await sandbox.chat(exchange, { ...body, model: route.model });
        charge.settle(undefined, {});
      });
    },

    images: async (exchange, access) => {
      const parsed = parseImageBody(await readJson(exchange.request, maxJsonBytes));
      const body = access.isLimited ? limitImage(parsed) : parsed;
      const route = router.route(body.model, "image", access);
      await charged(access, "image", route, imageWorstCase(body), async (charge) => {
        if (route.kind === "upstream")
          return forwarder.images({ exchange, charge, targets: route.targets }, body);
        await sandbox.images(exchange, { ...body, model: route.model });
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
          return forwarder.transcribe({ exchange, charge, targets: route.targets }, file, fields, worst.most);
        await sandbox.transcribe(exchange, { ...fields, model: route.model }, file.bytes);
        charge.settle(undefined, {});
      });
    },
  };
  return {
    ...operations,
    close: async () => {
      await Promise.all([forwarder.close(), downloader.close()]);
    },
  };
}
