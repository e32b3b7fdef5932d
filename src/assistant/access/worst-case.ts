import type {
  ChatMessage,
  ChatRequest,
  ImageRequest,
  TranscriptionAnswer,
  TranscriptionRequest,
} from "../../core/gateway.ts";
import type { BilledAmounts } from "../../core/model-price.ts";
import { longestAudioSeconds } from "../../media/recordings/longest-audio.ts";

/** Tokens that a message takes beside its text. */
const tokensPerMessage = 16;
/** Tokens of a picture in a prompt: at most, and as an estimate. */
const tokensPerImage = { most: 4096, estimate: 1000 };
/** Pictures in one chat answer, where a model draws in chat. */
const maxImagesPerAnswer = 10;
/** Tokens of a drawn picture, for models that are billed by tokens. */
const tokensPerDrawnImage = 8192;
/** Of speech in the lowest common quality (Opus at 6 kbit/s). */
const minAudioBytesPerSecond = 750;
/** Of voice notes and compressed recordings: 32 kbit/s. */
const usualAudioBytesPerSecond = 4000;
/** Of slow speech, so that words of a highly compressed recording count. */
const maxCharsPerSecond = 10;
/** Tokens of a second of audio, for models that are billed by tokens. */
const tokensPerAudioSecond = 25;
const defaultMaxTokens = 1024;

/** What a call can cost, known before it is made. */
export interface WorstCase {
  /** The most that it can use. It is reserved. */
  readonly most: BilledAmounts;
  /** What is charged of a call that was sent and of which nothing came back. */
  readonly whenLeft: BilledAmounts;
}

/** A token for each byte of the prompt, all of `maxTokens`, and pictures where the model draws in chat. */
export function chatWorstCase(request: ChatRequest, drawsInChat: boolean): WorstCase {
  const { messages, maxTokens = defaultMaxTokens, stream = true } = request;
  const { textBytes, images } = sizeOf(messages);
  const promptTokens = Math.ceil(textBytes / 4) + images * tokensPerImage.estimate;
  return {
    most: {
      promptTokens: textBytes + messages.length * tokensPerMessage + images * tokensPerImage.most,
      completionTokens: maxTokens + (drawsInChat ? tokensPerDrawnImage : 0),
      ...(drawsInChat ? { images: maxImagesPerAnswer } : {}),
    },
    // An answer that is not streamed is completed and billed, whoever waits for it.
    whenLeft: { promptTokens, completionTokens: stream ? 0 : maxTokens },
  };
}

/** All pictures: they are billed also when nobody waits for them. */
export function imageWorstCase({ prompt, count = 1 }: ImageRequest): WorstCase {
  const most = {
    images: count,
    promptTokens: Buffer.byteLength(prompt),
    completionTokens: count * tokensPerDrawnImage,
  };
  return { most, whenLeft: most };
}

/** By the size of the recording: the length that a sender claims is not believed. */
export function transcriptionWorstCase(request: TranscriptionRequest): WorstCase {
  const { bytes, durationMs, hint = "" } = request;
  const toAmounts = (audioSeconds: number): BilledAmounts => ({
    audioSeconds,
    promptTokens: Math.ceil(audioSeconds * tokensPerAudioSecond) + Buffer.byteLength(hint),
    completionTokens: Math.ceil(audioSeconds * tokensPerAudioSecond),
  });
  const longest = longestAudioSeconds(bytes.byteLength, bytes, minAudioBytesPerSecond);
  const claimed = durationMs === undefined ? longest : Math.min(longest, durationMs / 1000);
  return { most: toAmounts(longest), whenLeft: toAmounts(claimed) };
}

/** A recording that was transcribed and whose length nobody said: by its size as usual speech, and by the words heard. */
export function heardAmounts(
  { bytes }: TranscriptionRequest,
  { text, usage }: Pick<TranscriptionAnswer, "text" | "usage">,
): BilledAmounts {
  const longest = longestAudioSeconds(bytes.byteLength, bytes, minAudioBytesPerSecond);
  const likely = Math.max(bytes.byteLength / usualAudioBytesPerSecond, text.length / maxCharsPerSecond);
  const audioSeconds = Math.min(longest, likely);
  return {
    audioSeconds,
    promptTokens: usage.promptTokens ?? Math.ceil(audioSeconds * tokensPerAudioSecond),
    completionTokens: usage.completionTokens ?? Math.ceil(Buffer.byteLength(text) / 4),
  };
}

/** A streamed answer that ended early: the prompt, and what has arrived. */
export function partialAmounts(worst: WorstCase, arrivedBytes: number, images: number): BilledAmounts {
  const { promptTokens = 0, completionTokens = 0 } = worst.whenLeft;
  return {
    promptTokens,
    completionTokens: Math.max(completionTokens, Math.ceil(arrivedBytes / 4)),
    ...(images === 0 ? {} : { images }),
  };
}

function sizeOf(messages: readonly ChatMessage[]): { textBytes: number; images: number } {
  let textBytes = 0;
  let images = 0;
  for (const { content } of messages) {
    if (typeof content === "string") textBytes += Buffer.byteLength(content);
    else
      for (const part of content) {
        if (part.kind === "text") textBytes += Buffer.byteLength(part.text);
        else images += 1;
      }
  }
  return { textBytes, images };
}
