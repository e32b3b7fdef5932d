import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { openGateway } from "../../../src/compose-gateway.ts";
import { parseConfig } from "../../../src/config.ts";
import { toNotice } from "../../../src/core/error-messages.ts";
import type { Gateway } from "../../../src/core/gateway.ts";
import { noTracer } from "../../../src/core/telemetry.ts";
import { silentLog } from "../../support/silent-log.ts";
import { apiKey, failureOf, hello, never, outcomeOf, pixel } from "./harness.ts";

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

interface Host {
  readonly url: string;
  readonly host: string;
  /** The path and key of each request. */
  readonly seen: string[];
  readonly bodies: Record<string, unknown>[];
}

type Script = (path: string, body: Record<string, unknown>, key: string | undefined) => Answer;

async function serve(script: Script): Promise<Host> {
  const seen: string[] = [];
  const bodies: Record<string, unknown>[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { url: path = "", headers } = request;
      seen.push(`${path} ${headers.authorization ?? "no key"}`);
      const text = Buffer.concat(chunks).toString();
      const json = (text === "" ? {} : JSON.parse(text)) as Record<string, unknown>;
      if (text !== "") bodies.push(json);
      const answer = script(path, json, headers.authorization);
      response.writeHead(answer.status ?? 200, answer.headers);
      response.end(answer.body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push(() => new Promise((resolve) => server.close(resolve)));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url: `http://${host}`, host, seen, bodies };
}

/** Opens the gateway as Parley does, with these settings. */
async function connect(baseUrl: string, settings: Readonly<Record<string, string>> = {}): Promise<Gateway> {
  const config = parseConfig({ GATEWAY_BASE_URL: baseUrl, GATEWAY_API_KEY: apiKey, ...settings });
  const opened = await openGateway(config, silentLog, {
    gatewayConfig: undefined,
    tracer: noTracer,
    meter: () => undefined,
  });
  open.push(() => opened.close());
  return opened.client;
}

const isDrawing = (path: string): boolean => path.startsWith("/v1/images/generations");
const item = (url: string): string => JSON.stringify({ data: [{ url }] });
const draw = { model: "painter", prompt: "a cat" };

describe("a drawn picture", () => {
  it.each([
    ["is the gateway's own address", (origin: string) => `${origin}/files/cat.png`],
    ["is a path of it", () => "/files/cat.png"],
    ["is a path below its base", () => "../files/cat.png"],
  ])("that %s is fetched with the key", async (_, urlOf) => {
    const gateway: Host = await serve((path, _body, key) => {
      if (isDrawing(path)) return { body: item(urlOf(gateway.url)) };
      return key === `Bearer ${apiKey}` ? { body: pixel } : { status: 401, body: "no key" };
    });
    const client = await connect(gateway.url);
    expect((await client.generateImages(draw, never())).images).toHaveLength(1);
    expect(gateway.seen.at(-1)).toBe(`/files/cat.png Bearer ${apiKey}`);
  });

  it("of a private host is fetched where IMAGE_HOSTS lists it, without the key", async () => {
    const files = await serve(() => ({ body: pixel }));
    const gateway = await serve(() => ({ body: item(`${files.url}/cat.png`) }));
    const client = await connect(gateway.url, { IMAGE_HOSTS: files.host });
    expect((await client.generateImages(draw, never())).images).toHaveLength(1);
    expect(files.seen).toEqual(["/cat.png no key"]);
  });

  it("is not fetched from a private host that nobody lists, also by a redirect; the words name host and reason", async () => {
    const files = await serve(() => ({ body: pixel }));
    const gateway = await serve((path) =>
      isDrawing(path)
        ? { body: item("/cat.png") }
        : { status: 302, headers: { location: `${files.url}/cat.png` }, body: "" },
    );
    const client = await connect(gateway.url);
    expect(toNotice(await failureOf(client.generateImages(draw, never())))).toBe(
      `A picture could not be fetched from ${files.host}: it is opened only if IMAGE_HOSTS lists it.`,
    );
    expect(files.seen).toEqual([]);
  });

  it.each<[string, Answer, string]>([
    ["403", { status: 403, body: "" }, "the answer was 403"],
    ["500", { status: 500, body: "" }, "the answer was 500"],
    ["a web page", { body: "<html>sign in</html>" }, "what came is no picture that can be shown"],
    ["nothing", { body: "" }, "what came is no picture that can be shown"],
    ["too much", { body: Buffer.alloc(20_000_001) }, "it is too large"],
  ])("that cannot be had is named with its host and the reason: %s", async (_, answer, reason) => {
    const gateway = await serve((path) => (isDrawing(path) ? { body: item("/cat.png") } : answer));
    const client = await connect(gateway.url);
    const error = await failureOf(client.generateImages(draw, never()));
    expect(error).toMatchObject({ code: "gateway-bad-answer" });
    expect(toNotice(error)).toBe(`A picture could not be fetched from ${gateway.host}: ${reason}.`);
  });

  it.each(["file:///tmp/cat.png", String.raw`C:\out\cat.png`])(
    "on the server's own disk is named: %s",
    async (url) => {
      const gateway = await serve(() => ({ body: item(url) }));
      const client = await connect(gateway.url);
      expect(toNotice(await failureOf(client.generateImages(draw, never())))).toBe(
        "A picture in the answer is on the disk of the model server, which only it can read, and is left out.",
      );
    },
  );

  it("that is not in the list may have been refused, and the words say so", async () => {
    const gateway = await serve(() => ({ body: '{"data":[]}' }));
    const client = await connect(gateway.url);
    expect(toNotice(await failureOf(client.generateImages(draw, never())))).toBe(
      "The model `painter` sent no picture. It may have refused what was asked: say it in other words.",
    );
  });

  it("is asked for as base64, and not again of a model that refuses to be asked", async () => {
    const refused = { status: 400, body: '{"error":{"message":"Unknown parameter"}}' };
    const gateway: Host = await serve((path, body) => {
      if (!isDrawing(path)) return { body: pixel };
      if (body["model"] === "strict" && body["response_format"] !== undefined) return refused;
      return {
        body:
          body["response_format"] === "b64_json"
            ? JSON.stringify({ data: [{ b64_json: pixel.toString("base64") }] })
            : item("/cat.png"),
      };
    });
    const client = await connect(gateway.url);
    expect((await client.generateImages(draw, never())).images).toHaveLength(1);
    expect(gateway.seen).toHaveLength(1);
    for (const requests of [3, 2]) {
      const before = gateway.seen.length;
      expect((await client.generateImages({ ...draw, model: "strict" }, never())).images).toHaveLength(1);
      expect(gateway.seen).toHaveLength(before + requests);
    }
  });
});

describe("a picture in chat", () => {
  const saying = (message: object): string =>
    JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }] });

  it("is fetched with the key from the gateway's own address and path", async () => {
    const urls = ["/files/1.png", "/files/2.png"];
    const gateway: Host = await serve((path, _body, key) => {
      if (path.includes("completions"))
        return {
          body: saying({
            content: `![cat](${gateway.url}${urls[0]})`,
            images: [{ type: "image_url", image_url: { url: urls[1] } }],
          }),
        };
      const bytes = Buffer.concat([pixel, Buffer.from(path)]);
      return key === undefined ? { status: 401, body: "no key" } : { body: bytes };
    });
    const client = await connect(gateway.url);
    const { images } = await outcomeOf(client.chat(hello, never()));
    expect(images).toHaveLength(2);
    expect(gateway.seen.slice(1).sort()).toEqual(urls.map((url) => `${url} Bearer ${apiKey}`));
  });

  it("is fetched at a path in Markdown, which stays text without a notice where the gateway has none", async () => {
    const gateway = await serve((path) => {
      if (path.includes("completions"))
        return { body: saying({ content: "See ![cat](/files/1.png) and ![logo](/img/logo.png)." }) };
      return path === "/files/1.png" ? { body: pixel } : { status: 404, body: "none" };
    });
    const client = await connect(gateway.url);
    const outcome = await outcomeOf(client.chat(hello, never()));
    expect(outcome).toMatchObject({ text: "See  and ![logo](/img/logo.png).", images: ["image/png"] });
    expect(outcome.notices).toBeUndefined();
    expect(gateway.seen.slice(1)).toEqual([
      `/files/1.png Bearer ${apiKey}`,
      `/img/logo.png Bearer ${apiKey}`,
    ]);
  });

  it("alone that cannot be had is no empty answer", async () => {
    const images = [{ type: "image_url", image_url: { url: "http://10.0.0.9/cat.png" } }];
    const gateway = await serve(() => ({ body: saying({ content: "", images }) }));
    const client = await connect(gateway.url);
    const error = await failureOf(client.chat(hello, never()));
    expect(error).toMatchObject({ code: "gateway-bad-answer" });
    expect(toNotice(error)).toBe(
      "A picture could not be fetched from 10.0.0.9: it is opened only if IMAGE_HOSTS lists it.",
    );
  });
});
