/**
 * Compares the embedded gateway with direct calls, interleaved in one run: the time added to a request and to
 * a first token, and the memory of 1,000 concurrent streams. Run it with `node bench/embedded-gateway.ts`.
 * Upstream and gateway are separate processes.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { cpus } from "node:os";
import { json } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { Agent } from "undici";
import { createEmbeddedGateway } from "../src/embedded-gateway/embedded-gateway.ts";
import { defaultGatewayConfig } from "../src/embedded-gateway/gateway-config.ts";
import type { Log } from "../src/core/telemetry.ts";

const rounds = 3000;
const warmUps = 500;
const streams = 1000;
const chunksEach = 20;
const chunkEveryMs = 250;
const itself = fileURLToPath(import.meta.url);
const key = "sk-bench";

const [mode, address] = process.argv.slice(2);
if (mode === "upstream") await serveUpstream();
else if (mode === "gateway") await serveGateway(address ?? "");
else await compare();

/** Answers at once, except that the model `slow` streams a chunk every 250 ms. */
async function serveUpstream(): Promise<void> {
  const choice = (delta: object, finish: string | null) =>
    `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const whole = JSON.stringify({
    id: "x",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content: "Hello." }, finish_reason: "stop" }],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  });
  const server = createServer((request, response) => {
    void json(request).then((body) => answer(body as { stream: boolean; model: string }, response));
  });
  const answer = ({ stream, model }: { stream: boolean; model: string }, response: ServerResponse): void => {
    if (!stream) {
      response.writeHead(200, {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(whole),
      });
      return void response.end(whole);
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    if (model !== "slow") {
      response.write(choice({ role: "assistant", content: "Hello" }, null));
      return void response.end(`${choice({}, "stop")}data: [DONE]\n\n`);
    }
    let sent = 0;
    const timer = setInterval(() => {
      sent += 1;
      response.write(choice({ content: `word${sent} ` }, null));
      if (sent < chunksEach) return;
      clearInterval(timer);
      response.end(`${choice({}, "stop")}data: [DONE]\n\n`);
    }, chunkEveryMs);
  };
  server.listen(0, "127.0.0.1", 4096);
  await once(server, "listening");
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}

async function serveGateway(upstreamUrl: string): Promise<void> {
  const log: Log = { debug() {}, info() {}, warn: console.error, error: console.error, child: () => log };
  const upstream = {
    baseUrl: `${upstreamUrl}/v1`,
    apiKey: key,
    headers: {},
    models: [{ id: "m" }, { id: "slow" }],
    inlineImages: false,
    streamUsage: true,
    retries: 0,
    timeoutMs: 60_000,
  };
  const config = { ...defaultGatewayConfig, upstreams: { up: upstream } };
  const gateway = createEmbeddedGateway({ host: "127.0.0.1", port: 0, apiKeys: [key], log, config });
  const { url } = await gateway.listen();
  process.on("message", (wish) => {
    if (wish === "settled") globalThis.gc?.();
    const { rss, heapUsed } = process.memoryUsage();
    process.send?.({ rss, heapUsed });
  });
  process.send?.({ url });
}

interface Side {
  readonly url: string;
  readonly model: string;
  readonly agent: Agent;
}

async function compare(): Promise<void> {
  const upstream = await start("upstream");
  const gateway = await start("gateway", upstream.url);
  const agent = () => new Agent({ connections: streams * 2, pipelining: 1 });
  const idle = await memoryOf(gateway.child, "settled");
  const direct: Side = { url: upstream.url, model: "", agent: agent() };
  const through: Side = { url: gateway.url, model: "up/", agent: agent() };
  console.log(`embedded gateway, ${cpus().length} × ${cpus()[0]?.model ?? "?"}, Node ${process.version}\n`);

  for (const [what, stream] of [
    ["a request", false],
    ["a first token", true],
  ] as const) {
    const times = { direct: [] as number[], through: [] as number[] };
    for (let round = 0; round < rounds + warmUps; round += 1) {
      const [a, b] = [await time(direct, stream), await time(through, stream)];
      if (round < warmUps) continue;
      times.direct.push(a);
      times.through.push(b);
    }
    const [a, b] = [quantiles(times.direct), quantiles(times.through)];
    console.log(`${what}, ms (${rounds} each, one at a time)`);
    console.log(`  direct   median ${a.median.toFixed(3)}  p95 ${a.p95.toFixed(3)}`);
    console.log(`  gateway  median ${b.median.toFixed(3)}  p95 ${b.p95.toFixed(3)}`);
    console.log(
      `  added    median ${(b.median - a.median).toFixed(3)}  p95 ${(b.p95 - a.p95).toFixed(3)}  (aim: under 1 at the median)\n`,
    );
  }

  const before = await memoryOf(gateway.child, "settled");
  const peak = { ...before };
  const watch = setInterval(
    () => void memoryOf(gateway.child, "now").then(({ rss }) => (peak.rss = Math.max(peak.rss, rss))),
    250,
  );
  const startedAt = performance.now();
  const ends = await Promise.all(Array.from({ length: streams }, () => hold(through)));
  const seconds = (performance.now() - startedAt) / 1000;
  clearInterval(watch);
  const megabytes = (bytes: number): string => (bytes / 1_048_576).toFixed(0);
  console.log(
    `${streams} concurrent streams of ${chunksEach} chunks, ${seconds.toFixed(1)} s (${((chunksEach * chunkEveryMs) / 1000).toFixed(1)} s at least)`,
  );
  console.log(`  whole ${ends.filter(Boolean).length}, lost ${ends.filter((isWhole) => !isWhole).length}`);
  const after = await memoryOf(gateway.child, "settled");
  const kilobytes = (peak.rss - before.rss) / streams / 1024;
  console.log(`gateway's memory, MB (resident / heap in use after a collection)`);
  console.log(`  started          ${megabytes(idle.rss)} / ${megabytes(idle.heapUsed)}`);
  console.log(`  before streams   ${megabytes(before.rss)} / ${megabytes(before.heapUsed)}`);
  console.log(
    `  with ${streams}        ${megabytes(peak.rss)} at most, ${kilobytes.toFixed(1)} kB more a stream`,
  );
  console.log(`  after            ${megabytes(after.rss)} / ${megabytes(after.heapUsed)}`);

  await Promise.all([direct.agent.destroy(), through.agent.destroy()]);
  gateway.child.kill();
  upstream.child.kill();
}

