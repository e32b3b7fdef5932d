import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Worker } from "node:worker_threads";
import { getGlobalDispatcher, setGlobalDispatcher } from "undici";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createDownloader, type LookupAll } from "../../../src/media/guarded-download.ts";
import { createSlackPlatform } from "../../../src/platforms/slack/platform.ts";
import { adoptProxies, describeProxies, readProxies } from "../../../src/support/proxy.ts";
import { silentLog } from "../../support/silent-log.ts";
import { createSlackReceiver } from "../../support/slack-receiver.ts";
import { createTestClient, failureOf, never } from "../gateway/harness.ts";

const open: (() => unknown)[] = [];
const usual = getGlobalDispatcher();
afterEach(async () => {
  adoptProxies({});
  setGlobalDispatcher(usual);
  for (const close of open.splice(0).toReversed()) await close();
});

/** Starts a proxy that answers plain requests itself and refuses tunnels, and notes what it was asked for. */
async function startProxy(answer: (url: string) => object = () => ({})) {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(answer(request.url ?? "")));
  });
  server.on("connect", (request, socket) => {
    seen.push(`CONNECT ${request.url}`);
    socket.on("error", () => {});
    socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push(() => server.close());
  return { seen, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const models = () => ({ data: [{ id: "m" }] });

describe("the gateway", () => {
  const listFrom = async (baseUrl: string) => {
    const client = createTestClient(baseUrl, {
      retryRules: { maxAttempts: 1, baseDelayMs: 1, maxDelayMs: 1 },
    });
    open.push(() => client.close());
    return await client.listModels(never());
  };

  it("is asked through the proxy of its protocol", async () => {
    const [plain, secure] = [await startProxy(models), await startProxy()];
    adoptProxies({ HTTP_PROXY: plain.url, HTTPS_PROXY: secure.url });
    expect(await listFrom("http://gateway.test/v1")).toHaveLength(1);
    await failureOf(listFrom("https://gateway.test/v1"));
    expect(plain.seen).toEqual(["GET http://gateway.test/v1/models"]);
    expect(secure.seen).toEqual(["CONNECT gateway.test:443"]);
  });

  it("is asked directly where NO_PROXY names it, and on this machine", async () => {
    const proxy = await startProxy(models);
    const here = await startProxy(models);
    adoptProxies({ HTTP_PROXY: proxy.url, NO_PROXY: "gateway.test" });
    await failureOf(listFrom("http://gateway.test/v1"));
    expect(await listFrom(here.url)).toHaveLength(1);
    expect(proxy.seen).toEqual([]);
    expect(here.seen).toEqual(["GET /v1/models"]);
  });
});

describe("downloads", () => {
  const limits = { maxBytes: 1000, timeoutMs: 10_000, signal: never() };

  async function downloadCode(url: string, addresses: readonly string[]): Promise<unknown> {
    const lookup: LookupAll = (_, callback) =>
      callback(
        null,
        addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
      );
    const trusted = [{ host: "files.test" }];
    const downloader = createDownloader({ trusted, allowPublicHttps: true, lookup });
    open.push(() => downloader.close());
    return await failureOf(downloader.download(url, limits));
  }

  it.each([
    ["a trusted host by its name", "https://files.test/a", [], "CONNECT files.test:443"],
    [
      "another host by an address that was checked",
      "https://a.test/a",
      ["93.184.216.34"],
      "CONNECT 93.184.216.34:443",
    ],
    [
      "only by a public one",
      "https://a.test:444/a",
      ["10.0.0.1", "93.184.216.34"],
      "CONNECT 93.184.216.34:444",
    ],
    ["one of IPv6", "https://a.test/a", ["2606:2800:220:1::1"], "CONNECT [2606:2800:220:1::1]:443"],
  ])("ask the proxy for %s", async (_, url, addresses, asked) => {
    const proxy = await startProxy();
    adoptProxies({ HTTPS_PROXY: proxy.url });
    expect(await downloadCode(url, addresses)).toMatchObject({ code: "attachment-unreadable" });
    expect(proxy.seen).toEqual([asked]);
  });

  it.each([
    ["a name of this network", "https://a.test/a", ["10.0.0.1"]],
    ["an address of this network", "https://10.0.0.1/a", []],
    ["this machine", "https://127.0.0.1/a", []],
    ["http", "http://a.test/a", ["93.184.216.34"]],
  ])("do not ask it for %s", async (_, url, addresses) => {
    const proxy = await startProxy();
    adoptProxies({ HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url });
    expect(await downloadCode(url, addresses)).toMatchObject({ code: "attachment-blocked" });
    expect(proxy.seen).toEqual([]);
  });
});

describe("the platforms", () => {
  it("Slack is called through the proxy, with its socket", async () => {
    const proxy = await startProxy(() => ({ ok: true, url: "wss://socket.slack.test/" }));
    adoptProxies({ HTTP_PROXY: proxy.url });
    await fetch("http://slack.test/api/files");
    const slack = createSlackPlatform({
      apiUrl: "http://slack.test/api/",
      botToken: "xoxb-1",
      appToken: "xapp-1",
      commands: new Map(),
      log: silentLog,
    });
    open.push(() => slack.stop());
    const receiver = createSlackReceiver();
    expect(await failureOf(slack.start(receiver, receiver))).toMatchObject({ code: "platform-unreachable" });
    expect(proxy.seen).toEqual([
      "GET http://slack.test/api/files",
      "POST http://slack.test/api/auth.test",
      "POST http://slack.test/api/apps.connections.open",
      "CONNECT socket.slack.test:443",
    ]);
  });

  it("Discord is called through the proxy, with its gateway", async () => {
    const gateway = {
      url: "wss://gateway.discord.test",
      shards: 1,
      session_start_limit: { total: 1000, remaining: 999, reset_after: 0, max_concurrency: 1 },
    };
    const proxy = await startProxy(() => gateway);
    const bot = new Worker(new URL("../../support/proxied-discord-client.ts", import.meta.url), {
      workerData: { proxy: proxy.url },
    });
    open.push(() => bot.terminate());
    bot.on("error", () => {});
    await vi.waitFor(() => expect(proxy.seen).toContain("CONNECT gateway.discord.test:443"), 20_000);
    expect(proxy.seen[0]).toBe("GET http://discord.test/api/v10/gateway/bot");
  });
});

describe("the settings", () => {
  it("are read in lower case first, without http:// too, and named without passwords", () => {
    expect(readProxies({})).toBeUndefined();
    expect(readProxies({ HTTP_PROXY: " ", NO_PROXY: "a.test" })).toBeUndefined();
    const proxies = readProxies({
      HTTP_PROXY: "http://wrong.test",
      http_proxy: "ada:secret@proxy.test:3128",
    });
    expect(proxies).toMatchObject({ https: "http://ada:secret@proxy.test:3128" });
    expect(proxies && describeProxies(proxies)).toBe("proxy.test:3128, but not to localhost, 127.0.0.1, ::1");
  });
});
