import type { ModelOperation } from "../core/gateway.ts";
import type { Log } from "../core/telemetry.ts";
import type { Downloader } from "../media/guarded-download.ts";
import type { Access } from "./access.ts";
import type { Exchange } from "./exchange.ts";
import { mergeModels } from "./models.ts";
import { picturePath, type PictureShelf } from "./picture-shelf.ts";
import { readJson } from "./read-body.ts";
import { parseChatBody, parseImageBody, parseTranscriptionFields } from "./requests.ts";
import { createRouter, type Route } from "./router.ts";
import type { LoadImage } from "./load-image.ts";
import type { Sandbox } from "./sandbox/sandbox.ts";
import type { GatewayConfig } from "./settings.ts";
import { openUpload } from "./upload.ts";
import type { Forwarded, Forwarder } from "./upstreams/forwarder.ts";

/** Settings of {@link createOperations}. */
export interface OperationsOptions {
  readonly config: GatewayConfig;
  readonly log: Log;
  readonly shelf: PictureShelf;
  readonly maxJsonBytes: number;
  readonly maxUploadBytes: number;
  readonly pingMs: number;
  readonly sandboxWordDelayMs: number;
}

type Operate = (exchange: Exchange, access: Access) => Promise<void>;

/** The four operations of the gateway API. Each sends its response; failures are thrown as ApiErrors. */
export interface Operations {
  readonly models: Operate;
  readonly chat: Operate;
  readonly images: Operate;
  readonly transcribe: Operate;
  close(): Promise<void>;
}

/**
 * Routes each request by its model to the sandbox or to an upstream. The sandbox is loaded with its first request, the
 * forwarder only when upstreams are configured.
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

  const routeFor = (model: string, operation: ModelOperation, access: Access): Route => {
    const route = router.route(model, operation);
    access.expectModel(model);
    return route;
  };
  const forward = (
    exchange: Exchange,
    access: Access,
    operation: ModelOperation,
    { targets }: Route & { kind: "upstream" },
    send: (forwarder: Forwarder, forwarded: Forwarded) => Promise<void>,
  ): Promise<void> => {
    if (forwarder === undefined) throw new Error("target without upstreams");
    return send(forwarder, {
      exchange,
      targets,
      loadImage: loadImageFor(exchange),
      isOwnPicture: (url) => findOwn(exchange, url) !== undefined,
      onUsage: (target, usage) => access.onUsage(operation, target, usage),
    });
  };

  return {
    models: async (exchange, access) => {
      const all = (await forwarder?.models(exchange.requestId)) ?? mergeModels(config, []);
      exchange.sendJson(200, { object: "list", data: all.filter(({ id }) => access.sees(id)) });
    },

    chat: async (exchange, access) => {
      const json = await readJson(exchange.request, maxJsonBytes);
      const body = parseChatBody(json, (url) => findOwn(exchange, url) !== undefined);
      const route = routeFor(body.model, "chat", access);
      if (route.kind === "sandbox") {
        await (await sandbox()).chat(exchange, { ...body, model: route.model });
        return access.onUsage("chat", undefined, {});
      }
      return forward(exchange, access, "chat", route, (to, forwarded) => to.chat(forwarded, body));
    },

    images: async (exchange, access) => {
      const body = parseImageBody(await readJson(exchange.request, maxJsonBytes));
      const route = routeFor(body.model, "image", access);
      if (route.kind === "sandbox") {
        await (await sandbox()).images(exchange, { ...body, model: route.model });
        return access.onUsage("image", undefined, { images: body.n });
      }
      return forward(exchange, access, "image", route, (to, forwarded) => to.images(forwarded, body));
    },

    transcribe: async (exchange, access) => {
      const upload = await openUpload(exchange.request, maxUploadBytes);
      // When the model follows the file in the form, the file is buffered first.
      if (upload.fields["model"] === undefined) await upload.readAll();
      const { model } = parseTranscriptionFields(upload.fields);
      const route = routeFor(model, "transcription", access);
      if (route.kind === "upstream") {
        return forward(exchange, access, "transcription", route, (to, forwarded) =>
          to.transcribe(forwarded, upload),
        );
      }
      const bytes = await upload.readAll();
      const fields = parseTranscriptionFields(upload.fields);
      await (await sandbox()).transcribe(exchange, { ...fields, model: route.model }, bytes);
      access.onUsage("transcription", undefined, {});
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
