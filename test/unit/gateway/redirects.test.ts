import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { createTestClient, failureOf, hello, never, outcomeOf, pixel } from "./harness.ts";

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close();
});

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly authorization: string | undefined;
  readonly body: string;
}

/** Starts a server that redirects as `locationOf` says, and answers what is not redirected. */
async function start(status: number, locationOf: (url: string) => string | undefined) {
  const seen: Seen[] = [];
  const answers: Readonly<Record<string, object>> = {
    models: { data: [{ id: "m" }] },
    completions: { choices: [{ index: 0, message: { content: "hi" }, finish_reason: "stop" }] },
    generations: { data: [{ b64_json: pixel.toString("base64") }] },
    transcriptions: { text: "hello" },
  };
  const read = async (request: IncomingMessage): Promise<string> => {
    let body = "";
    for await (const chunk of request as AsyncIterable<Buffer>) body += chunk.toString("latin1");
    return body;
  };
  const server = createServer((request, response) => {
    void read(request).then((body) => {
      const { method = "", url = "" } = request;
      seen.push({ method, url, authorization: request.headers.authorization, body });
      const location = locationOf(url);
      if (location !== undefined) return response.writeHead(status, { location }).end("moved");
      const answer = answers[url.replace(/\/$/, "").split("/").at(-1) ?? ""];
      return response.end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  open.push({ close: () => new Promise((resolve) => server.close(() => resolve())) });
  const client = createTestClient(baseUrl);
  open.push(client);
  return { client, seen, baseUrl };
}

it.for([301, 302, 307, 308])(
  "within one origin all four operations are followed, as they are: %i",
  async (status) => {
    const { client, seen } = await start(status, (url) =>
      url.startsWith("/v1/") ? url.replace("/v1/", "/api/v1/") : url.endsWith("/") ? undefined : `${url}/`,
    );
    expect((await client.listModels(never())).map(({ id }) => id)).toEqual(["m"]);
    expect(await outcomeOf(client.chat(hello, never()))).toMatchObject({ text: "hi" });
    expect((await client.generateImages({ model: "m", prompt: "a cat" }, never())).images).toHaveLength(1);
    const audio = { model: "m", bytes: pixel, fileName: "a.ogg", mediaType: "audio/ogg" };
    expect((await client.transcribe(audio, never())).text).toBe("hello");
    const last = seen.filter(({ url }) => url.startsWith("/api/v1/") && url.endsWith("/"));
    expect(last.map(({ method, url }) => `${method} ${url}`)).toEqual([
      "GET /api/v1/models/",
      "POST /api/v1/chat/completions/",
      "POST /api/v1/images/generations/",
      "POST /api/v1/audio/transcriptions/",
    ]);
    expect(new Set(last.map(({ authorization }) => authorization)).size).toBe(1);
    expect(last[3]?.body).toContain(pixel.toString("latin1"));
  },
);

it("another origin gets nothing, and the error names its address without the operation", async () => {
  const other = await start(307, () => undefined);
  const { client } = await start(307, (url) => `${other.baseUrl}${url}?key=secret`);
  for (const work of [client.listModels(never()), client.chat(hello, never())])
    expect(await failureOf(work)).toMatchObject({
      code: "gateway-bad-answer",
      detail: { redirectsTo: `${other.baseUrl}/v1` },
    });
  expect(other.seen).toEqual([]);
});

it("a circle ends", async () => {
  const { client, seen } = await start(302, (url) => url);
  expect(await failureOf(client.listModels(never()))).toMatchObject({ code: "gateway-bad-answer" });
  expect(seen.length).toBeLessThan(10);
});
