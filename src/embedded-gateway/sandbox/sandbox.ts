import { randomUUID, createHash } from "node:crypto";
import { decodeInTurn, loadSharp, openPicture } from "../../media/image.ts";
import type { CutInput, CutMessage } from "../../media/recordings/cut-into-parts.ts";
import { sniff } from "../../media/sniff.ts";
import { runBoundedProcess } from "../../support/bounded-worker.ts";
import { sleep } from "../../support/clock.ts";
import { createKeyedQueue } from "../../support/queues.ts";
import { estimateTokens, tokensPerImage } from "../../wire/prices.ts";
import { toDataUri, toPicturePart } from "../../wire/pictures.ts";
import { type ApiError, invalidRequest, unsupportedModel, type Exchange } from "../api-error.ts";
import type { LoadImage, PictureShelf } from "../load-image.ts";
import { type ChatBody, type ImageBody, type TranscriptionFields, imagesOf, textOf } from "../requests.ts";
import { answerChat, withoutAuthor } from "./chat-model.ts";

interface SandboxOptions {
  /** The pause between two words of a streamed answer, in milliseconds. */
  readonly wordDelayMs: number;
  readonly shelf: PictureShelf;
  imageLoaderFor(exchange: Exchange): LoadImage;
}

/** Marks every answer of the sandbox for programs. People read it in the text and in the picture. */
const sandboxHeader = { "x-parley-sandbox": "true" } as const;
/** The limits of a drawn picture's edges, in pixels. */
const edgePx = { min: 16, max: 2048 } as const;

/**
 * The sandbox models behind the gateway's operations. They compute everything in this process, and their
 * failures are ApiErrors. Libraries are loaded on first use.
 */
export function createSandbox(options: SandboxOptions) {
  return {
    chat: async (exchange: Exchange, body: ChatBody): Promise<void> => {
      const loadImage = options.imageLoaderFor(exchange);
      const answer = {
        "sandbox/chat": async () => ({
          text: await answerChat(body, (image) => loadImage(image, describePicture)),
        }),
        "sandbox/image": () => answerWithPicture(body, loadImage),
      }[body.model];
      if (answer === undefined) throw unsupportedModel(body.model, "chat");
      await sendAnswer(exchange, body, await answer(), options.wordDelayMs);
    },

    images: async (exchange: Exchange, body: ImageBody): Promise<void> => {
      if (body.model !== "sandbox/image") throw unsupportedModel(body.model, "generate images");
      const size = toPixels(body.size);
      const data: object[] = [];
      for (let index = 0; index < body.n; index += 1) {
        exchange.signal.throwIfAborted();
        const bytes = await drawCard(body.prompt, size, index);
        const image =
          body.response_format === "b64_json"
            ? { b64_json: bytes.toString("base64") }
            : {
                url: exchange.origin + options.shelf.put({ bytes, mediaType: "image/png", extension: "png" }),
              };
        data.push({ ...image, revised_prompt: `Sandbox drawing, made by rules: ${body.prompt}` });
      }
      exchange.sendJson(200, { created: Math.floor(Date.now() / 1000), data }, sandboxHeader);
    },

    transcribe: async (exchange: Exchange, fields: TranscriptionFields, bytes: Buffer): Promise<void> => {
      if (fields.model !== "sandbox/transcribe") throw unsupportedModel(fields.model, "transcribe");
      const { seconds, description: text } = await describeRecording(bytes, fields, exchange.signal);
      if (fields.response_format === "text") {
        const headers = { "content-type": "text/plain; charset=utf-8", ...sandboxHeader };
        return exchange.sendBytes(200, text, headers);
      }
      const usage = seconds === undefined ? {} : { duration: seconds, usage: { type: "duration", seconds } };
      exchange.sendJson(200, { text, ...usage }, sandboxHeader);
    },
  };
}

/** @throws ApiError 400 when an edge is outside the limits */
function toPixels(size: string | null | undefined): Size {
  const [widthPx = 1024, heightPx = 1024] = (size ?? "1024x1024").split("x").map(Number);
  if ([widthPx, heightPx].some((edge) => edge < edgePx.min || edge > edgePx.max)) {
    const message = `Invalid 'size': sandbox/image draws edges between ${edgePx.min} and ${edgePx.max} pixels.`;
    throw invalidRequest(message, { param: "size", code: "invalid_value" });
  }
  return { widthPx, heightPx };
}

