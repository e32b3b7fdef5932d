/**
 * Compares the gateway client with the official SDK, interleaved in one run: streamed events per second, the
 * cost of a small request, and the memory of a 100 MB upload. Run it with `node bench/gateway-client.ts`. The
 * server, the two clients and each upload are separate processes.
 */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { createReadStream, openAsBlob } from "node:fs";
import { mkdtemp, open, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import OpenAI from "openai";
import type { Log } from "../src/core/telemetry.ts";
import { createGatewayClient } from "../src/gateway/client.ts";

const events = 20_000;
const rounds = 15;
const warmUps = 5;
const requests = 300;
const messages = [{ role: "user" as const, content: "Say hello." }];
const uploadBytes = 100 * 1024 * 1024;
const itself = fileURLToPath(import.meta.url);

const [mode, ...rest] = process.argv.slice(2);
if (mode === "server") await serve();
else if (mode === "upload") await upload(rest[0] ?? "", rest[1] ?? "", rest[2] ?? "");
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
    let size = 0;
    let isStreamed = false;
    for await (const piece of request) {
      size += (piece as Buffer).length;
      if (size < 10_000 && (piece as Buffer).includes('"stream":true')) isStreamed = true;
    }
    response.setHeader("content-type", isStreamed ? "text/event-stream" : "application/json");
    if (request.url?.endsWith("/transcriptions") === true)
      response.end(JSON.stringify({ text: `${size} bytes` }));
    else response.end(isStreamed ? stream : small);
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
    await compareUploads(baseUrl);
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

async function compareUploads(baseUrl: string): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "parley-bench-"));
  try {
    const path = join(directory, "speech.wav");
    const file = await open(path, "w");
    for (let written = 0; written < uploadBytes; written += 1024 * 1024)
      await file.write(Buffer.alloc(1024 * 1024, 7));
    await file.close();
    for (const who of ["ours", "ours-bytes", "sdk"]) {
      const grown: number[] = [];
      for (let round = 0; round < 3; round++) grown.push(await uploadInChild(who, baseUrl, path));
      console.log(`memory growth of a 100 MB upload, ${who}: ${median(grown).toFixed(1)} MB`);
    }
  } finally {
    await rm(directory, { recursive: true });
  }
}

function uploadInChild(who: string, baseUrl: string, path: string): Promise<number> {
  const child = spawn(process.execPath, [itself, "upload", who, baseUrl, path], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return new Promise((resolve, reject) => {
    let out = "";
    child.stdout.on("data", (data: Buffer) => {
      out += data.toString();
    });
    child.once("close", (code) =>
      code === 0 ? resolve(Number(out)) : reject(new Error(`upload: exit ${code}`)),
    );
  });
}

/** Prints the growth of the peak resident size in megabytes. `ours-bytes` leaves out the bytes. */
async function upload(who: string, baseUrl: string, path: string): Promise<void> {
  const client = ours(baseUrl);
  const sdk = official(baseUrl);
  await (who === "sdk" ? askOfficial(sdk) : askOurs(client));
  const audio = { model: "m", fileName: "speech.wav", mediaType: "audio/wav" };
  const bytes = who === "ours-bytes" ? await (await open(path)).readFile() : undefined;
  const before = process.memoryUsage.rss();
  let peak = before;
  const timer = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss());
  }, 2);
  if (who === "sdk") await sdk.audio.transcriptions.create({ model: "m", file: createReadStream(path) });
  else {
    const request = bytes === undefined ? { ...audio, content: await openAsBlob(path) } : { ...audio, bytes };
    const { text } = await client.transcribe(request, new AbortController().signal);
    if (Number.parseInt(text, 10) < uploadBytes) throw new Error(`the server read only ${text}`);
  }
  clearInterval(timer);
  peak = Math.max(peak, process.memoryUsage.rss());
  console.log(((peak - before) / 1024 / 1024).toFixed(1));
  await client.close();
}
