import { isSparse, longestAudioSeconds } from "../media/recordings/longest-audio.ts";
import { estimateTokens, tokensPerImage } from "../wire/prices.ts";
import type { WorstCase } from "./router.ts";
import { imagesOf, textOf, type ChatBody, type ImageBody, type TranscriptionFields } from "./requests.ts";

/** The most images in one chat answer. Further ones are dropped. */
export const maxImagesPerAnswer = 10;
/** The most tokens of an image in a prompt. */
const maxTokensPerImage = 4096;
/** The tokens of a generated image, for models that are billed by tokens. */
export const tokensPerGeneratedImage = 8192;
/** Compressed speech has at least 8 kbit/s. */
const minAudioBytesPerSecond = 1000;
/** The tokens of a second of audio, for models that are billed by tokens. */
const tokensPerAudioSecond = 25;

/** Returns a chat's worst case: a token for each byte, and all of `max_tokens` in each of `n` answers. */
export function chatWorstCase(body: ChatBody): WorstCase {
  const count = body.n ?? 1;
  const completionTokens = count * (body.max_tokens + reasoningTokens(body));
  const promptTokens = estimatePromptTokens(body);
  const { messages, ...rest } = body;
  let most = JSON.stringify(rest).length;
  for (const [index, message] of messages.entries()) {
    most += JSON.stringify({ ...message, content: "" }).length + Buffer.byteLength(textOf(message));
    most += imagesOf(message, index).length * maxTokensPerImage;
  }
  const prompt = { promptTokens, completionTokens: 0 };
  return {
    most: { promptTokens: most, completionTokens, images: count * maxImagesPerAnswer },
    // Upstreams complete and bill an answer that is not streamed, whoever waits for it.
    whenLeft: body.stream ? prompt : { promptTokens, completionTokens },
    whenBroken: prompt,
  };
}

/** Estimates the tokens of a prompt: a quarter of its bytes, and the same for every image. */
export function estimatePromptTokens({ messages }: ChatBody): number {
  return messages.reduce((sum, message, index) => {
    const images = imagesOf(message, index).length;
    return sum + estimateTokens(textOf(message)) + images * tokensPerImage;
  }, 0);
}

/** Returns the worst case of an image generation: all images, billed even when nobody waits. */
export function imageWorstCase({ n, prompt }: ImageBody): WorstCase {
  const most = {
    images: n,
    promptTokens: Buffer.byteLength(prompt),
    completionTokens: n * tokensPerGeneratedImage,
  };
  return { most, whenLeft: most, whenBroken: most };
}

/** Returns the worst case of a transcription, by the longest that its recording can be. */
export function transcriptionWorstCase({ prompt = "" }: TranscriptionFields, bytes: Buffer): WorstCase {
  const audioSeconds = longestAudioSeconds(bytes, minAudioBytesPerSecond);
  const tokens = Math.ceil(audioSeconds * tokensPerAudioSecond);
  const most = {
    audioSeconds,
    promptTokens: tokens + Buffer.byteLength(prompt),
    completionTokens: tokens,
  };
  const mustFit = isSparse(bytes, minAudioBytesPerSecond);
  return { most, whenLeft: most, whenBroken: most, ...(mustFit ? { mustFit } : {}) };
}

/** Returns the reasoning tokens, which some services count apart from `max_tokens`. */
function reasoningTokens(body: ChatBody): number {
  const { reasoning } = body as { reasoning?: { max_tokens?: unknown } | null };
  const tokens = reasoning?.max_tokens;
  return typeof tokens === "number" && tokens > 0 ? tokens : 0;
}
