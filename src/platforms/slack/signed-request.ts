import type { IncomingMessage } from "node:http";
import type { Clock } from "../../core/clock.ts";
import { announcesMoreThan, readRequestBody } from "../../support/read-request-body.ts";
import type { Bolt } from "./bolt.ts";

/** A request whose signature is right, or why it is refused. */
export type SignedRequest =
  | { readonly kind: "signed"; readonly body: Buffer }
  /** Slack looks at the certificate: nothing in it is used. */
  | { readonly kind: "ssl-check" }
  | {
      readonly kind: "refused";
      readonly status: 401 | 408 | 413;
      /** For the log; holds nothing that the client sent. */
      readonly reason: string;
    };

/** Reads requests and checks who signed them. */
export interface SignedRequestReader {
  read(request: IncomingMessage): Promise<SignedRequest>;
}

/** Slack's largest payloads, a pressed button with its message in a form, have some 100 KB. */
const maxBytes = 1024 * 1024;
/** What has come of all bodies that are being read: nobody has shown yet that they come from Slack. */
const maxBytesAtOnce = 32 * maxBytes;
/** `ssl_check=1&token=…` is not signed. */
const maxUnsignedBytes = 1024;
const readTimeoutMs = 2000;
/** @see https://docs.slack.dev/authentication/verifying-requests-from-slack */
const maxAgeMs = 5 * 60_000;

/** Reads requests that are signed with `signingSecret` and at most five minutes old. Never rejects. */
export function createSignedRequestReader(
  bolt: Bolt,
  signingSecret: string,
  clock: Clock,
): SignedRequestReader {
  /** Bytes of each body that have come. */
  const reading = new Map<IncomingMessage, number>();

  /**
   * Slack's bodies are small and come at once. Past the bound the largest that has not come to its end is given up, so
   * that bodies without an end keep nothing else from being read.
   */
  function count(request: IncomingMessage, bytes: number): void {
    reading.set(request, (reading.get(request) ?? 0) + bytes);
    let sum = 0;
    for (const each of reading.values()) sum += each;
    if (sum <= maxBytesAtOnce) return;
    const [largest] = [...reading].toSorted(([, one], [, other]) => other - one)[0] ?? [];
    largest?.destroy();
    if (largest !== undefined) reading.delete(largest);
  }

  function isSigned(body: Buffer, signature: string, timestamp: number): boolean {
    return bolt.sdk.isValidSlackRequest({
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

  async function read(request: IncomingMessage): Promise<SignedRequest> {
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
      reading.delete(request);
    }
  }

  return { read };
}

function refuse(
  status: Extract<SignedRequest, { kind: "refused" }>["status"],
  reason: string,
): SignedRequest {
  return { kind: "refused", status, reason };
}
