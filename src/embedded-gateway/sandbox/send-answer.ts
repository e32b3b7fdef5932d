import { randomUUID } from "node:crypto";
import { sleep } from "../../support/sleep.ts";
import type { Exchange } from "../exchange.ts";
import { imagesOf, textOf, type ChatBody } from "../requests.ts";
import { countTokens, toTokens, toWords } from "./tokens.ts";

/** An answer of a sandbox model, before it is cut at `max_tokens`. */
export interface SandboxAnswer {
  readonly text: string;
  /** Data URIs. */
  readonly images?: readonly string[];
}

/** Tokens counted for an image, in prompts and answers. */
const imageTokens = 256;
/** Limit of all pauses between words together. */
const maxPauseMs = 5000;

/** Marks every answer of the sandbox for programs; people read it in the text and in the picture. */
export const sandboxHeader = { "x-parley-sandbox": "true" } as const;

/** Sends an answer at once, or streams it word by word when the request asks for that. Images follow the text. */
export async function sendAnswer(
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
  // Timers are no finer than a millisecond, so there are fewer and longer pauses.
  const wordsPerPause = Math.max(1, Math.round(2 / pauseMs));
  for (const [at, word] of words.entries()) {
    await send({ content: word }, null);
    if (pauseMs > 0 && at % wordsPerPause === 0) await sleep(pauseMs * wordsPerPause, exchange.signal);
  }
  for (const image of images) await send({ images: [image] }, null);
  await send({}, reason);
  if (body.stream_options?.include_usage === true) {
    await stream.send(JSON.stringify({ ...head, object: "chat.completion.chunk", choices: [], usage }));
  }
  await stream.send("[DONE]");
  stream.end();
}

function toUsage(body: ChatBody, completionTokens: number): Record<string, number> {
  const tokens = body.messages.map(
    (message, index) => 1 + countTokens(textOf(message)) + imagesOf(message, index).length * imageTokens,
  );
  const promptTokens = tokens.reduce((sum, count) => sum + count, 0);
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}
