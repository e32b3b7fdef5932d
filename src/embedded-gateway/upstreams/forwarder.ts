import type { BilledAmounts } from "../../core/model-price.ts";
import type { Log } from "../../core/telemetry.ts";
import type { ModelRecord } from "../models.ts";
import type { PictureShelf } from "../picture-shelf.ts";
import type { ChatBody, ImageBody, TranscriptionFields } from "../requests.ts";
import type { GatewayConfig } from "../settings.ts";
import type { Upload } from "../upload.ts";
import { forwardChat } from "./forward-chat.ts";
import { forwardImages } from "./forward-images.ts";
import { forwardTranscription } from "./forward-transcription.ts";
import type { Forwarding } from "./forward.ts";
import { createModelLists } from "./model-lists.ts";
import { createUpstreamClient, type UpstreamClient } from "./upstream-client.ts";

/** Settings of {@link createForwarder}. */
export interface ForwarderOptions {
  readonly config: GatewayConfig;
  readonly log: Log;
  readonly shelf: PictureShelf;
  readonly pingMs: number;
}

/** The part of {@link Forwarding} that differs by request. */
export type Forwarded = Omit<Forwarding, "log" | "pingMs" | "clientOf">;

/** The gateway's operations through the configured upstreams. Failures are ApiErrors. */
export interface Forwarder {
  models(requestId: string): Promise<readonly ModelRecord[]>;
  /** The ids of the cached model lists, for suggestions. */
  knownIds(): readonly string[];
  chat(forwarded: Forwarded, body: ChatBody): Promise<void>;
  images(forwarded: Forwarded, body: ImageBody): Promise<void>;
  /** `most` is charged for what the upstream does not report. */
  transcribe(
    forwarded: Forwarded,
    upload: Upload,
    fields: TranscriptionFields,
    most: BilledAmounts,
  ): Promise<void>;
  close(): Promise<void>;
}

/** Creates one client for each upstream. Nothing connects before the first request. */
export function createForwarder({ config, log, shelf, pingMs }: ForwarderOptions): Forwarder {
  const clients = new Map<string, UpstreamClient>(
    Object.entries(config.upstreams).map(([prefix, upstream]) => [
      prefix,
      createUpstreamClient(prefix, upstream),
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
    clientOf: (target) => clientOf(target.prefix),
  });
  return {
    models: (requestId) => lists.all(requestId),
    knownIds: () => lists.knownIds(),
    chat: (forwarded, body) => forwardChat(toForwarding(forwarded), body),
    images: (forwarded, body) => forwardImages(toForwarding(forwarded), body, shelf),
    transcribe: (forwarded, upload, fields, most) =>
      forwardTranscription(toForwarding(forwarded), upload, fields, most),
    close: async () => {
      await Promise.all([...clients.values()].map((client) => client.close()));
    },
  };
}
