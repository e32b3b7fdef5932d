/**
 * Compares the gateway client with the official SDK, interleaved in one run: streamed events per second and
 * the cost of a small request. Run it with `node bench/gateway-client.ts`. The server and the two clients are
 * separate processes.
 */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import OpenAI from "openai";
import type { Log } from "../src/core/telemetry.ts";
import { createGatewayClient } from "../src/gateway/client.ts";

const events = 20_000;
const rounds = 15;
const warmUps = 5;
const requests = 300;
const messages = [{ role: "user" as const, content: "Say hello." }];
const itself = fileURLToPath(import.meta.url);

const [mode, ...rest] = process.argv.slice(2);
if (mode === "server") await serve();
else if (mode === "worker") work(rest[0] ?? "", rest[1] ?? "");
else await compare();

function ours(baseUrl: string) {
  const log: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };
  return createGatewayClient({
    baseUrl,
    apiKey: "sk-bench",
    log,
    timeouts: { connectMs: 5000, firstEventMs: 60_000, idleMs: 30_000, totalMs: 600_000 },
    downloadImage: () => Promise.reject(new Error("no images in this benchmark")),
    maxImageBytes: 10_000_000,
  });
}

function official(baseUrl: string) {
  return new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey: "sk-bench" });
}

async function serve(): Promise<void> {
  const chunk = (content: string, finish: string | null) =>
    `data: ${JSON.stringify({ id: "chatcmpl-123", object: "chat.completion.chunk", created: 1_700_000_000, model: "m", system_fingerprint: "fp_1", choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: finish }] })}\n\n`;
  const stream = Buffer.from(`${chunk(" word", null).repeat(events)}${chunk("", "stop")}data: [DONE]\n\n`);
  const small = Buffer.from(
    JSON.stringify({
      id: "c",
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
    }),
  );
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    let isStreamed = false;
    for await (const piece of request) isStreamed ||= (piece as Buffer).includes('"stream":true');
    response.setHeader("content-type", isStreamed ? "text/event-stream" : "application/json");
    response.end(isStreamed ? stream : small);
  };
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
  process.on("disconnect", () => process.exit());
}

async function readOurs(client: ReturnType<typeof ours>): Promise<number> {
  let characters = 0;
  for await (const event of client.chat({ model: "m", messages }, new AbortController().signal))
    if (event.kind === "text") characters += event.text.length;
  return characters;
}

async function readOfficial(client: OpenAI): Promise<number> {
  let characters = 0;
  for await (const chunk of await client.chat.completions.create({ model: "m", messages, stream: true }))
    characters += chunk.choices[0]?.delta.content?.length ?? 0;
  return characters;
}

async function askOurs(client: ReturnType<typeof ours>): Promise<void> {
  for await (const _ of client.chat({ model: "m", messages, stream: false }, new AbortController().signal));
}

async function askOfficial(client: OpenAI): Promise<void> {
  await client.chat.completions.create({ model: "m", messages, max_tokens: 1024, temperature: 1 });
}

/** Wall and processor milliseconds of some work in this process. */
async function measure(work: () => Promise<unknown>): Promise<Sample> {
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  await work();
  const { user, system } = process.cpuUsage(cpu);
  return { wallMs: performance.now() - startedAt, cpuMs: (user + system) / 1000 };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

type Job = "stream" | "requests";
type Sample = { readonly wallMs: number; readonly cpuMs: number };

async function compare(): Promise<void> {
  const server = spawn(process.execPath, [itself, "server"], { stdio: ["ignore", "pipe", "inherit", "ipc"] });
  const port = await new Promise<string>((resolve) =>
    server.stdout?.once("data", (data: Buffer) => resolve(data.toString().trim())),
  );
  const baseUrl = `http://127.0.0.1:${port}`;
  // They run in separate processes, so that one does not pay for the other's garbage collection.
  const workers = ["ours", "sdk"].map((who) => fork(itself, ["worker", who, baseUrl]));
  try {
    console.log(`node ${process.version}, ${cpus().length} cores; medians of ${rounds} interleaved rounds`);
    const [mine, theirs] = workers;
    if (mine === undefined || theirs === undefined) throw new Error("no workers");
    await compareJobs("stream", mine, theirs, (ms) => `${Math.round((events / ms) * 1000)} events a second`);
    await compareJobs(
      "requests",
      mine,
      theirs,
      (ms) => `${((ms / requests) * 1000).toFixed(0)} µs a small request`,
    );
  } finally {
    for (const child of [...workers, server]) child.disconnect();
  }
}

async function compareJobs(
  job: Job,
  mine: ChildProcess,
  theirs: ChildProcess,
  tell: (ms: number) => string,
): Promise<void> {
  const samples: [Sample, Sample][] = [];
  for (let round = -warmUps; round < rounds; round++) {
    const pair: [Sample, Sample] = [await order(mine, job), await order(theirs, job)];
    if (round >= 0) samples.push(pair);
  }
  for (const clock of ["wallMs", "cpuMs"] as const) {
    const a = median(samples.map(([sample]) => sample[clock]));
    const b = median(samples.map(([, sample]) => sample[clock]));
    const ratio = median(samples.map(([one, other]) => other[clock] / one[clock]));
    console.log(
      `${clock === "wallMs" ? "wall time" : "processor"}: ours ${tell(a)}, SDK ${tell(b)}: ratio ${ratio.toFixed(2)}`,
    );
  }
}

async function order(worker: ChildProcess, job: Job): Promise<Sample> {
  worker.send(job);
  const [sample] = (await once(worker, "message")) as [Sample];
  return sample;
}

function work(who: string, baseUrl: string): void {
  const client = ours(baseUrl);
  const sdk = official(baseUrl);
  const jobs: Record<Job, () => Promise<void>> = {
    async stream() {
      const characters = await (who === "ours" ? readOurs(client) : readOfficial(sdk));
      if (characters !== events * " word".length) throw new Error(`only ${characters} characters arrived`);
    },
    async requests() {
      for (let count = 0; count < requests; count++)
        await (who === "ours" ? askOurs(client) : askOfficial(sdk));
    },
  };
  process.on("message", (job: Job) => {
    void measure(jobs[job]).then((sample) => process.send?.(sample));
  });
  process.on("disconnect", () => process.exit());
}
