import type { App, HTTPReceiver } from "@slack/bolt";
import type { IncomingMessage, ServerResponse } from "node:http";
import { ParleyError } from "../../core/errors.ts";
import type { PlatformHealth } from "../../core/platform.ts";
import type { HttpHandler } from "../../core/platform-module.ts";
import { createRareLog } from "../../support/rare-log.ts";
import { loadBolt } from "./bolt.ts";
import { toFailedHealth, type Connection, type ConnectionOptions } from "./connection.ts";
import { createEventIntake, type EventIntake } from "./event-intake.ts";
import { eventsPath } from "./paths.ts";
import { createSignedRequestReader, type SignedRequestReader } from "./signed-request.ts";

/** @see {@link createHttpConnection} */
export interface HttpConnectionOptions extends ConnectionOptions {
  readonly signingSecret: string;
}

/** A connection that Slack opens: its requests come to the HTTP server of the process. */
export interface HttpConnection extends Connection {
  /** Of {@link eventsPath}. */
  readonly handler: HttpHandler;
}

/** Slack gives up after three seconds. */
const responseMs = 2800;

interface Open {
  readonly receiver: HTTPReceiver;
  readonly reader: SignedRequestReader;
  readonly intake: EventIntake;
}

/**
 * Takes what Slack sends to `POST /slack/events`: 200 when an event is durable, 503 when Slack is to send it again, 401
 * for what Slack has not signed within five minutes.
 */
export function createHttpConnection(options: HttpConnectionOptions): HttpConnection {
  const { signingSecret, apiUrl, clock, log, prepare } = options;
  const closing = new AbortController();
  /** Anybody can send requests that are not Slack's. */
  const warnRarely = createRareLog(log, () => clock.monotonic());
  let state: PlatformHealth = { state: "connecting" };
  let open: Open | undefined;
  let closed: Promise<void> | undefined;

  async function start(): Promise<void> {
    const bolt = await loadBolt(apiUrl, log);
    const intake = createEventIntake(await prepare(bolt), closing.signal, clock);
    closing.signal.throwIfAborted();
    const receiver = new bolt.sdk.HTTPReceiver({
      signingSecret,
      // Checked before: Bolt's check takes requests from the future, and depends on a clock that may step.
      signatureVerification: false,
      endpoints: [eventsPath],
      logger: bolt.logger,
      unhandledRequestTimeoutMillis: responseMs,
      unhandledRequestHandler({ response }) {
        log.warn({}, "request not accepted in time; Slack delivers an event again");
        unavailable(response);
      },
      processEventErrorHandler({ error, response }) {
        log.warn({ err: error }, "event not accepted; Slack will deliver it again");
        unavailable(response);
        return Promise.resolve(false);
      },
    });
    receiver.init(intake as unknown as App);
    open = { receiver, intake, reader: createSignedRequestReader(bolt, signingSecret, clock) };
    state = { state: "ready" };
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "POST") return send(response, 405, { Allow: "POST" });
    if (open === undefined) return unavailable(response);
    const { receiver, reader } = open;
    const read = await reader.read(request);
    if (read.kind === "refused") {
      const { status, reason } = read;
      warnRarely(String(status), { status, reason }, "request to /slack/events refused");
      return send(response, read.status, { Connection: "close" });
    }
    if (read.kind === "ssl-check") return send(response, 200, {});
    // Bolt reads no body where there is one.
    receiver.requestListener(Object.assign(request, { rawBody: read.body }), response);
  }

  async function close(): Promise<void> {
    closing.abort(new ParleyError("stopping", "the connection to Slack is closing"));
    await open?.intake.whenHandled();
    if (state.state === "ready") state = { state: "connecting", detail: "stopping" };
  }

  return {
    async open() {
      try {
        await start();
      } catch (error) {
        state = toFailedHealth(error);
        throw error;
      }
    },
    health: () => state,
    close() {
      closed ??= close();
      return closed;
    },
    async handler(request, response, { path }) {
      if (path !== eventsPath) return false;
      await handle(request, response);
      return true;
    },
  };
}

function unavailable(response: ServerResponse): void {
  send(response, 503, { "Retry-After": "5" });
}

function send(response: ServerResponse, status: number, headers: Readonly<Record<string, string>>): void {
  if (response.headersSent) return;
  response.writeHead(status, { "Cache-Control": "no-store", ...headers });
  response.end();
}