/** An answer of a sandbox model, before it is cut at `max_tokens`. */
interface SandboxAnswer {
  readonly text: string;
  /** A data URI. */
  readonly image?: string;
}

/** Makes the chat answer of `sandbox/image`: a card with the words of the last message. */
async function answerWithPicture(body: ChatBody, loadImage: LoadImage): Promise<SandboxAnswer> {
  const index = body.messages.findLastIndex(({ role }) => role === "user");
  const message = body.messages[index];
  for (const image of message === undefined ? [] : imagesOf(message, index))
    await loadImage(image, describePicture);
  const prompt = message === undefined ? "" : withoutAuthor(textOf(message).slice(0, 4000));
  const png = await drawCard(prompt, { widthPx: 1024, heightPx: 1024 });
  return {
    text: "*Parley sandbox: drawn by rules, no image model is connected.*",
    image: toDataUri("image/png", png),
  };
}

/** The tokens counted for an image of an answer. */
const imageTokens = 256;
/** A longer text is sent in pieces of several words, so that it does not take minutes. */
const maxPieces = 500;

/** Sends an answer at once, or word by word when the request asks for that. The image follows the text. */
async function sendAnswer(
  exchange: Exchange,
  body: ChatBody,
  answer: SandboxAnswer,
  wordDelayMs: number,
): Promise<void> {
  const tokens = toTokens(cutAtStop(answer.text, body["stop"]));
  const text = tokens.slice(0, body.max_tokens).join("");
  const reason = tokens.length > body.max_tokens ? "length" : "stop";
  const images = answer.image === undefined ? [] : [toPicturePart(answer.image)];
  const indexes = Array.from({ length: body.n ?? 1 }, (_, index) => index);
  const answerTokens = Math.min(tokens.length, body.max_tokens) + images.length * imageTokens;
  const [promptTokens, completionTokens] = [estimatePromptTokens(body), answerTokens * indexes.length];
  const usage = {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
  const head = {
    id: `chatcmpl-${randomUUID().replaceAll("-", "")}`,
    created: Math.floor(Date.now() / 1000),
    model: body.model,
    system_fingerprint: "parley-sandbox",
  };

  if (!body.stream) {
    const message = { role: "assistant", content: text, ...(images.length > 0 ? { images } : {}) };
    const choices = indexes.map((index) => ({ index, message, finish_reason: reason }));
    return exchange.sendJson(200, { ...head, object: "chat.completion", choices, usage }, sandboxHeader);
  }

  const stream = exchange.openStream(sandboxHeader);
  const send = (delta: unknown, finishReason: string | null = null): Promise<void> | undefined => {
    const choices = indexes.map((index) => ({ index, delta, finish_reason: finishReason }));
    return stream.send(JSON.stringify({ ...head, object: "chat.completion.chunk", choices }));
  };
  await send({ role: "assistant", content: "" });
  const words = toWords(text);
  const size = Math.ceil(words.length / maxPieces);
  for (let at = 0; at < words.length; at += size) {
    await send({ content: words.slice(at, at + size).join("") });
    if (wordDelayMs > 0) await sleep(wordDelayMs, exchange.signal);
  }
  if (images.length > 0) await send({ images });
  await send({}, reason);
  if (body.stream_options?.include_usage === true)
    await stream.send(JSON.stringify({ ...head, object: "chat.completion.chunk", choices: [], usage }));
  await stream.send("[DONE]");
  stream.end();
}

/** Returns the text before the first of the request's `stop` texts. */
function cutAtStop(text: string, stop: unknown): string {
  const ends = (Array.isArray(stop) ? (stop as unknown[]) : [stop]).slice(0, 16).flatMap((one) => {
    const at = typeof one === "string" && one !== "" ? text.indexOf(one) : -1;
    return at === -1 ? [] : [at];
  });
  return text.slice(0, Math.min(text.length, ...ends));
}

/** The most characters in one token. */
const tokenChars = 16;
/** The first tokens of a text are single words. */
const singleWords = 64;

/**
 * Splits a text into the sandbox's tokens. The first are single words, so that a small `max_tokens` cuts
 * where a real model would at the latest. The others are as many whole words as fit 16 characters, so that an
 * answer of 9,000 characters fits the default limit of 1,024 tokens. Longer words are cut. Joined, the tokens
 * are the text again.
 */
export function toTokens(text: string): string[] {
  const tokens: string[] = [];
  for (const word of toWords(text)) {
    const last = tokens.at(-1);
    if (last === undefined || tokens.length <= singleWords || last.length + word.length > tokenChars)
      tokens.push(word);
    else tokens[tokens.length - 1] = last + word;
  }
  return tokens;
}

/** Splits words with the white space before them, no longer than a token. Surrogate pairs stay whole. */
export function toWords(text: string): string[] {
  return text.match(/\s{0,15}(?:[^\s\uD800-\uDFFF]|[\uD800-\uDBFF][\uDC00-\uDFFF]){1,14}|[^]{1,2}/g) ?? [];
}

/** A recording is read in its own process, since hostile files make libraries loop. These limits end it. */
const readLimits = { timeoutMs: 30_000, maxHeapMb: 256, maxGrowthBytes: 500_000_000 };
/** One recording at a time limits the memory and leaves a processor to others. */
const queue = createKeyedQueue();
const worker = new URL("../../media/recordings/cut-worker.ts", import.meta.url);
/** A recording whose headers do not tell its length is decoded up to here. */
const maxSeconds = 900;

/** The names of containers that are no abbreviation in capitals. */
const containers: Readonly<Record<string, string>> = { ogg: "Ogg", mp4: "MP4 (M4A)", webm: "WebM" };

/**
 * Says how long a recording is. File names and claimed types are ignored.
 * @throws ApiError 400 for `file` that is no audio, or audio that cannot be read
 */
export async function describeRecording(
  bytes: Buffer,
  { language, prompt = "" }: TranscriptionFields,
  signal: AbortSignal,
): Promise<{ seconds: number | undefined; description: string }> {
  const file = sniff(bytes);
  if (file.kind === "empty") throw unreadable("the audio file is empty", "empty_file");
  if (file.kind !== "audio") throw unreadable(`it holds ${file.mediaType}, no audio`, "invalid_audio");
  const { mediaType, container = "" } = file;
  let seconds: number | undefined;
  const onMessage = async (posted: unknown): Promise<void> => {
    const message = posted as CutMessage;
    if (message.kind === "whole") ({ seconds } = message);
    if (message.kind === "part") seconds = message.part.fromSeconds + message.part.seconds;
  };
  try {
    await queue.run("read", async () => {
      // It is cut only where it must be decoded.
      const whole = { wholeSeconds: Infinity, wholeBytes: Infinity, partSeconds: maxSeconds, maxSeconds };
      const input: Omit<CutInput, "bytes"> & { readonly bytes: Buffer } = {
        bytes,
        mediaType,
        container,
        ...whole,
      };
      await runBoundedProcess(worker, input, readLimits, onMessage, signal);
    });
    if (seconds === 0) throw new Error("no samples");
  } catch (error) {
    signal.throwIfAborted();
    throw unreadable("the audio cannot be decoded", "invalid_audio", error);
  }
  const length = seconds === undefined ? "of unknown length" : `${seconds.toFixed(1)} s`;
  const lines = [
    "[Parley sandbox: I measure sound and cannot recognise words. Connect a transcription model for a transcript.]",
    `Recording: ${containers[container] ?? container.toUpperCase()}, ${length}, ${toSize(bytes.length)}.`,
    ...(language === undefined ? [] : [`Language given: ${language}.`]),
    ...(prompt === "" ? [] : [`Hint given: “${prompt.slice(0, 500)}”.`]),
  ];
  return { seconds, description: lines.join("\n") };
}

function unreadable(problem: string, code: string, cause?: unknown): ApiError {
  return invalidRequest(`Invalid 'file': ${problem}.`, { param: "file", code, cause });
}

/** A size in pixels. */
export interface Size {
  readonly widthPx: number;
  readonly heightPx: number;
}

const colours = /\b(?:red|orange|yellow|green|teal|blue|navy|purple|pink|brown|white|gr[ae]y|black)\b/i;

/** Returns the first colour that a text names, as a name of CSS. */
function colourIn(text: string): string | undefined {
  return colours.exec(text.slice(0, 2000))?.[0].toLowerCase();
}

/**
 * Draws a PNG card with the prompt's words and the sandbox label, in the colour that the prompt names or else
 * in its own.
 * @param index the position among several pictures of one prompt, which differ in the number of dots
 */
async function drawCard(prompt: string, size: Size, index = 0): Promise<Buffer> {
  const hue = createHash("sha256").update(prompt).digest().readUInt16BE() % 360;
  const height = heightOf(size);
  const dots = Array.from(
    { length: index + 1 },
    (_, at) => `<circle cx="${500 + (at - index / 2) * 60}" cy="${height - 50}" r="20" fill="#fff"/>`,
  );
  const background = `<rect width="100%" height="100%" fill="${colourIn(prompt) ?? `hsl(${hue} 45% 45%)`}"/>`;
  const sharp = await loadSharp();
  return sharp(toSvg(size, background + dots.join("") + toLines(prompt, height / 2)))
    .png()
    .toBuffer();
}

/** Returns the height of the canvas, which is always 1000 units wide. */
function heightOf({ widthPx, heightPx }: Size): number {
  return (1000 * heightPx) / widthPx;
}

/** Makes an SVG with the sandbox label. */
function toSvg(size: Size, content: string): Buffer {
  const height = heightOf(size);
  const box = `viewBox="0 0 1000 ${height}" preserveAspectRatio="none"`;
  return Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size.widthPx}" height="${size.heightPx}" ${box}>${content}${label(height)}</svg>`,
  );
}

