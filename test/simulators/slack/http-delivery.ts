import { createHmac } from "node:crypto";
import type { Clock } from "./clock.ts";
import { toText, type Fields } from "./workspace.ts";

/** Where Slack sends requests without Socket Mode. */
export interface RequestEndpoint {
  /** For example `http://…/slack/events`. */
  url: string;
  readonly signingSecret: string;
  /** How far Slack's clock is ahead of this machine's, in milliseconds. */
  skewMs: number;
}

/** The result of a request. `reason` is the `X-Slack-Retry-Reason` of the next one. */
export type RequestResult =
  | { readonly outcome: "acknowledged"; readonly ack: Fields; readonly tookMs: number }
  | { readonly outcome: "timeout" | "refused"; readonly reason: string; readonly wantsRetry: boolean };

/** A request from Slack, as it is sent. */
export interface SlackRequest {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

const deadlineMs = 3000;

/** Signs a body as Slack does. @see https://docs.slack.dev/authentication/verifying-requests-from-slack */
export function signRequest(
  { signingSecret, skewMs }: Pick<RequestEndpoint, "signingSecret" | "skewMs">,
  body: string,
): Record<string, string> {
  const timestamp = Math.floor((Date.now() + skewMs) / 1000).toString();
  const hash = createHmac("sha256", signingSecret).update(`v0:${timestamp}:${body}`).digest("hex");
  return { "x-slack-request-timestamp": timestamp, "x-slack-signature": `v0=${hash}` };
}

/** Creates the request for a payload. Events are JSON, commands a form, and interactions JSON in a form. */
export function toRequest(
  endpoint: RequestEndpoint,
  type: "events_api" | "slash_commands" | "interactive",
  payload: Fields,
  retry: { readonly attempt: number; readonly reason: string },
): SlackRequest {
  const body =
    type === "events_api"
      ? JSON.stringify(payload)
      : new URLSearchParams(
          type === "interactive"
            ? { payload: JSON.stringify(payload) }
            : Object.fromEntries(Object.entries(payload).map(([name, value]) => [name, toText(value)])),
        ).toString();
  return {
    body,
    headers: {
      "content-type": type === "events_api" ? "application/json" : "application/x-www-form-urlencoded",
      "user-agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
      ...signRequest(endpoint, body),
      ...(retry.attempt === 0
        ? {}
        : { "x-slack-retry-num": String(retry.attempt), "x-slack-retry-reason": retry.reason }),
    },
  };
}

/** Sends a request and never rejects. Slack gives up after three seconds. Any 2xx is an acknowledgement. */
export async function sendRequest(url: string, request: SlackRequest, clock: Clock): Promise<RequestResult> {
  const controller = new AbortController();
  const cancel = clock.after(deadlineMs, () => controller.abort());
  const startedAt = performance.now();
  try {
    const response = await fetch(url, {
      method: "POST",
      ...request,
      redirect: "manual",
      signal: controller.signal,
    });
    const text = await response.text();
    const wantsRetry = response.headers.get("x-slack-no-retry") !== "1";
    if (!response.ok)
      return {
        outcome: "refused",
        reason: response.status >= 300 && response.status < 400 ? "too_many_redirects" : "http_error",
        wantsRetry,
      };
    return { outcome: "acknowledged", ack: toAck(text), tookMs: performance.now() - startedAt };
  } catch (error) {
    if (controller.signal.aborted) return { outcome: "timeout", reason: "http_timeout", wantsRetry: true };
    if (!(error instanceof Error)) throw error;
    return { outcome: "refused", reason: "connection_failed", wantsRetry: true };
  } finally {
    cancel();
  }
}

/** Parses the body of a response, which is JSON or the text of a command's answer. */
function toAck(text: string): Fields {
  if (text === "") return {};
  try {
    return JSON.parse(text) as Fields;
  } catch {
    return { text };
  }
}
