import { mkdtemp, rm } from "node:fs/promises";
import { request as sendRequest, type IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCommandSet, defineCommand } from "../../../../src/core/command.ts";
import type { Log } from "../../../../src/core/telemetry.ts";
import type { Clock } from "../../../../src/core/clock.ts";
import type { Records } from "../../../../src/core/storage.ts";
import { systemClock } from "../../../../src/support/clock.ts";
import type { PageLoginMode } from "../../../../src/platforms/web/page-login.ts";
import { createSharedMemory } from "../../../support/memory-records.ts";
import type { PlatformDependencies, Sealer } from "../../../../src/core/platform-module.ts";
import { createMetrics } from "../../../../src/operations/metrics.ts";
import { startHttpServer, toReadiness } from "../../../../src/operations/http-server.ts";
import type { SessionLimits } from "../../../../src/platforms/web/api-context.ts";
import { createWebPlatform, type WebPlatform } from "../../../../src/platforms/web/platform.ts";
import { silentLog } from "../../../support/silent-log.ts";
import type { ItemView, ListStateView, SnapshotView } from "../../../../src/platforms/web/views.ts";
import { loadPageModule } from "./page-module.ts";
import { createFakeReceiver, type FakeReceiver } from "./fake-receiver.ts";
import { doNothing } from "../../../support/empty-result.ts";

/** Two commands, with every kind of option. */
export const testCommands = createCommandSet([
  defineCommand({
    name: "imagine",
    description: "Draw",
    options: {
      prompt: { kind: "string", description: "What", required: true },
      image: { kind: "attachment", accepts: "image", description: "A picture" },
      model: { kind: "string", description: "A model", completes: "models" },
      count: { kind: "integer", description: "How many", min: 1, max: 4 },
      private: { kind: "boolean", description: "Only you see it" },
    },
    visibility: "public",
    run: doNothing,
  }),
  defineCommand({ name: "models", description: "List", options: {}, visibility: "private", run: doNothing }),
]);

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  json(): Record<string, unknown>;
}

interface AskOptions {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array;
}

/** The web platform behind a real HTTP server, with a fake receiver. */
export interface PageServer {
  readonly platform: WebPlatform;
  readonly receiver: FakeReceiver;
  readonly host: string;
  readonly directory: string;
  /** Sends a request with exactly these headers. The default `Host` is the server's address. */
  readonly ask: (path: string, options?: AskOptions) => Promise<Answer>;
  /** Sends a request with the headers that the page sends. */
  readonly askAsPage: (
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ) => Promise<Answer>;
  close(): Promise<void>;
}

/** A gateway that answers. */
export const fineGateway: PlatformDependencies["gateway"] = {
  name: "test",
  isSandbox: true,
  outlook: { trouble: () => undefined, onChange: () => () => undefined, look: () => undefined },
};

/** Leaves bytes as they are, as without STORE_ENCRYPTION_KEYS. */
export const plainSealer: Sealer = { seal: (_name, bytes) => bytes, open: (_name, bytes) => bytes };

/** What a test may set. `host` is the bind. Requests go to 127.0.0.1. */
export interface PageServerOptions {
  readonly host?: string;
  readonly password?: string;
  readonly publicHosts?: readonly string[];
  readonly maxFileBytes?: number;
  readonly sealer?: Sealer;
  readonly limits?: SessionLimits;
  readonly retentionMs?: number;
  readonly trustedProxies?: readonly string[];
  readonly connections?: NonNullable<Parameters<typeof startHttpServer>[0]["connections"]>;
  readonly headersTimeoutMs?: number;
  readonly loginMode?: PageLoginMode;
  readonly clock?: Clock;
  /** Default: nowhere. */
  readonly log?: Log;
  /** Holds the accounts. Default: none. */
  readonly records?: Records;
}