async function time(side: Side, stream: boolean): Promise<number> {
  const startedAt = performance.now();
  const { body } = await ask(side, "m", stream);
  let first: number | undefined;
  for await (const _ of body) first ??= performance.now();
  return (stream ? (first ?? Number.NaN) : performance.now()) - startedAt;
}

/** Whether a slow stream is complete, with every word once, in order, and the end. */
async function hold(side: Side): Promise<boolean> {
  try {
    const { body } = await ask(side, "slow", true);
    const text = await body.text();
    const words = [...text.matchAll(/word(\d+) /g)].map(([, number]) => Number(number));
    return (
      words.length === chunksEach &&
      words.every((word, at) => word === at + 1) &&
      text.endsWith("data: [DONE]\n\n")
    );
  } catch (error) {
    console.error(error);
    return false;
  }
}

function ask(side: Side, model: string, stream: boolean) {
  return side.agent.request({
    origin: side.url,
    path: "/v1/chat/completions",
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: side.model + model,
      stream,
      messages: [{ role: "user", content: "Say hello." }],
    }),
  });
}

function quantiles(times: number[]): { median: number; p95: number } {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
  return { median: at(0.5), p95: at(0.95) };
}

async function start(mode: string, ...rest: string[]): Promise<{ child: ChildProcess; url: string }> {
  const child = fork(itself, [mode, ...rest], { execArgv: ["--expose-gc"] });
  const [message] = (await once(child, "message")) as [{ url: string }];
  return { child, url: message.url };
}

async function memoryOf(
  child: ChildProcess,
  wish: "now" | "settled",
): Promise<{ rss: number; heapUsed: number }> {
  child.send(wish);
  const [message] = (await once(child, "message")) as [{ rss: number; heapUsed: number }];
  return message;
}
