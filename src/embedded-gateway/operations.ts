import type { Log } from "../assistant/types.ts";
import type { Downloader } from "../media/guarded-download.ts";
import type { Access } from "./access.ts";
import type { GatewayConfig } from "./gateway-config.ts";
import type { Exchange } from "./exchange.ts";
import type { Operation } from "./models.ts";
import { picturePath, type PictureShelf } from "./picture-shelf.ts";
import { readJson } from "./read-body.ts";
import { parseChatBody, parseImageBody, parseTranscriptionFields } from "./requests.ts";
import { createRouter, type Route } from "./router.ts";
import { createImageLoader, type LoadImage } from "./sandbox/load-image.ts";
import { createSandbox } from "./sandbox/sandbox.ts";
import { openUpload } from "./upload.ts";
import { forwardChat } from "./upstreams/forward-chat.ts";
import { forwardImages } from "./upstreams/forward-images.ts";
import { forwardTranscription } from "./upstreams/forward-transcription.ts";
import type { Forwarding } from "./upstreams/forward.ts";
import { createModelLists } from "./upstreams/model-lists.ts";
import { createUpstreamClient, type UpstreamClient } from "./upstreams/upstream-client.ts";

export interface OperationsOptions {
  readonly config: GatewayConfig;
  readonly log: Log;
  readonly shelf: PictureShelf;
  readonly downloader: Downloader;
  readonly maxJsonBytes: number;
  readonly maxUploadBytes: number;
  readonly pingMs: number;
  readonly sandboxWordDelayMs: number;
}

type Operate = (exchange: Exchange, access: Access) => Promise<void>;

/** The specification's four operations. Each answers the exchange; failures are ApiErrors. */
export interface Operations {
  readonly models: Operate;
  readonly chat: Operate;
  readonly images: Operate;
  readonly transcribe: Operate;
  close(): Promise<void>;
}

/** Sends each request to the sandbox or on to an upstream, by its model. */
export function createOperations(options: OperationsOptions): Operations {
  const { config, log, shelf, downloader, maxJsonBytes, maxUploadBytes } = options;
  const clients = new Map<string, UpstreamClient>(
    Object.entries(config.upstreams).map(([prefix, upstream]) => [
      prefix,
      createUpstreamClient(prefix, upstream),
    ]),
  );
  const clientOf = (prefix: string): UpstreamClient => {
    const client = clients.get(prefix);
    if (client === undefined) throw new Error(`There is no upstream '${prefix}'.`);
    return client;
  };
  const lists = createModelLists({ config, log, clientOf });
  const router = createRouter(config, () => lists.knownIds());

  const findOwn = (exchange: Exchange, url: string): Buffer | undefined => {
    if (!url.startsWith(`${exchange.origin}${picturePath}`)) return undefined;
    return shelf.get(url.slice(exchange.origin.length))?.bytes;
  };
  const imageLoaderFor = (exchange: Exchange): LoadImage =>
    createImageLoader({ signal: exchange.signal, downloader, findOwn: (url) => findOwn(exchange, url) });
  const sandbox = createSandbox({ wordDelayMs: options.sandboxWordDelayMs, shelf, imageLoaderFor });

  const routeFor = (model: string, operation: Operation, access: Access): Route => {
    const route = router.route(model, operation);
    access.expectModel(model);
    return route;
  };
  const toForwarding = (
    exchange: Exchange,
    access: Access,
    operation: Operation,
    route: Route & { kind: "upstream" },
  ): Forwarding => ({
    exchange,
    targets: route.targets,
    log: log.child({ requestId: exchange.requestId }),
    pingMs: options.pingMs,
    clientOf: (target) => clientOf(target.prefix),
    loadImage: imageLoaderFor(exchange),
    isOwnPicture: (url) => findOwn(exchange, url) !== undefined,
    onSpent: (target, spent) => access.onSpent(operation, target, spent),
  });

  return {
    models: async (exchange, access) => {
      const all = await lists.all(exchange.requestId);
      exchange.sendJson(200, { object: "list", data: all.filter(({ id }) => access.sees(id)) });
    },

    chat: async (exchange, access) => {
      const json = await readJson(exchange.request, maxJsonBytes);
      const body = parseChatBody(json, (url) => findOwn(exchange, url) !== undefined);
      const route = routeFor(body.model, "chat", access);
      if (route.kind === "sandbox") return sandbox.chat(exchange, { ...body, model: route.model });
      return forwardChat(toForwarding(exchange, access, "chat", route), body);
    },

    images: async (exchange, access) => {
      const body = parseImageBody(await readJson(exchange.request, maxJsonBytes));
      const route = routeFor(body.model, "images", access);
      if (route.kind === "sandbox") return sandbox.images(exchange, { ...body, model: route.model });
      return forwardImages(toForwarding(exchange, access, "images", route), body, shelf);
    },

    transcribe: async (exchange, access) => {
      const upload = await openUpload(exchange.request, maxUploadBytes);
      // A form may name its model after its file; then the file has to wait.
      if (upload.fields["model"] === undefined) await upload.readAll();
      const { model } = parseTranscriptionFields(upload.fields);
      const route = routeFor(model, "transcription", access);
      if (route.kind === "upstream") {
        return forwardTranscription(toForwarding(exchange, access, "transcription", route), upload);
      }
      const bytes = await upload.readAll();
      const fields = parseTranscriptionFields(upload.fields);
      return sandbox.transcribe(exchange, { ...fields, model: route.model }, bytes);
    },

    close: async () => {
      await Promise.all([...clients.values()].map((client) => client.close()));
    },
  };
}
