import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** How the gateway answers. It may be changed between turns. */
export interface Script {
  /** The pause before the first token, in milliseconds. */
  thinkMs: number;
  tokens: number;
  /** The pause between tokens, in milliseconds. With 0 all are written at once. */
  gapMs: number;
}

/** The gateway of {@link startScriptedGateway}. */
export interface ScriptedGateway {
  readonly url: string;
  readonly script: Script;
  /** The `performance.now()` when the request of a turn arrived, by turn number. */
  readonly askedAt: Map<number, number>;
  /** The `performance.now()` right before the first token of a turn was written, by turn number. */
  readonly firstTokenAt: Map<number, number>;
  /** The same for the last token. */
  readonly lastTokenAt: Map<number, number>;
  /** The number of whole answers so far. */
  answered(): number;
  close(): Promise<void>;
}

/** The id of the only model. */
export const modelId = "bench/echo";

/** Texts that identify a turn in requests and in what people see. */
export const marks = {
  question: (turn: number): string => `question ${turn} of the bench`,
  first: (turn: number): string => `first${turn}.`,
  last: (turn: number): string => `last${turn}.`,
};

/**
 * Starts an OpenAI-compatible gateway that streams a scripted answer to the last question in the request. The
 * first and the last word contain the turn's number, or 0 without one. `onRequest` is called with each body.
 */
export async function startScriptedGateway(
  onRequest: (body: string) => void = () => undefined,
): Promise<ScriptedGateway> {
  const script: Script = { thinkMs: 0, tokens: 50, gapMs: 2 };
  const askedAt = new Map<number, number>();
  const firstTokenAt = new Map<number, number>();
  const lastTokenAt = new Map<number, number>();
  let answered = 0;
  const server = createServer((request, response) => {
    if (request.method === "GET") {
      const model = { id: modelId, object: "model", created: 1_700_000_000, owned_by: "bench" };
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ object: "list", data: [model] }));
      return;
    }
    const arrivedAt = performance.now();
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      onRequest(body);
      const turn = Number([...body.matchAll(/question (\d+) of the bench/g)].at(-1)?.[1] ?? 0);
      askedAt.set(turn, arrivedAt);
      void answer(turn, response);
    });
  });

  async function answer(turn: number, response: ServerResponse): Promise<void> {
    const { thinkMs, tokens, gapMs } = script;
    const send = (delta: object, rest: object = {}): void => {
      const choice = { index: 0, delta, finish_reason: null, ...rest };
      response.write(`data: ${JSON.stringify({ ...envelope(turn), choices: [choice] })}\n\n`);
    };
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    response.flushHeaders();
    if (thinkMs > 0) await delay(thinkMs);
    firstTokenAt.set(turn, performance.now());
    send({ role: "assistant", content: marks.first(turn) });
    for (let token = 2; token < tokens; token += 1) {
      if (gapMs > 0) await delay(gapMs);
      send({ content: ` word${token}` });
    }
    lastTokenAt.set(turn, performance.now());
    send({ content: ` ${marks.last(turn)}` });
    send({}, { finish_reason: "stop" });
    const usage = { prompt_tokens: 100, completion_tokens: tokens, total_tokens: 100 + tokens };
    response.write(`data: ${JSON.stringify({ ...envelope(turn), choices: [], usage })}\n\n`);
    response.end("data: [DONE]\n\n");
    answered += 1;
  }

  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    script,
    askedAt,
    firstTokenAt,
    lastTokenAt,
    answered: () => answered,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

function envelope(turn: number): object {
  return { id: `chatcmpl-${turn}`, object: "chat.completion.chunk", created: 1_700_000_000, model: modelId };
}