const lineChars = 26;
const maxLines = 6;

/** Sets the beginning of a text in lines, on a dark band around `middle`. */
export function toLines(text: string, middle: number): string {
  const words = text.slice(0, 500).replaceAll(/\s+/g, " ").trim();
  const all = words.match(new RegExp(`[^]{1,${lineChars}}(?: |$)|[^]{1,${lineChars}}`, "g")) ?? [];
  const lines = all.slice(0, maxLines);
  if (all.length > maxLines) lines.push("…");
  const top = middle - lines.length * 32;
  const spans = lines.map(
    (line, at) => `<text x="500" y="${top + 50 + at * 64}">${escapeXml(line.trim())}</text>`,
  );
  return `<rect y="${top - 20}" width="1000" height="${lines.length * 64 + 40}" fill="#10131a" fill-opacity="0.62"/><g text-anchor="middle" font-family="sans-serif" font-size="52" fill="#fff">${spans.join("")}</g>`;
}

/** Escapes text for SVG and drops what XML 1.0 cannot contain: control characters and lone surrogates. */
function escapeXml(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\uFFFE\uFFFF]/gu, "")
    .replaceAll(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);
}

/** Spells "SANDBOX" in pixels, since the label must be readable on a machine without fonts. */
const labelRows = [
  "####..##..#..#.###..###...##..#..#",
  "#....#..#.##.#.#..#.#..#.#..#.#..#",
  "####.####.#.##.#..#.###..#..#..##.",
  "...#.#..#.#..#.#..#.#..#.#..#.#..#",
  "####.#..#.#..#.###..###...##..#..#",
];

