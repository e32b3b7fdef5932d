import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createEmbeddedGateway } from "../../src/embedded-gateway/embedded-gateway.ts";
import { fixture } from "../fixtures/fixtures.ts";
import { createQuietLog } from "../support/quiet-log.ts";
import { loopTime } from "../support/loop-time.ts";

const key = "test-key";
const log = createQuietLog();
let gateway: ReturnType<typeof createEmbeddedGateway>;
let url: string;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-gateway-"));
  gateway = createEmbeddedGateway({ host: "127.0.0.1", port: 0, apiKeys: [key], log, sandboxWordDelayMs: 0 });
  ({ url } = await gateway.listen());
});

afterAll(async () => {
  await gateway.close();
  await rm(folder, { recursive: true });
});

/** Whatever was done to the server, it answers as before and has nothing to report. */
afterEach(async () => {
  const response = await post("/v1/chat/completions", { model: "sandbox/chat", messages });
  expect(response.status).toBe(200);
  await response.text();
  expect(log.errors).toEqual([]);
});

const messages = [{ role: "user", content: "hello" }];
const bearer = { authorization: `Bearer ${key}` };

function post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url + path, {
    method: "POST",
    headers: { ...bearer, "content-type": "application/json", ...headers },
    body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body),
  });
}

async function curl(...options: readonly string[]): Promise<string> {
  const child = spawn("curl", [
    "-sS",
    "-i",
    "--max-time",
    "20",
    "-H",
    `Authorization: Bearer ${key}`,
    ...options,
  ]);
  const [output, problems] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return output + problems;
}

interface Refusal {
  readonly status: number;
  readonly param?: string | null;
  readonly code: string;
}

async function expectRefusal(response: Response, refusal: Refusal): Promise<void> {
  const { error } = (await response.json()) as { error: Record<string, unknown> };
  expect({ status: response.status, param: error["param"], code: error["code"] }).toEqual({
    param: null,
    ...refusal,
  });
  expect(Object.keys(error).sort()).toEqual(["code", "message", "param", "type"]);
  expect(typeof error["message"]).toBe("string");
  expect(response.headers.get("content-type")).toBe("application/json");
  expect(response.headers.get("x-request-id")).toMatch(/^req_/);
  if (typeof refusal.param === "string") expect(error["message"]).toContain(`'${refusal.param}'`);
}

