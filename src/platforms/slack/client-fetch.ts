import type { WebClientOptions } from "@slack/web-api";
import { Agent } from "undici";
import { requestWhole } from "../../support/whole-response.ts";

/** What Slack's client sends its requests with. */
export type ClientFetch = NonNullable<WebClientOptions["fetch"]>;

/**
 * `fetch` as Slack's client uses it, over connections of its own: requests with text, whose answers are read whole. A
 * redirect is an answer with its status, which the client takes for a failure.
 */
export function createClientFetch(): ClientFetch {
  // As Node's `fetch`: with HTTP/2, one lost connection would interrupt every call.
  const agent = new Agent({ allowH2: false });
  return async (url, { method, headers, body, signal } = {}) => {
    if (body !== undefined && typeof body !== "string")
      throw new TypeError("Slack's client sends files through file-upload.ts only");
    return await requestWhole(agent, String(url), { method, headers, body, signal });
  };
}
