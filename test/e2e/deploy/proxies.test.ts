import { mkdtemp, rm } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { startScriptedGateway, type ScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { startInstance, type Instance } from "../instances/instance.ts";
import { publicName, startCaddy, startNginx, type Proxy } from "./proxies.ts";

const password = "a password of the page";
const words = ["one ", "two ", "three ", "four ", "five "];

let folder: string;
let gateway: ScriptedGateway;
let parley: Instance;
let proxy: Proxy | undefined;
let url = "";
let hasWritten = false;

const chunkOf = (delta: object, finish: string | null): string =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

async function bodyOf(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of response.setEncoding("utf8")) text += piece as string;
  return text;
}

const ask: Proxy["ask"] = (path, options) => proxy!.ask(path, options);

const statusOf = async (path: string): Promise<number | undefined> => {
  const response = await ask(path);
  response.resume();
  return response.statusCode;
};

async function logIn(): Promise<string> {
  const answer = await ask("/api/login", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ password }),
  });
  expect(answer.statusCode, await bodyOf(answer)).toBe(200);
  const [cookie = ""] = answer.headers["set-cookie"] ?? [];
  return cookie.split(";")[0] ?? "";
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-proxy-"));
  gateway = await startScriptedGateway((request) =>
    request.path === "/v1/models"
      ? { body: '{"data":[{"id":"m"}]}', headers: { "content-type": "application/json" } }
      : {
          body: `${words.map((content) => chunkOf({ content }, null)).join("")}${chunkOf({}, "stop")}data: [DONE]\n\n`,
          eventEveryMs: 150,
          onWritten: () => {
            hasWritten = true;
          },
        },
  );
  parley = await startInstance({
    settings: {
      STORE_URL: `sqlite:${join(folder, "parley.db")}`,
      PAGE: "on",
      PAGE_PASSWORD: password,
      ADMIN_PASSWORD: "password of operators",
      PAGE_HOSTS: publicName,
      PAGE_TRUSTED_PROXIES: "127.0.0.1",
      GATEWAY_BASE_URL: gateway.baseUrl,
      CHAT_MODEL: "m",
    },
  });
});
afterAll(async () => {
  await parley.remove();
  await gateway.close();
  await rm(folder, { recursive: true, force: true });
});

describe.each([
  ["nginx", startNginx, has("nginx") && has("openssl")],
  ["Caddy", startCaddy, has("caddy")],
] as const)("behind %s", (name, startProxy, isThere) => {
  beforeAll(async () => {
    url = parley.parley.url;
    if (!isThere) return;
    proxy = await startProxy(folder, url);
  });
  afterAll(async () => {
    await proxy?.stop();
    proxy = undefined;
  });

  it.skipIf(!isThere)("the page is served, and what is for operators is not", async () => {
    const page = await ask("/");
    expect(await bodyOf(page)).toContain("<title>");
    expect(page.statusCode).toBe(401);
    for (const path of ["/metrics", "/readyz", "/healthz", "/metrics/", "/api/../metrics", "/%6detrics"])
      expect([400, 404], path).toContain(await statusOf(path));
    expect(await statusOf("/vendor/none.js")).toBe(404);
    // Its block is a comment in the example, so Parley itself asks for a password.
    expect(await statusOf("/admin")).toBe(401);
    expect(await statusOf("/api/state")).toBe(401);
  });

  it.skipIf(!isThere)("an answer appears as it is written", async () => {
    const cookie = await logIn();
    hasWritten = false;
    const id = name.slice(0, 1).toLowerCase().repeat(22);
    const events = await ask(`/api/conversations/${id}/events`, { headers: { cookie } });
    expect(events.headers["content-type"]).toMatch(/^text\/event-stream/);
    const sent = await ask(`/api/conversations/${id}/messages`, {
      method: "POST",
      headers: { cookie, "content-type": "application/json" },
      body: JSON.stringify({ id: "b".repeat(22), text: "count", uploads: [] }),
    });
    expect(sent.statusCode, await bodyOf(sent)).toBe(202);
    let seen = "";
    let sawFirstEarly = false;
    for await (const piece of events.setEncoding("utf8")) {
      seen += piece as string;
      if (seen.includes("one ") && !hasWritten) sawFirstEarly = true;
      if (seen.includes("five")) break;
    }
    expect(sawFirstEarly).toBe(true);
  });

  it.skipIf(!isThere)("a page that is closed keeps no connection", async () => {
    const cookie = await logIn();
    const connections = async (): Promise<number> => {
      const text = await (await fetch(`${url}/metrics`)).text();
      return Number(/^parley_http_connections (\d+)$/m.exec(text)?.[1]);
    };
    const pages = await Promise.all(
      Array.from({ length: 20 }, (_one, index) =>
        ask(`/api/conversations/${String(index).padStart(20, "c")}/events`, { headers: { cookie } }),
      ),
    );
    expect(await connections()).toBeGreaterThan(20);
    for (const page of pages) page.destroy();
    await expect.poll(connections).toBeLessThan(20);
  });

  it.skipIf(!isThere)(
    "a file passes that is larger than a proxy's usual limit, and not a huge one",
    async () => {
      const cookie = await logIn();
      const upload = async (
        bytes: number,
        name = "notes.txt",
        type = "text/plain",
      ): Promise<number | undefined> => {
        const response = await ask(`/api/uploads?name=${name}`, {
          method: "POST",
          headers: { cookie, "content-type": type, "content-length": String(bytes) },
          body: Buffer.alloc(bytes, "a"),
        });
        response.resume();
        return response.statusCode;
      };
      expect(await upload(8_000_000)).toBe(201);
      expect(await upload(40_000_000).catch(() => 413)).toBe(413);
      // An hour of a recording is this large.
      expect(await upload(60_000_000, "lecture.mp3", "audio/mpeg")).toBe(201);
    },
  );
});