/** Starts the platform and Parley's HTTP server on a free port. */
export async function startPageServer(options: PageServerOptions = {}): Promise<PageServer> {
  const { host: bind = "127.0.0.1", publicHosts = [], connections, headersTimeoutMs, ...others } = options;
  const directory = await mkdtemp(join(tmpdir(), "parley-page-server-"));
  const receiver = createFakeReceiver();
  const platform = createWebPlatform({
    commands: testCommands,
    log: silentLog,
    dataDir: directory,
    sealer: plainSealer,
    records: createSharedMemory().records,
    clock: systemClock,
    gateway: fineGateway,
    retentionMs: undefined,
    ...others,
  });
  await platform.start(receiver, receiver);
  const server = await startHttpServer({
    host: bind,
    port: 0,
    allowedHosts: publicHosts,
    metrics: createMetrics(),
    clock: systemClock,
    log: silentLog,
    readiness: () => Promise.resolve(toReadiness("0.0.0", {})),
    handlers: [(request, response, target) => platform.handle(request, response, target)],
    ...(connections === undefined ? {} : { connections }),
    ...(headersTimeoutMs === undefined ? {} : { headersTimeoutMs }),
  });
  const port = Number(new URL(server.url).port);
  const host = `127.0.0.1:${port}`;

  // `fetch` does not allow setting Host, Origin and Sec-Fetch-Site.
  const ask = (path: string, { method = "GET", headers = {}, body }: AskOptions = {}) =>
    new Promise<Answer>((resolve, reject) => {
      const request = sendRequest(
        { host: "127.0.0.1", port, path, method, headers, agent: false },
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("end", () => {
            const bytes = Buffer.concat(chunks);
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              bytes,
              json: () => JSON.parse(bytes.toString("utf8")) as Record<string, unknown>,
            });
          });
          response.on("error", reject);
        },
      );
      request.on("error", reject);
      request.end(body);
    });

  return {
    platform,
    receiver,
    host,
    directory,
    ask,
    askAsPage: (method, path, body, headers = {}) =>
      ask(path, {
        method,
        headers: {
          origin: `http://${host}`,
          "sec-fetch-site": "same-origin",
          "x-parley": "1",
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    async close() {
      await platform.stop();
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Follows a conversation's events, and resolves after the first one. `lists` are changes of the list. */
export async function followEvents(host: string, path: string, headers: Record<string, string> = {}) {
  const abort = new AbortController();
  const response = await fetch(`http://${host}${path}`, { headers, signal: abort.signal });
  if (!response.ok || response.body === null)
    throw new Error(`the stream returned status ${response.status}`);
  const chunks = response.body.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]();
  const events: PageEvent[] = [];
  const lists: ListStateView[] = [];
  /** What has come of the next event. A snapshot has megabytes, which are joined once. */
  let pieces: string[] = [];
  /** Returns all events so far, once there are enough. It then disconnects, unless `isLast` is false. */
  const until = async (isEnough: (events: readonly PageEvent[]) => boolean, isLast = true) => {
    while (!isEnough(events)) {
      const chunk = await chunks.next();
      if (chunk.done === true) throw new Error("the stream ended too early");
      const isEnd = `${pieces.at(-1)?.at(-1) ?? ""}${chunk.value}`.includes("\n\n");
      pieces.push(chunk.value);
      if (!isEnd) continue;
      let text = pieces.join("");
      for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
        const event = toEvent(text.slice(0, end));
        if (event?.event === "list") lists.push(event.data as ListStateView);
        else if (event !== undefined) events.push(event);
        text = text.slice(end + 2);
      }
      pieces = [text];
    }
    if (isLast) abort.abort();
    return events;
  };
  await until((all) => all.length > 0, false);
  return { until, lists };
}

/** Connects, and returns only the first event. */
export async function firstEvent(
  host: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<PageEvent> {
  const following = await followEvents(host, path, headers);
  return (await following.until(() => true))[0]!;
}

const { fromSnapshot } = await loadPageModule<{
  readonly fromSnapshot: (snapshot: SnapshotView) => { readonly items: readonly ItemView[] };
}>("thread-state");

/** Returns the items of a conversation as a page that connects shows them. */
export async function snapshotOf(host: string, path: string): Promise<readonly ItemView[]> {
  const first = await firstEvent(host, `${path}/events`);
  if (first.event !== "snapshot") throw new Error(`the stream began with ${first.event}`);
  return fromSnapshot(first.data as SnapshotView).items;
}

function toEvent(block: string): PageEvent | undefined {
  const fields = new Map(
    block
      .split("\n")
      .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)] as const),
  );
  const data = fields.get("data");
  if (data === undefined) return undefined;
  return { id: fields.get("id") ?? "", event: fields.get("event") ?? "", data: JSON.parse(data) };
}

/** A server-sent event with parsed data. */
export interface PageEvent {
  readonly id: string;
  readonly event: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests read it like any JSON
  readonly data: any;
}