describe("an invalid request", () => {
  it("has no key, or an unknown one", async () => {
    const bare = await fetch(`${url}/v1/models`);
    expect(bare.headers.get("www-authenticate")).toContain("Bearer");
    await expectRefusal(bare, { status: 401, code: "missing_api_key" });
    for (const authorization of ["Bearer wrong", `Bearer ${key}x`, `Bearer ${key.slice(1)}`]) {
      const response = await post("/v1/chat/completions", "not even JSON", { authorization });
      await expectRefusal(response, { status: 401, code: "invalid_api_key" });
    }
    await expectRefusal(await post("/v1/models", "", { authorization: `Basic ${key}` }), {
      status: 401,
      code: "missing_api_key",
    });
  });

  it("has an unknown path, method or content type", async () => {
    await expectRefusal(await post("/v1/embeddings", {}), { status: 404, code: "unknown_url" });
    await expectRefusal(await post("/v1/__proto__", {}), { status: 404, code: "unknown_url" });
    const wrongMethod = await fetch(`${url}/v1/chat/completions`, { headers: bearer });
    expect(wrongMethod.headers.get("allow")).toBe("POST");
    await expectRefusal(wrongMethod, { status: 405, code: "method_not_allowed" });
    await expectRefusal(await post("/v1/models", {}), { status: 405, code: "method_not_allowed" });
    const wrongType = { status: 415, code: "unsupported_media_type" };
    await expectRefusal(
      await post("/v1/chat/completions", "a=b", { "content-type": "text/plain" }),
      wrongType,
    );
    await expectRefusal(await post("/v1/audio/transcriptions", {}), wrongType);
    expect((await fetch(`${url}/pictures/none.png`)).status).toBe(404);
  });

  it.each(["", "{", "[]", "null", '"text"', "{'model': 1}"])("has the body %j", async (body) => {
    const code = body.startsWith("{") || body === "" ? "invalid_json" : "invalid_type";
    await expectRefusal(await post("/v1/chat/completions", body), { status: 400, code });
  });

  it("is not UTF-8", async () => {
    const bytes = Buffer.concat([Buffer.from('{"model":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]);
    await expectRefusal(await post("/v1/chat/completions", bytes), { status: 400, code: "invalid_json" });
  });

  it.each([
    [{ model: "sandbox/none" }, { status: 404, param: "model", code: "model_not_found" }],
    [{ model: "sandbox/transcribe" }, { status: 400, param: "model", code: "model_not_supported" }],
    [{ temperature: 2.1 }, { status: 400, param: "temperature", code: "invalid_value" }],
    [{ max_tokens: 0 }, { status: 400, param: "max_tokens", code: "invalid_value" }],
    [{ messages: [] }, { status: 400, param: "messages", code: "invalid_value" }],
  ])("asks a chat with %j", async (change, refusal) => {
    const body = { model: "sandbox/chat", messages, ...change };
    const { param, ...rest } = refusal;
    const response = await post("/v1/chat/completions", body);
    const { error } = (await response.clone().json()) as { error: { message: string } };
    expect(error.message).toMatch(param === "model" ? /model/ : new RegExp(`'${param}'`));
    expect((await response.json()) as object).toMatchObject({ error: { param, code: rest.code } });
    expect(response.status).toBe(rest.status);
  });

  it.each([
    ["http://127.0.0.1:22/a.png", "invalid_image_url"],
    ["http://[::1]/a.png", "invalid_image_url"],
    ["data:image/png;base64,!!", "invalid_image_url"],
    ["data:image/png;base64,AAAA", "invalid_image"],
    [
      `data:image/svg+xml;base64,${Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>").toString("base64")}`,
      "invalid_image",
    ],
  ])("shows the picture %s", async (address, code) => {
    const content = [
      { type: "text", text: "see" },
      { type: "image_url", image_url: { url: address } },
    ];
    for (const model of ["sandbox/chat", "sandbox/image"]) {
      const response = await post("/v1/chat/completions", {
        model,
        messages: [...messages, { role: "user", content }],
      });
      await expectRefusal(response, { status: 400, param: "messages[1].content[1].image_url.url", code });
    }
  });

  it("has a truncated picture", async () => {
    const bytes = Buffer.from(await fixture("picture.png")).subarray(0, 1500);
    const image = {
      type: "image_url",
      image_url: { url: `data:image/png;base64,${bytes.toString("base64")}` },
    };
    const body = { model: "sandbox/chat", messages: [{ role: "user", content: [image] }] };
    const refusal = { status: 400, param: "messages[0].content[0].image_url.url", code: "invalid_image" };
    await expectRefusal(await post("/v1/chat/completions", body), refusal);
  });

  it.each([
    [{ size: "10x10" }, "size"],
    [{ size: "4096x4096" }, "size"],
    [{ n: 11 }, "n"],
    [{ prompt: "" }, "prompt"],
  ])("asks for a picture with %j", async (change, param) => {
    const body = { model: "sandbox/image", prompt: "a fox", ...change };
    await expectRefusal(await post("/v1/images/generations", body), {
      status: 400,
      param,
      code: "invalid_value",
    });
  });
});

describe("an invalid form", () => {
  const send = (body: string, type = "multipart/form-data; boundary=b"): Promise<Response> =>
    post("/v1/audio/transcriptions", body, { "content-type": type });
  const field = (name: string, value: string): string =>
    `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const file = (content: string): string =>
    `--b\r\nContent-Disposition: form-data; name="file"; filename="a.ogg"\r\n\r\n${content}\r\n`;

  it.each([
    ["nothing in it", "", { status: 400, code: "invalid_multipart" }],
    [
      "no end",
      `${field("model", "sandbox/transcribe")}--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nabc`,
      { status: 400, code: "invalid_multipart" },
    ],
    [
      "no names",
      "--b\r\nContent-Type: text/plain\r\n\r\nx\r\n--b--\r\n",
      { status: 400, code: "invalid_multipart" },
    ],
    [
      "no file",
      `${field("model", "sandbox/transcribe")}--b--\r\n`,
      { status: 400, param: "file", code: "missing_required_parameter" },
    ],
    [
      "no model",
      `${file("abc")}--b--\r\n`,
      { status: 400, param: "model", code: "missing_required_parameter" },
    ],
    [
      "an empty file",
      `${field("model", "sandbox/transcribe")}${file("")}--b--\r\n`,
      { status: 400, param: "file", code: "empty_file" },
    ],
    [
      "a file of rubbish",
      `${field("model", "sandbox/transcribe")}${file("abc")}--b--\r\n`,
      { status: 400, param: "file", code: "invalid_audio" },
    ],
    [
      "two files",
      `${field("model", "sandbox/transcribe")}${file("abc")}${file("abc")}--b--\r\n`,
      { status: 400, param: "file", code: null },
    ],
    [
      "a language that is none",
      `${field("model", "sandbox/transcribe")}${field("language", "the queen's")}${file("abc")}--b--\r\n`,
      { status: 400, param: "language", code: "invalid_value" },
    ],
  ])("has %s", async (_, body, refusal) => {
    const response = await send(body);
    const { error } = (await response.json()) as { error: object };
    expect({ status: response.status, ...error }).toMatchObject({ param: null, ...refusal });
  });

  it("has no boundary", async () => {
    await expectRefusal(await send("x", "multipart/form-data"), { status: 400, code: "invalid_multipart" });
  });

  it("has an endless field", async () => {
    const response = await send(field("prompt", "x".repeat(100_000)));
    await expectRefusal(response, { status: 413, param: "prompt", code: "request_too_large" });
  });
});

describe("a body of 100 MB", () => {
  const megabytes = Buffer.alloc(100 * 1024 * 1024, "x");

  it.each(["announced", "chunked"])("is refused with the limit (%s)", async (how) => {
    const path = join(folder, "body.json");
    await writeFile(path, megabytes);
    const chunked = how === "chunked" ? ["-H", "Transfer-Encoding: chunked"] : [];
    const before = process.memoryUsage().arrayBuffers;
    const answer = await curl(
      ...chunked,
      "-H",
      "Content-Type: application/json",
      "--data-binary",
      `@${path}`,
      `${url}/v1/chat/completions`,
    );
    expect(answer).toMatch(/HTTP\/1\.1 413 /);
    expect(answer).toContain('"message":"The request body is larger than the limit of 33554432 bytes."');
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(80 * 1024 * 1024);
  });

  it("is refused as an audio file", async () => {
    const path = join(folder, "sound.ogg");
    await writeFile(path, megabytes);
    const form = ["-F", "model=sandbox/transcribe", "-F", `file=@${path}`];
    const answer = await curl(...form, `${url}/v1/audio/transcriptions`);
    expect(answer).toMatch(/HTTP\/1\.1 413 /);
    const chunked = await curl("-H", "Transfer-Encoding: chunked", ...form, `${url}/v1/audio/transcriptions`);
    expect(chunked).toMatch(/HTTP\/1\.1 413 .*"param":"file","code":"request_too_large"/s);
  });
});

describe("a message that is hard to search", () => {
  it.each(["1", "picture ", "a: ", "“", "write ", "\\n", "message 1 ago "])(
    "is answered at once (%j)",
    async (bit) => {
      const content = `${bit.repeat(Math.ceil(2_000_000 / bit.length))}?`;
      const startedAt = loopTime();
      for (const model of ["sandbox/chat", "sandbox/image"]) {
        const response = await post("/v1/chat/completions", {
          model,
          messages: [...messages, { role: "user", content }],
        });
        expect(response.status).toBe(200);
        await response.text();
      }
      expect(loopTime() - startedAt).toBeLessThan(10_000);
    },
  );
});

describe("a misbehaving client", () => {
  it("disconnects during its request", async () => {
    const port = Number(new URL(url).port);
    for (const path of ["/v1/chat/completions", "/v1/audio/transcriptions"]) {
      const type =
        path.endsWith("ions") && path.includes("audio")
          ? "multipart/form-data; boundary=b"
          : "application/json";
      const socket = connect(port, "127.0.0.1");
      socket.write(
        `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: ${type}\r\ncontent-length: 1000\r\n\r\n--b\r\n`,
      );
      await new Promise((resolve) => socket.once("connect", resolve));
      socket.destroy();
      await new Promise((resolve) => socket.once("close", resolve));
    }
  });

  it("disconnects during its answer", async () => {
    const leave = new AbortController();
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { ...bearer, "content-type": "application/json" },
      body: JSON.stringify({
        model: "sandbox/chat",
        stream: true,
        max_tokens: 100_000,
        messages: [{ role: "user", content: "write 100000 characters" }],
      }),
      signal: leave.signal,
    });
    await response.body?.getReader().read();
    leave.abort();
  });

  it("does not send HTTP", async () => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.write(randomBytes(2000));
    socket.resume();
    await new Promise((resolve) => socket.once("close", resolve));
  });
});

describe("curl", () => {
  it("is on this machine", () => {
    expect(spawnSync("curl", ["--version"]).status).toBe(0);
  });

  it("chats, streams, draws, transcribes and lists", async () => {
    const json = ["-H", "Content-Type: application/json"];
    const chat = (stream: boolean): string => JSON.stringify({ model: "sandbox/chat", messages, stream });
    expect(await curl(...json, "-d", chat(false), `${url}/v1/chat/completions`)).toMatch(
      /200 OK.*"finish_reason":"stop"/s,
    );
    expect(await curl("-N", ...json, "-d", chat(true), `${url}/v1/chat/completions`)).toMatch(
      /text\/event-stream.*data: \[DONE\]\n\n$/s,
    );
    const image = JSON.stringify({ model: "sandbox/image", prompt: "a fox", size: "64x64" });
    const drawn = await curl(...json, "-d", image, `${url}/v1/images/generations`);
    const address = /"url":"([^"]+)"/.exec(drawn)?.[1] ?? "";
    expect(await curl(address)).toContain("Content-Type: image/png".toLowerCase());
    const path = join(folder, "voice.ogg");
    await writeFile(path, await fixture("voice.ogg"));
    const form = ["-F", `file=@${path}`, "-F", "model=sandbox/transcribe", "-F", "language=en"];
    expect(await curl(...form, `${url}/v1/audio/transcriptions`)).toContain("Recording: Ogg, 2.3 s");
    expect(await curl(`${url}/v1/models`)).toContain('"sandbox/chat"');
  });
});

describe("an address without keys", () => {
  it("is refused when it is public", async () => {
    const open = createEmbeddedGateway({ host: "0.0.0.0", port: 0, log });
    await expect(open.listen()).rejects.toMatchObject({ code: "config" });
    await open.close();
  });

  it("serves loopback host names only", async () => {
    const open = createEmbeddedGateway({ host: "127.0.0.1", port: 0, log });
    const address = (await open.listen()).url;
    expect((await fetch(`${address}/v1/models`)).status).toBe(200);
    // This is DNS rebinding: a host name that resolves to loopback.
    const rebound = await curl("-H", "Host: evil.example", `${address}/v1/models`);
    expect(rebound).toMatch(/403 .*host_not_allowed/s);
    await open.close();
  });

  it("reports a port that is in use", async () => {
    const second = createEmbeddedGateway({ host: "127.0.0.1", port: Number(new URL(url).port), log });
    await expect(second.listen()).rejects.toMatchObject({ code: "config" });
    await second.close();
  });
});
