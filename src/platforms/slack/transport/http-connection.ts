import { createRareLog } from "../../../core/telemetry.ts";
import type { IncomingMessage, ServerResponse } from "node:http";
import { HTTPReceiver } from "@slack/bolt";
import type { Clock } from "../../../core/clock.ts";
import type { PlatformHealth } from "../../../core/platform.ts";
import { readRequestBody } from "../../../support/http/body.ts";
import { eventsPath } from "../address.ts";
import { toFailedHealth, type Connection, type ConnectionOptions } from "./connection.ts";
import type { DurableApp } from "./durable-app.ts";

interface HttpConnectionOptions extends ConnectionOptions {
  readonly signingSecret: string;
}

const refused = "request to /slack/events refused";
const unsigned =
  "SLACK_SIGNING_SECRET has not signed it in the last five minutes: copy it from Basic Information, and check this machine's clock";

/** Slack gives up after three seconds. */
const responseMs = 2800;

/**
 * Takes what Slack sends to `POST /slack/events`. It responds 200 when an event is durable, 503 when Slack is
 * to send it again, and 401 to what Slack has not signed within five minutes.
 */
export function createHttpConnection(options: HttpConnectionOptions): Connection {
  const { signingSecret, bolt, clock, log, createApp } = options;
  const readBody = createBoundedReader(clock);
  /** Anybody can send requests that are not Slack's, so that these warnings are rare. */
  const warnRarely = createRareLog(log, () => clock.monotonic());
  let state: PlatformHealth = { state: "connecting" };
  let open: { readonly receiver: HTTPReceiver; readonly app: DurableApp } | undefined;
  let isClosing = false;
  let closed: Promise<void> | undefined;

  async function start(): Promise<void> {
    const receiver = new HTTPReceiver({
      signingSecret,
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
    const app = await createApp(receiver);
    if (isClosing) app.refuseEvents();
    open = { receiver, app };
    state = { state: "ready" };
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "POST") return send(response, 405, { Allow: "POST" });
    if (open === undefined) return unavailable(response);
    const { receiver } = open;
    const read = await readBody(request);
    if ("status" in read) {
      const { status, reason } = read;
      warnRarely(String(status), { status, reason }, refused);
      return send(response, status, { Connection: "close" });
    }
    response.once("finish", () => {
      if (response.statusCode === 401) warnRarely("401", { status: 401, reason: unsigned }, refused);
    });
    // Bolt reads no body where there is a raw one, and checks its signature.
    receiver.requestListener(Object.assign(request, { rawBody: read.body }), response);
  }

  async function close(): Promise<void> {
    isClosing = true;
    open?.app.refuseEvents();
    await open?.app.whenHandled();
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

/** This is a body, or the reason for the log why it is refused, which holds nothing that the client sent. */
type Body = { readonly body: Buffer } | { readonly status: 401 | 408 | 413; readonly reason: string };

/** Slack's largest payloads, which are pressed buttons with their message in a form, have some 100 KB. */
const maxBytes = 1024 * 1024;
/** All unfinished bodies together may have so many bytes, since nobody knows yet that they are Slack's. */
const maxBytesAtOnce = 32 * maxBytes;
/** A body such as `ssl_check=1&token=…` is not signed. */
const maxUnsignedBytes = 1024;
const readTimeoutMs = 2000;
const tooLarge: Body = { status: 413, reason: `its body is over ${maxBytes} bytes` };

/** Returns what reads bodies of strangers within bounds. It never rejects. */
function createBoundedReader(clock: Clock) {
  const reading = new Map<IncomingMessage, number>();
  let readingBytes = 0;

  function forget(request: IncomingMessage): void {
    readingBytes -= reading.get(request) ?? 0;
    reading.delete(request);
  }

  /**
   * Counts what has come. Slack's bodies are small and come at once. Past the bound the largest unfinished
   * body is given up, so that bodies without an end keep nothing else from being read.
   */
  function count(request: IncomingMessage, bytes: number): void {
    reading.set(request, (reading.get(request) ?? 0) + bytes);
    readingBytes += bytes;
    if (readingBytes <= maxBytesAtOnce) return;
    const [largest] = [...reading].toSorted(([, one], [, other]) => other - one)[0] ?? [];
    if (largest === undefined) return;
    largest.destroy();
    forget(largest);
  }

  return async (request: IncomingMessage): Promise<Body> => {
    // A body that announces no length may take all that is allowed.
    const length = Number(request.headers["content-length"] ?? maxBytes);
    if (length > maxBytes) return tooLarge;
    if (request.headers["x-slack-signature"] === undefined && length > maxUnsignedBytes)
      return { status: 401, reason: unsigned };
    const cancelTimer = clock.after(readTimeoutMs, () => request.destroy());
    try {
      const body = await readRequestBody(request, maxBytes, (bytes) => count(request, bytes));
      return body === undefined ? tooLarge : { body };
    } catch {
      return { status: 408, reason: "its body did not arrive" };
    } finally {
      cancelTimer();
      forget(request);
    }
  };
}
