import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import OpenAI from "openai";
import { afterEach } from "vitest";
import { createEmbeddedGateway } from "../../src/embedded-gateway/embedded-gateway.ts";
import { parseGatewayConfig } from "../../src/embedded-gateway/gateway-config.ts";
import {
  startScriptedGateway,
  type ScriptedAnswer,
  type SeenRequest,
} from "../simulators/gateway/scripted-gateway.ts";
import { createQuietLog } from "../support/quiet-log.ts";

/** Starts gateways in front of upstreams for the tests of this folder. They are closed after each test. */
export const key = "test-key";
const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

type Script = (request: SeenRequest, index: number) => ScriptedAnswer;

export async function startUpstream(script: Script | ScriptedAnswer) {
  const upstream = await startScriptedGateway(script, { apiKey: "upstream-key" });
  closers.push(() => upstream.close());
  return upstream;
}

/** Starts an upstream whose handler controls the socket. */
export async function startServer(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server: Server = createServer(handle).listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Settings {
  readonly sandbox?: boolean;
  readonly upstreams: Readonly<Record<string, object>>;
  readonly aliases?: object;
  readonly fallbacks?: object;
}

export async function startGateway(
  settings: Settings,
  options: Partial<Parameters<typeof createEmbeddedGateway>[0]> = {},
) {
  const upstreams = Object.fromEntries(
    Object.entries(settings.upstreams).map(([prefix, upstream]) => [
      prefix,
      { apiKeyEnv: "UP_KEY", retries: 0, models: ["small", "org/large"], ...upstream },
    ]),
  );
  const gateway = createEmbeddedGateway({
    host: "127.0.0.1",
    port: 0,
    apiKeys: [key],
    log: createQuietLog(),
    config: parseGatewayConfig(JSON.stringify({ ...settings, upstreams }), { UP_KEY: "upstream-key" }),
    ...options,
  });
  const { url } = await gateway.listen();
  closers.push(() => gateway.close());
  return { url, client: new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 }) };
}

/** A conversation of one turn. */
export const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [{ role: "user", content: "hello" }];

export function toAnswer(text: string, extra: object = {}): ScriptedAnswer {
  const body = {
    id: "x1",
    object: "chat.completion",
    created: 1,
    model: "small-2026-01-01",
    choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    ...extra,
  };
  return {
    headers: { "content-type": "application/json", "x-request-id": "theirs" },
    body: JSON.stringify(body),
  };
}

export function toEvent(delta: object, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return `data: ${JSON.stringify({ id: "x1", object: "chat.completion.chunk", model: "small-2026", choices })}\n\n`;
}

export const usageEvent = `data: ${JSON.stringify({ id: "x1", object: "chat.completion.chunk", model: "small-2026", choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } })}\n\n`;

export function toError(
  status: number,
  message: string,
  headers: Record<string, string> = {},
): ScriptedAnswer {
  return {
    status,
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ error: { message, type: "some_error", param: null, code: "some_code" } }),
  };
}

/** Returns the raw text of a stream, so that what the client library hides is seen. */
export async function readRaw(
  url: string,
  model = "up/small",
  extra: object = {},
): Promise<{ status: number; text: string }> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages, stream: true, ...extra }),
  });
  return { status: response.status, text: await response.text() };
}

export function bodyOf(request: SeenRequest | undefined): Record<string, unknown> {
  return JSON.parse(request?.body.toString("utf8") ?? "null") as Record<string, unknown>;
}
