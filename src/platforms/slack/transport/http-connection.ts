import { createRareLog } from "../../../core/telemetry.ts";
import type { IncomingMessage, ServerResponse } from "node:http";
import { HTTPReceiver, isValidSlackRequest } from "@slack/bolt";
import type { Clock } from "../../../core/clock.ts";
import type { PlatformHealth } from "../../../core/platform.ts";
import { announcesMoreThan, readRequestBody } from "../../../support/http/body.ts";
import { eventsPath } from "../address.ts";
import { toFailedHealth, type Connection, type ConnectionOptions } from "./connection.ts";
import type { DurableApp } from "./durable-app.ts";

interface HttpConnectionOptions extends ConnectionOptions {
  readonly signingSecret: string;
}

/** Slack gives up after three seconds. */
const responseMs = 2800;

/**
 * Takes what Slack sends to `POST /slack/events`. It responds 200 when an event is durable, 503 when Slack is
 * to send it again, and 401 to what Slack has not signed within five minutes.
 */
export function createHttpConnection(options: HttpConnectionOptions): Connection {
  const { signingSecret, bolt, clock, log, createApp } = options;
  const readRequest = createSignedRequestReader(signingSecret, clock);
  /** Anybody can send requests that are not Slack's, so that these warnings are rare. */
  const warnRarely = createRareLog(log, () => clock.monotonic());
  let state: PlatformHealth = { state: "connecting" };
  let open: { readonly receiver: HTTPReceiver; readonly app: DurableApp } | undefined;
  let isClosing = false;
  let closed: Promise<void> | undefined;

  async function start(): Promise<void> {
    const receiver = new HTTPReceiver({
      signingSecret,
      // The signature is checked before, because Bolt's check takes requests from the future and depends on a
      // clock that may step.
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
    const app = await createApp(receiver);
    if (isClosing) app.refuseEvents();
    open = { receiver, app };
    state = { state: "ready" };
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "POST") return send(response, 405, { Allow: "POST" });
    if (open === undefined) return unavailable(response);
    const { receiver } = open;
    const read = await readRequest(request);
    if (read.kind === "refused") {
      const { status, reason } = read;
      warnRarely(String(status), { status, reason }, "request to /slack/events refused");
      return send(response, read.status, { Connection: "close" });
    }
    if (read.kind === "ssl-check") return send(response, 200, {});
    // Bolt reads no body where there is a raw one.
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

/** This is a request whose signature is right, or the reason why it is refused. */
type SignedRequest =
  | { readonly kind: "signed"; readonly body: Buffer }
  /** Slack looks at the certificate, and nothing in such a request is used. */
  | { readonly kind: "ssl-check" }
  | {
      readonly kind: "refused";
      readonly status: 401 | 408 | 413;
      /** The reason is for the log, and holds nothing that the client sent. */
      readonly reason: string;
    };

/** Slack's largest payloads, which are pressed buttons with their message in a form, have some 100 KB. */
const maxBytes = 1024 * 1024;
/** All unfinished bodies together may have so many bytes, since nobody knows yet that they are Slack's. */
const maxBytesAtOnce = 32 * maxBytes;
/** A body such as `ssl_check=1&token=…` is not signed. */
const maxUnsignedBytes = 1024;
const readTimeoutMs = 2000;
/**
 * Slack recommends this age.
 * @see https://docs.slack.dev/authentication/verifying-requests-from-slack describes the check.
 */
const maxAgeMs = 5 * 60_000;

/**
 * Returns what reads requests that are signed with `signingSecret` and at most five minutes old. It never
 * rejects.
 */
function createSignedRequestReader(signingSecret: string, clock: Clock) {
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

  function isSigned(body: Buffer, signature: string, timestamp: number): boolean {
    return isValidSlackRequest({
      signingSecret,
      body: body.toString(),
      headers: { "x-slack-signature": signature, "x-slack-request-timestamp": timestamp },
      // The age is checked below, where the words for it are.
      nowMilliseconds: timestamp * 1000,
    });
  }

  function check(body: Buffer, signature: string, timestamp: number): SignedRequest {
    if (!isSigned(body, signature, timestamp))
      return refuse(401, "the signature is not of SLACK_SIGNING_SECRET: copy it from Basic Information");
    const aheadMs = clock.now() - timestamp * 1000;
    if (Math.abs(aheadMs) <= maxAgeMs) return { kind: "signed", body };
    const minutes = Math.round(Math.abs(aheadMs) / 60_000);
    return refuse(
      401,
      aheadMs > 0
        ? `Slack signed it ${minutes} minutes ago: this machine's clock is ahead, or the request was held back or sent again`
        : `Slack signed it ${minutes} minutes from now: this machine's clock is behind`,
    );
  }

  return async (request: IncomingMessage): Promise<SignedRequest> => {
    const { "x-slack-signature": signature, "x-slack-request-timestamp": timestamp } = request.headers;
    // A body that announces no length may take all that is allowed.
    const length = Number(request.headers["content-length"] ?? maxBytes);
    const signedAt =
      typeof timestamp === "string" && /^\d{1,12}$/.test(timestamp) ? Number(timestamp) : undefined;
    const isClaimed = typeof signature === "string" && signature.startsWith("v0=") && signedAt !== undefined;
    if (announcesMoreThan(request, maxBytes)) return refuse(413, `its body is over ${maxBytes} bytes`);
    if (!isClaimed && length > maxUnsignedBytes) return refuse(401, "it is not signed");
    const cancelTimer = clock.after(readTimeoutMs, () => request.destroy());
    try {
      const body = await readRequestBody(request, maxBytes, (bytes) => count(request, bytes));
      if (body === undefined) return refuse(413, `its body is over ${maxBytes} bytes`);
      if (isClaimed) return check(body, signature, signedAt);
      const isSslCheck = new URLSearchParams(body.toString()).get("ssl_check") === "1";
      return isSslCheck ? { kind: "ssl-check" } : refuse(401, "it is not signed");
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      return refuse(408, "its body did not arrive");
    } finally {
      cancelTimer();
      forget(request);
    }
  };
}

function refuse(
  status: Extract<SignedRequest, { kind: "refused" }>["status"],
  reason: string,
): SignedRequest {
  return { kind: "refused", status, reason };
}
