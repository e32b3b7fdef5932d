import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { WebClient } from "@slack/web-api";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createClientFetch } from "../../../../src/platforms/slack/client-fetch.ts";
import { toParleyError } from "../../../../src/platforms/slack/errors.ts";

let seen: { readonly url: string; readonly type: string; readonly body: string }[] = [];
let connections = 0;
let answer: (response: ServerResponse) => void = (response) => response.end('{"ok":true}');
const server = createServer((request: IncomingMessage, response) => {
  void (async () => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += String(chunk);
    seen.push({ url: request.url ?? "", type: request.headers["content-type"] ?? "", body });
    answer(response);
  })();
}).on("connection", () => (connections += 1));

let url = "";
beforeEach(async () => {
  seen = [];
  connections = 0;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/`;
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, "close");
});

const createClient = (timeout = 5000): WebClient =>
  new WebClient("xoxb-1", {
    slackApiUrl: url,
    fetch: createClientFetch(),
    retryConfig: { retries: 0 },
    rejectRateLimitedCalls: true,
    timeout,
  });

test("a call of Slack's client is sent whole, and its answer read with the headers that count", async () => {
  answer = (response) => {
    response.setHeader("x-oauth-scopes", "chat:write,commands").end('{"ok":true,"ts":"1.2","text":"ä → 🦜"}');
  };
  const result = await createClient().apiCall("chat.postMessage", {
    channel: "C1",
    text: "ä & 🦜",
    blocks: [],
  });
  expect(result).toMatchObject({
    ok: true,
    ts: "1.2",
    text: "ä → 🦜",
    response_metadata: { scopes: ["chat:write", "commands"] },
  });
  const [call] = seen;
  expect(call?.url).toBe("/api/chat.postMessage");
  expect(call?.type).toBe("application/x-www-form-urlencoded");
  expect(Object.fromEntries(new URLSearchParams(call?.body))).toEqual({
    channel: "C1",
    text: "ä & 🦜",
    blocks: "[]",
  });
});

test("a refusal for a rate limit says how long, and does not keep its connection", async () => {
  answer = (response) => response.writeHead(429, { "retry-after": "7" }).end("x".repeat(100_000));
  const client = createClient();
  for (let n = 0; n < 10; n += 1) {
    const error: unknown = await client.apiCall("chat.update", {}).catch((reason: unknown) => reason);
    expect(toParleyError(error, "chat.update")).toMatchObject({ retryAfterMs: 7000 });
  }
  // A second one may be opened before the first is known to be free.
  expect(connections).toBeLessThan(3);
});

test("an error status and a redirect, which is not followed, are told with their status", async () => {
  for (const status of [302, 503]) {
    seen = [];
    answer = (response) => response.writeHead(status, { location: `${url}elsewhere` }).end("not JSON");
    const error: unknown = await createClient()
      .apiCall("auth.test")
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ statusCode: status, body: "not JSON" });
    expect(seen).toHaveLength(1);
  }
});

test.each([
  ["before it begins", () => undefined],
  ["in its middle", (response: ServerResponse) => void response.writeHead(200).write('{"ok":')],
])("an answer that stops %s ends with the client's timeout", async (_, stops) => {
  answer = stops;
  const error: unknown = await createClient(100)
    .apiCall("auth.test")
    .catch((reason: unknown) => reason);
  expect(toParleyError(error, "auth.test")).toMatchObject({ code: "platform-unreachable" });
});

test("a server that is not there is no answer", async () => {
  const client = new WebClient("xoxb-1", {
    slackApiUrl: "http://127.0.0.1:1/api/",
    fetch: createClientFetch(),
    retryConfig: { retries: 0 },
  });
  const error: unknown = await client.apiCall("auth.test").catch((reason: unknown) => reason);
  expect(toParleyError(error, "auth.test")).toMatchObject({
    code: "platform-unreachable",
    message: "Slack auth.test: no response",
  });
});
