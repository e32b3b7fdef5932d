import type { DiscordSimulator } from "./simulator.ts";

/** A response of the simulator. `code` and `body` are empty if the body is not JSON. */
export interface RawResponse {
  readonly status: number;
  readonly code: number | undefined;
  readonly body: Record<string, unknown>;
  readonly text: string;
  readonly headers: Headers;
}

/** Sends one request to a simulator without any library. @param path the path without the version */
export async function sendRaw(
  discord: Pick<DiscordSimulator, "apiUrl" | "token">,
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<RawResponse> {
  const response = await fetch(`${discord.apiUrl}/v10${path}`, {
    method,
    headers: {
      "user-agent": "DiscordBot (https://example.com, 1.0.0)",
      authorization: `Bot ${discord.token}`,
      ...(body instanceof FormData || body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: body instanceof FormData ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  const parsed = (isJson ? JSON.parse(text) : {}) as Record<string, unknown>;
  return {
    status: response.status,
    code: parsed["code"] as number | undefined,
    body: parsed,
    text,
    headers: response.headers,
  };
}
