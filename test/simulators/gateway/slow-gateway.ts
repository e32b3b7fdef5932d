import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A received chat request. */
export interface SlowTurn {
  /** Each message as `role: text`, without system messages. */
  readonly messages: readonly string[];
  /** The `#<word>` labels of the unanswered user messages, in order. */
  readonly labels: readonly string[];
  /** Its API key, which identifies the client. */
  readonly from: string;
  readonly startedAt: number;
  /** Unix milliseconds, or `undefined` while the answer is running. */
  endedAt: number | undefined;
  /** Whether the client received the whole answer. */
  isWhole: boolean;
}

export interface SlowGateway {
  readonly baseUrl: string;
  readonly turns: readonly SlowTurn[];
  /** Sets whether answers stall after their first words. With a label, only the answer to it stalls. */
  setHanging(isHanging: boolean | string): void;
  /** Sets the milliseconds from the first to the last word, for answers that start from now on. */
  setDuration(ms: number): void;
  /** Sets the milliseconds before the first word, for answers that start from now on. The default is 0. */
  setThinking(ms: number): void;
  /** Answers the next `times` requests with a 503. */
  fail(times: number): void;
  close(): Promise<void>;
}

const pieces = 6;

/**
 * Starts a slow gateway. It answers `re <labels> .....` in several chunks. The text shows what was answered
 * and how often, and whether the answer is complete.
 */
export async function startSlowGateway(durationMs = 600): Promise<SlowGateway> {
  const turns: SlowTurn[] = [];
  const hanging = new Set<() => void>();
  let isHanging: boolean | string = false;
  let duration = durationMs;
  let thinkingMs = 0;
  let failing = 0;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const piece of request) chunks.push(piece as Buffer);
    if (request.url === "/v1/models") {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ object: "list", data: [{ id: "m", object: "model" }] }));
      return;
    }
    if (failing > 0) {
      failing -= 1;
      response.writeHead(503, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: "overloaded", type: "server_error" } }));
      return;
    }
    const from = request.headers.authorization?.replace("Bearer ", "") ?? "";
    const turn = toTurn(Buffer.concat(chunks).toString("utf8"), from);
    turns.push(turn);
    const pauseMs = duration / pieces;
    response.once("close", () => {
      turn.endedAt = Date.now();
      turn.isWhole = response.writableFinished;
    });
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    if (thinkingMs > 0) await new Promise((resolve) => setTimeout(resolve, thinkingMs));
    response.write(toChunk(`re ${turn.labels.join(" ")} `));
    for (let piece = 0; piece < pieces; piece++) {
      if (isHanging === true || turn.labels.some((label) => label === isHanging))
        await new Promise<void>((resolve) => hanging.add(resolve));
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      if (response.destroyed) return;
      response.write(toChunk("."));
    }
    response.end(`${toChunk("", "stop")}data: [DONE]\n\n`);
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      // A client may be killed during its request.
      response.destroy(error instanceof Error ? error : undefined);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    turns,
    setHanging(on) {
      isHanging = on;
      if (on !== false) return;
      for (const go of hanging) go();
      hanging.clear();
    },
    setDuration(ms) {
      duration = ms;
    },
    setThinking(ms) {
      thinkingMs = ms;
    },
    fail(times) {
      failing = times;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The notices that may follow a complete answer in a long conversation. */
const cutNotice = String.raw`(?:\n(?:-# )?Only the last \d+ messages were sent to the model; earlier ones were left out\.)?`;

/** Whether a text is a complete answer to a message with the label, without an error notice. */
export function answers(text: string, label: string): boolean {
  return new RegExp(`^re [^.]*${label}\\b[^.]* \\.{${pieces}}${cutNotice}$`).test(text.trim());
}

function toTurn(body: string, from: string): SlowTurn {
  const sent = JSON.parse(body) as { messages: { role: string; content: unknown }[] };
  const said = sent.messages.filter(({ role }) => role !== "system");
  const lastAnswer = said.findLastIndex(({ role }) => role === "assistant");
  return {
    messages: said.map(({ role, content }) => `${role}: ${wordsOf(content)}`),
    labels: said.slice(lastAnswer + 1).flatMap(({ content }) => wordsOf(content).match(/#\w+/g) ?? []),
    from,
    startedAt: Date.now(),
    endedAt: undefined,
    isWhole: false,
  };
}

function wordsOf(content: unknown): string {
  return typeof content === "string"
    ? content
    : (content as { text?: string }[]).map(({ text }) => text ?? "").join("");
}

function toChunk(content: string, finish: string | null = null): string {
  const choices = [{ index: 0, delta: { content }, finish_reason: finish }];
  return `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "m", choices })}\n\n`;
}
