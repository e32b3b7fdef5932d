import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Exchange } from "../exchange.ts";
import { imagesOf, textOf, type ChatBody } from "../requests.ts";
import { countTokens, toTokens, toWords } from "./tokens.ts";

/** What a sandbox model has to say, before it is cut at `max_tokens`. */
export interface SandboxAnswer {
  readonly text: string;
  /** Data URIs. */
  readonly images?: readonly string[];
}

/** Tokens that the sandbox counts for a picture, in and out. */
const imageTokens = 256;
/** The longest that the pauses between words may take together. */
const maxPauseMs = 5000;

/** Sends the answer, whole or word by word, as the request asks. Images come after the text. */
export async function sendChatAnswer(
  exchange: Exchange,
  body: ChatBody,
  answer: SandboxAnswer,
  wordDelayMs: number,
): Promise<void> {
  const tokens = toTokens(answer.text);
  const isCut = tokens.length > body.max_tokens;
  const text = isCut ? tokens.slice(0, body.max_tokens).join("") : answer.text;
  const images = (answer.images ?? []).map((url) => ({ type: "image_url", image_url: { url } }));
  const usage = toUsage(body, Math.min(tokens.length, body.max_tokens) + images.length * imageTokens);
  const reason = isCut ? "length" : "stop";
  const head = {
    id: `chatcmpl-${randomUUID().replaceAll("-", "")}`,
    created: Math.floor(Date.now() / 1000),
    model: body.model,
    system_fingerprint: "parley-sandbox",
  };

  if (!body.stream) {
    const message = { role: "assistant", content: text, ...(images.length > 0 ? { images } : {}) };
    const choices = [{ index: 0, message, finish_reason: reason }];
    return exchange.sendJson(200, { ...head, object: "chat.completion", choices, usage }, sandboxHeader);
  }

  const stream = exchange.openStream(sandboxHeader);
  const send = (delta: unknown, finishReason: string | null): Promise<void> | undefined => {
    const choices = [{ index: 0, delta, finish_reason: finishReason }];
    return stream.send(JSON.stringify({ ...head, object: "chat.completion.chunk", choices }));
  };
  await send({ role: "assistant", content: "" }, null);
  const words = toWords(text);
  const pauseMs = Math.min(wordDelayMs, maxPauseMs / Math.max(words.length, 1));
  let owedMs = 0;
  for (const word of words) {
    await send({ content: word }, null);
    // Timers do not go below a millisecond, so short pauses are saved up.
    owedMs += pauseMs;
    if (owedMs >= 2) {
      await sleep(owedMs, undefined, { signal: exchange.signal });
      owedMs = 0;
    }
  }
  for (const image of images) await send({ images: [image] }, null);
  await send({}, reason);
  if (body.stream_options?.include_usage === true) {
    await stream.send(JSON.stringify({ ...head, object: "chat.completion.chunk", choices: [], usage }));
  }
  await stream.send("[DONE]");
  stream.end();
}

/** On every answer of the sandbox, for programs; people read it in the text and in the picture. */
export const sandboxHeader = { "x-parley-sandbox": "true" } as const;

function toUsage(body: ChatBody, completionTokens: number): Record<string, number> {
  const promptTokens = body.messages.reduce(
    (sum, message, index) =>
      sum + 1 + countTokens(textOf(message)) + imagesOf(message, index).length * imageTokens,
    0,
  );
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}