function label(height: number): string {
  const dots = labelRows.flatMap((row, y) =>
    Array.from(row, (dot, x) => (dot === "#" ? `M${x * 4} ${y * 4}h4v4h-4z` : "")),
  );
  const scale = Math.min(1, height / 120);
  return `<g transform="translate(${1000 - 180 * scale} ${16 * scale}) scale(${scale})" fill="#fff"><rect width="160" height="44" rx="10" fill="#10131a" fill-opacity="0.62"/><path transform="translate(12 12)" d="${dots.join("")}"/></g>`;
}

/**
 * Describes what can be seen of a picture without understanding it: format, size in pixels and bytes, frames,
 * and its colour on average.
 * @throws Error of the decoder
 */
function describePicture(bytes: Buffer): Promise<string> {
  return decodeInTurn("sandbox", async () => {
    const image = await openPicture(bytes);
    const { autoOrient, format, pageHeight, pages = 1 } = await image.metadata();
    const sample = image.flatten({ background: "#fff" }).resize(1, 1, { fit: "fill" }).toColourspace("srgb");
    const colour = (await sample.raw().toBuffer()).toString("hex", 0, 3);
    const size = `${autoOrient.width} × ${pageHeight ?? autoOrient.height} pixels, ${toSize(bytes.length)}`;
    const frames = pages < 2 ? "" : `, ${pages} frames`;
    return `**${format.toUpperCase()}**, ${size}${frames}, on average #${colour}.`;
  });
}

/** Formats a size in bytes for people: "12.3 kB". */
function toSize(bytes: number): string {
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** Estimates the tokens of a prompt: a quarter of its bytes, and the same for every image. */
function estimatePromptTokens({ messages }: ChatBody): number {
  return messages.reduce((sum, message, index) => {
    const images = imagesOf(message, index).length;
    return sum + estimateTokens(textOf(message)) + images * tokensPerImage;
  }, 0);
}
