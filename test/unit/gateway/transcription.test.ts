import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type ScriptedAnswer, startScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { apiKey, createTestClient, failureOf, never } from "./harness.ts";

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close();
});

async function start(answer: ScriptedAnswer) {
  const gateway = await startScriptedGateway(answer, { apiKey });
  open.push(gateway);
  const client = createTestClient(gateway.baseUrl);
  open.push(client);
  return { gateway, client };
}

describe("transcription", () => {
  const audio = randomBytes(300_000);
  const listen = {
    model: "whisper-1",
    bytes: audio,
    fileName: 'a "b"\r\n.ogg',
    mediaType: "audio/ogg",
    language: "de",
    hint: "Grüße",
    durationMs: 30_000,
  };

  it("sends a valid multipart body", async () => {
    const { gateway, client } = await start({ body: '{"text":" hello "}' });
    expect(await client.transcribe(listen, never())).toEqual({
      text: "hello",
      model: "whisper-1",
      usage: { audioSeconds: 30, costUsd: 0.003, isEstimated: true },
      notices: [],
    });
    const [request] = gateway.requests;
    const form = await new Response(new Uint8Array(request?.body ?? []), {
      headers: { "content-type": request?.headers["content-type"] ?? "" },
    }).formData();
    expect([form.get("model"), form.get("language"), form.get("prompt")]).toEqual([
      "whisper-1",
      "de",
      "Grüße",
    ]);
    const file = form.get("file") as File;
    expect(file.type).toBe("audio/ogg");
    expect(Buffer.from(await file.arrayBuffer()).equals(audio)).toBe(true);
  });

  it.each<[string, string, object]>([
    ["plain JSON", '{"text":"hello"}', { text: "hello" }],
    [
      "everything",
      '{"text":"hello","language":"english","duration":60,"segments":[{"text":"hello"}],"usage":{"type":"duration","seconds":60}}',
      { language: "english", usage: { audioSeconds: 60, costUsd: 0.006 } },
    ],
    ["a duration as text", '{"text":"hello","duration":"60.0"}', { usage: { audioSeconds: 60 } }],
    [
      "tokens",
      '{"text":"hello","usage":{"type":"tokens","input_tokens":14,"output_tokens":45}}',
      { usage: { promptTokens: 14, completionTokens: 45 } },
    ],
    [
      "segments with times, some of them broken",
      '{"text":"a b","segments":[{"start":0,"end":1.5,"text":" a"},{"start":"x","text":"?"},{"text":"?"},{"start":1e9,"text":"?"},7,{"start":2,"end":1,"text":"b "},{"start":61.5,"text":"c"}]}',
      {
        timed: [
          { fromSeconds: 0, toSeconds: 1.5, text: "a" },
          { fromSeconds: 2, toSeconds: 61.5, text: "b" },
          { fromSeconds: 61.5, toSeconds: 66.5, text: "c" },
        ],
      },
    ],
    ["segments only", '{"segments":[{"text":"hel"},{"text":"lo"}]}', { text: "hello" }],
    [
      "words with controls",
      '{"text":"a\\u0000b\\tc","segments":[{"start":0,"end":1,"text":"a\\u001bb"},{"start":1,"end":2,"text":"\\u200b"}]}',
      { text: "ab\tc", timed: [{ fromSeconds: 0, toSeconds: 1, text: "ab" }] },
    ],
    ["bare words", "hello\n", { text: "hello" }],
    ["a JSON string", '"hello"', { text: "hello" }],
    ["words in quotes", '"hello" she said', { text: '"hello" she said' }],
  ])("reads %s", async (_, body, expected) => {
    const { client } = await start({ body });
    expect(await client.transcribe(listen, never())).toMatchObject(expected);
  });

  it.each<[string, ScriptedAnswer, string]>([
    ["no words", { body: '{"text":"  "}' }, "gateway-empty-answer"],
    ["nothing that anybody sees", { body: '{"text":"\\u200b \\u0007"}' }, "gateway-empty-answer"],
    ["nothing", { body: "" }, "gateway-empty-answer"],
    ["another shape", { body: '{"hello":1}' }, "gateway-bad-answer"],
    ["a page", { body: "<html></html>" }, "gateway-bad-answer"],
    ["an error with status 200", { body: '{"error":"no"}' }, "gateway-error"],
    [
      "a broken body",
      { body: '{"te', headers: { "content-length": "900" }, after: "break" },
      "gateway-unreachable",
    ],
  ])("fails for %s", async (_, answer, code) => {
    const { client } = await start(answer);
    expect(await failureOf(client.transcribe(listen, never()))).toMatchObject({ code });
  });

  it("rejects empty audio before sending anything", async () => {
    const { gateway, client } = await start({ body: "{}" });
    expect(await failureOf(client.transcribe({ ...listen, bytes: new Uint8Array() }, never()))).toMatchObject(
      { code: "gateway-bad-request" },
    );
    expect(gateway.requests).toHaveLength(0);
  });

  it("sends a large file to a slow server, and again for a retry", async () => {
    let attempts = 0;
    const received: Buffer[] = [];
    const answer = async (request: IncomingMessage, response: ServerResponse) => {
      for await (const piece of request) {
        received.push(piece as Buffer);
        // This fills the socket of the sender repeatedly.
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      attempts++;
      response.statusCode = attempts === 1 ? 500 : 200;
      response.end('{"text":"hello"}');
    };
    const server = createServer((request, response) => void answer(request, response));
    try {
      const content = randomBytes(6_000_001);
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const client = createTestClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      open.push(client);
      expect((await client.transcribe({ ...listen, bytes: content }, never())).text).toBe("hello");
      const all = Buffer.concat(received);
      const first = all.indexOf(content);
      expect(first).toBeGreaterThan(0);
      expect(all.indexOf(content, first + content.length)).toBeGreaterThan(first);
      expect(attempts).toBe(2);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it("reports an error that arrives before the upload is complete", async () => {
    const server = createServer((_, response) => {
      response.writeHead(413, { connection: "close" });
      response.end('{"error":{"message":"too large"}}');
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const client = createTestClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    open.push(client, {
      close: () => {
        server.closeAllConnections();
        return new Promise((resolve) => server.close(() => resolve()));
      },
    });
    const large = { ...listen, bytes: new Uint8Array(30_000_000) };
    const failure = await failureOf(client.transcribe(large, never()));
    // The connection may be lost before the answer is read. Either way it fails quickly.
    expect(failure).toMatchObject({ code: expect.stringMatching(/^gateway-(?:bad-request|unreachable)$/) });
  });
});
