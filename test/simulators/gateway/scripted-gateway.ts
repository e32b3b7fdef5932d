import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createScaledClock } from "../../support/scaled-clock.ts";

/** Its events are apart in this process's own time, so that a busy machine does not change what they show. */
const clock = createScaledClock(1);

/** How a body is split into packets. */
export type Cut = "whole" | "bytes" | "in-characters" | "in-fields";

/** One answer of the gateway, valid or not. */
export interface ScriptedAnswer {
  /** The default is 200. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** The default is "whole". */
  readonly cut?: Cut;
  /** Whether the body ends, the socket is destroyed, or the body stays open. The default is `end`. */
  readonly after?: "end" | "break" | "hang";
  /** With `hang`, how often a comment line is sent, in milliseconds. */
  readonly pingEveryMs?: number;
  /** The time between two events of the body in milliseconds. By default they are sent at once. */
  readonly eventEveryMs?: number;
  /** Called when the last packet was written. */
  readonly onWritten?: () => void;
  /** Whether a status is sent. If it is `false`, the socket is destroyed before. The default is true. */
  readonly answers?: boolean;
}

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
  /** The hash of the body, which is present even if the body was not stored. */
  readonly sha256: string;
  readonly at: number;
  /** Resolves when the connection is closed, to true if that was before the end of the answer. */
  readonly leftEarly: Promise<boolean>;
}

export interface ScriptedGateway {
  readonly baseUrl: string;
  readonly requests: readonly SeenRequest[];
  /** Resolves when so many requests have arrived. */
  waitForRequests(count: number): Promise<void>;
  /** Returns the number of connections opened so far. */
  connections(): number;
  close(): Promise<void>;
}

/** A promise holds up its answer, and no other. */
type Script = (request: SeenRequest, index: number) => ScriptedAnswer | Promise<ScriptedAnswer>;

/**
 * Starts a loopback server with scripted answers. It rejects a wrong key, unknown paths, content types other
 * than JSON and multipart, and bodies that cannot be parsed.
 */
export async function startScriptedGateway(
  script: Script | ScriptedAnswer,
  options: { readonly apiKey?: string } = {},
): Promise<ScriptedGateway> {
  const requests: SeenRequest[] = [];
  const waiting: (() => void)[] = [];
  const timers = new Set<() => void>();
  const server = createServer((incoming, outgoing) => {
    void serve(incoming, outgoing);
  });

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { promise: leftEarly, resolve } = Promise.withResolvers<boolean>();
    outgoing.once("close", () => resolve(!outgoing.writableFinished));
    incoming.on("error", () => {});
    const body = await readBody(incoming);
    const request: SeenRequest = {
      method: incoming.method ?? "",
      path: incoming.url ?? "",
      headers: incoming.headers,
      body,
      sha256: createHash("sha256").update(body).digest("hex"),
      at: Date.now(),
      leftEarly,
    };
    requests.push(request);
    const refusal = refusalOf(request, options.apiKey);
    const answer = refusal ?? (typeof script === "function" ? script(request, requests.length - 1) : script);
    for (const wake of waiting.splice(0)) wake();
    await give(await answer, outgoing, timers);
  };

  let connections = 0;
  server.on("connection", () => connections++);
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    requests,
    async waitForRequests(count) {
      while (requests.length < count) await new Promise<void>((resolve) => waiting.push(resolve));
    },
    connections: () => connections,
    async close() {
      for (const stop of timers) stop();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function readBody(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
  } catch (error) {
    // A client may disconnect during its upload.
    if (!(error instanceof Error)) throw error;
  }
  return Buffer.concat(chunks);
}

function refusalOf(request: SeenRequest, apiKey: string | undefined): ScriptedAnswer | undefined {
  const refuse = (status: number, message: string): ScriptedAnswer => ({
    status,
    body: JSON.stringify({ error: { message, type: "invalid_request_error", param: null, code: null } }),
  });
  if (apiKey !== undefined && request.headers.authorization !== `Bearer ${apiKey}`)
    return refuse(401, "Incorrect API key provided");
  const type = request.headers["content-type"] ?? "";
  const length = request.headers["content-length"];
  if (length !== undefined && Number(length) !== request.body.length)
    return refuse(400, "the body has not the length it claims");
  switch (`${request.method} ${request.path}`) {
    case "GET /v1/models":
      return undefined;
    case "POST /v1/chat/completions":
    case "POST /v1/images/generations":
      if (type !== "application/json") return refuse(415, `content type ${type}`);
      return isJson(request.body) ? undefined : refuse(400, "the body is no JSON");
    case "POST /v1/audio/transcriptions":
      if (length === undefined) return refuse(411, "a length is required");
      return type.startsWith("multipart/form-data; boundary=")
        ? undefined
        : refuse(415, `content type ${type}`);
    default:
      return refuse(404, `no route ${request.method} ${request.path}`);
  }
}

function isJson(body: Buffer): boolean {
  try {
    JSON.parse(body.toString("utf8"));
    return true;
  } catch {
    return false;
  }
}

async function give(
  answer: ScriptedAnswer,
  outgoing: ServerResponse,
  timers: Set<() => void>,
): Promise<void> {
  if (answer.answers === false) {
    outgoing.destroy();
    return;
  }
  outgoing.socket?.setNoDelay(true);
  outgoing.writeHead(answer.status ?? 200, { "content-type": "text/event-stream", ...answer.headers });
  outgoing.flushHeaders();
  const body = Buffer.from(answer.body ?? "");
  const { eventEveryMs } = answer;
  const packets =
    eventEveryMs === undefined ? cutInto(body, answer.cut ?? "whole") : body.toString().split(/(?<=\n\n)/);
  for (const [index, packet] of packets.entries()) {
    if (eventEveryMs !== undefined && index > 0) await clock.sleep(eventEveryMs);
    if (outgoing.destroyed) return;
    outgoing.write(packet);
    // Each packet must be sent by itself. Together they would arrive as one.
    if (answer.cut !== undefined && answer.cut !== "whole")
      await new Promise((resolve) => setImmediate(resolve));
  }
  answer.onWritten?.();
  // An empty write resolves when everything before it was sent.
  if (answer.after === "break") outgoing.write("", () => outgoing.destroy());
  else if (answer.after !== "hang") outgoing.end();
  else if (answer.pingEveryMs !== undefined) {
    const stop = clock.every(answer.pingEveryMs, () => outgoing.write(": keep-alive\n\n"));
    timers.add(stop);
    outgoing.once("close", stop);
  }
}

/** Splits a body at positions that are difficult for readers. */
function cutInto(body: Uint8Array, cut: Cut): Uint8Array[] {
  const at: number[] = [];
  for (let index = 1; index < body.length; index++) {
    const byte = body[index] ?? 0;
    const isCut =
      cut === "bytes" ||
      // This cuts before every continuation byte of a UTF-8 character.
      (cut === "in-characters" && (byte & 0xc0) === 0x80) ||
      // This cuts between `da` and `ta:`, and inside the line end after it.
      (cut === "in-fields" &&
        ((byte === 0x74 && body[index - 1] === 0x61 && body[index + 1] === 0x61) || byte === 0x0a));
    if (isCut) at.push(index);
  }
  const packets: Uint8Array[] = [];
  let start = 0;
  for (const end of [...at, body.length]) {
    if (end > start) packets.push(body.subarray(start, end));
    start = end;
  }
  return packets;
}
