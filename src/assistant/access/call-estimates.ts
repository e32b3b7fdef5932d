import type {
  ChatMessage,
  ChatRequest,
  ImageRequest,
  TranscriptionAnswer,
  TranscriptionRequest,
  BilledAmounts,
} from "../../core/gateway.ts";
import { longestAudioSeconds } from "../../media/recordings/longest-audio.ts";

/** How many tokens a message takes in addition to its text. */
const tokensPerMessage = 16;
/** The highest and the estimated number of tokens for a picture in a prompt. */
const tokensPerImage = { most: 4096, estimate: 1000 };
/** The highest number of pictures in a chat answer of a model that draws in chat. */
const maxImagesPerAnswer = 10;
/** Tokens of a drawn picture, for models that are billed by tokens. */
const tokensPerDrawnImage = 8192;
/** The size of speech in the lowest common quality, Opus at 6 kbit/s. */
const minAudioBytesPerSecond = 750;
/** The usual size of voice notes and compressed recordings at 32 kbit/s. */
const usualAudioBytesPerSecond = 4000;
/** The speed of slow speech, which makes the words of a highly compressed recording count. */
const maxCharsPerSecond = 10;
/** Tokens of a second of audio, for models that are billed by tokens. */
const tokensPerAudioSecond = 25;
const defaultMaxTokens = 1024;

/** An estimate of what a call can cost, made before the call. */
export interface WorstCase {
  /** The most that the call can use, which is reserved. */
  readonly most: BilledAmounts;
  /** What is charged if the call was sent and left, but nothing came back. */
  readonly whenLeft: BilledAmounts;
}

/** The part of its answer's reserve that a streamed call is charged if it is left while the model thinks. */
const thoughtShare = 0.25;

/** Assumes a token per byte of the prompt, all of `maxTokens`, and pictures if the model draws in chat. */
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
    // An answer without streaming is completed and billed even if nobody waits for it.
    whenLeft: { promptTokens, completionTokens: stream ? Math.ceil(maxTokens * thoughtShare) : maxTokens },
  };
}

/** Counts all pictures, because they are billed even if nobody waits for them. */
export function imageWorstCase({ prompt, count = 1 }: ImageRequest): WorstCase {
  const most = {
    images: count,
    promptTokens: Buffer.byteLength(prompt),
    completionTokens: count * tokensPerDrawnImage,
  };
  return { most, whenLeft: most };
}

/** Uses the size of the recording, because the length that a sender claims may be wrong. */
export function transcriptionWorstCase(request: TranscriptionRequest): WorstCase {
  const { bytes, durationMs, hint = "" } = request;
  const toAmounts = (audioSeconds: number): BilledAmounts => ({
    audioSeconds,
    promptTokens: Math.ceil(audioSeconds * tokensPerAudioSecond) + Buffer.byteLength(hint),
    completionTokens: Math.ceil(audioSeconds * tokensPerAudioSecond),
  });
  const longest = longestAudioSeconds(bytes, minAudioBytesPerSecond);
  const claimed = durationMs === undefined ? longest : Math.min(longest, durationMs / 1000);
  return { most: toAmounts(longest), whenLeft: toAmounts(claimed) };
}

/** Estimates a transcribed recording of unknown length by its size as usual speech and by its words. */
export function heardAmounts(
  { bytes }: TranscriptionRequest,
  { text, usage }: Pick<TranscriptionAnswer, "text" | "usage">,
): BilledAmounts {
  const longest = longestAudioSeconds(bytes, minAudioBytesPerSecond);
  const likely = Math.max(bytes.byteLength / usualAudioBytesPerSecond, text.length / maxCharsPerSecond);
  const audioSeconds = Math.min(longest, likely);
  return {
    audioSeconds,
    promptTokens: usage.promptTokens ?? Math.ceil(audioSeconds * tokensPerAudioSecond),
    completionTokens: usage.completionTokens ?? Math.ceil(Buffer.byteLength(text) / 4),
  };
}

/** What has arrived of a streamed answer that ended early. */
export interface PartialArrival {
  readonly bytes: number;
  readonly images: number;
  /** Whether a person or the caller left it, so that it may have been thought about unseen. */
  readonly isLeft: boolean;
}

/** The amounts of a streamed answer that ended early: the prompt and what has arrived. */
export function partialAmounts({ whenLeft }: WorstCase, arrival: PartialArrival): BilledAmounts {
  const { bytes, images, isLeft } = arrival;
  const { promptTokens = 0, completionTokens = 0 } = whenLeft;
  const isUnseen = isLeft && bytes === 0 && images === 0;
  return {
    promptTokens,
    completionTokens: isUnseen ? completionTokens : Math.ceil(bytes / 4),
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
