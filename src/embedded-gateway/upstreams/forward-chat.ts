import {
  answerLimitsOf,
  createAnswerMeter,
  type AnswerLimits,
  type AnswerPart,
  createFrameReader,
  type Frame,
  inSlices,
} from "../../wire/stream-frames.ts";
import { sniff } from "../../media/sniff.ts";
import type { ChatBody } from "../requests.ts";
import type { Target } from "../router.ts";
import {
  toBrokenFailure,
  type UpstreamAnswer,
  UpstreamFailure,
  toAnswerHeaders,
  tryTargets,
  type Forwarding,
} from "./upstream-client.ts";
import { isFields, readError } from "../../wire/failures.ts";
import { isDataUri, notInDataUri, pictureUriMark, pictureUrlOf, toDataUri } from "../../wire/pictures.ts";
import { createChoicePicker } from "../../wire/completion-chunk.ts";
import type { Log } from "../../core/telemetry.ts";
import type { SseWriter } from "../../support/http/event-stream.ts";
import { sendLast } from "../api-error.ts";

/**
 * Forwards a chat request. Retries and fallbacks happen only before the first event. The answer's `model` is
 * the public id of the model that answered.
 */
export async function forwardChat(forwarding: Forwarding, body: ChatBody): Promise<void> {
  const { exchange } = forwarding;
  if (body.stream) return forwardStream(forwarding, body);

  const limits = limitsOf(body);
  const { target, answer, json } = await tryTargets(forwarding, false, async (target) => {
    const answer = await ask(forwarding, target, body);
    return { target, answer, json: await answer.json(maxWholeBytes(limits)) };
  });
  const choices: unknown = json["choices"];
  cutAnswer(Array.isArray(choices) ? choices : [], createAnswerMeter(limits));
  exchange.sendJson(200, { ...json, model: target.publicId }, toAnswerHeaders(target, answer.headers));
}

async function forwardStream(forwarding: Forwarding, body: ChatBody): Promise<void> {
  const { exchange, log } = forwarding;
  // Proxies close silent connections, so the stream is opened early. From then on errors are events.
  const early = setTimeout(() => exchange.openStream(), forwarding.pingMs);
  const limits = limitsOf(body);
  try {
    await tryTargets(forwarding, false, async (target) => {
      const answer = await ask(forwarding, target, body);
      await pumpStream(answer, {
        target,
        signal: exchange.signal,
        log,
        limits,
        maxEventBytes: maxWholeBytes(limits),
        open: () => {
          clearTimeout(early);
          return exchange.openStream(toAnswerHeaders(target, answer.headers));
        },
        wantsUsage: body.stream_options?.include_usage === true,
        hasOneChoice: (body.n ?? 1) === 1,
      });
    });
  } finally {
    clearTimeout(early);
  }
}

/** The most images in one chat answer. Further ones are dropped. */
const maxImagesPerAnswer = 10;
/** The limit of all images of one answer together, as base64. */
const maxImageBytes = 48 * 1024 * 1024;

function limitsOf(body: ChatBody): AnswerLimits {
  return answerLimitsOf((body.n ?? 1) * body.max_tokens, maxImageBytes);
}

/** Returns the limit of an answer in one piece. */
function maxWholeBytes({ textChars, asideChars }: AnswerLimits): number {
  return Math.min((textChars + asideChars) * 2 + maxImageBytes, 128 * 1024 * 1024);
}

async function ask(forwarding: Forwarding, target: Target, body: ChatBody): Promise<UpstreamAnswer> {
  const { exchange } = forwarding;
  const options =
    body.stream && target.upstream.streamUsage
      ? { stream_options: { ...body.stream_options, include_usage: true } }
      : {};
  const { max_tokens: limit, ...rest } = body;
  // Newer models reject the older name of the limit, so the name that the client used is kept.
  const limits =
    typeof body["max_completion_tokens"] === "number"
      ? { max_completion_tokens: limit }
      : { max_tokens: limit };
  const messages = await withImages(forwarding, target, body.messages);
  return forwarding.clientOf(target).request({
    operation: "chat",
    path: "/chat/completions",
    ...(body.stream && { accept: "text/event-stream" }),
    body: { ...rest, ...limits, ...options, messages, model: target.upstreamModel },
    requestId: exchange.requestId,
    signal: exchange.signal,
  });
}

/** Replaces images that the upstream cannot download itself by data URIs. */
async function withImages(
  forwarding: Forwarding,
  target: Target,
  messages: ChatBody["messages"],
): Promise<ChatBody["messages"]> {
  const mustInline = (url: string): boolean =>
    !isDataUri(url) && (target.upstream.inlineImages || forwarding.isOwnPicture(url));
  const inlined: ChatBody["messages"] = [];
  for (const [index, message] of messages.entries()) {
    if (typeof message.content === "string") {
      inlined.push(message);
      continue;
    }
    const content: typeof message.content = [];
    for (const [at, part] of message.content.entries()) {
      if (part.type !== "image_url" || !mustInline(part.image_url.url)) {
        content.push(part);
        continue;
      }
      const image = { url: part.image_url.url, param: `messages[${index}].content[${at}].image_url.url` };
      const url = await forwarding.loadImage(image, toSniffedUri);
      content.push({ ...part, image_url: { ...part.image_url, url } });
    }
    inlined.push({ ...message, content });
  }
  return inlined;
}

async function toSniffedUri(bytes: Buffer): Promise<string> {
  const file = sniff(bytes);
  return toDataUri(file.kind === "empty" ? "application/octet-stream" : file.mediaType, bytes);
}

/** The target and the callbacks of {@link pumpStream}. */
interface PumpOptions {
  readonly target: Target;
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly limits: AnswerLimits;
  /** The limit of one event, and of an answer that is not streamed. */
  readonly maxEventBytes: number;
  /**
   * Opens the stream to the client. It is called with the first event, and no other target is tried after it.
   */
  open(): SseWriter;
  /** Whether the client asked for the usage chunk. */
  readonly wantsUsage: boolean;
  /** Whether one answer was asked for. Then its number is always 0, however the upstream counts. */
  readonly hasOneChoice: boolean;
}

interface Choice {
  readonly index?: unknown;
  readonly finish_reason?: unknown;
  delta?: Record<string, unknown> | null;
}

/**
 * Forwards a streamed answer event by event, with backpressure. An interrupted answer ends with an error
 * event and without `[DONE]`. A finish reason is never made up, except `length` for an answer that is cut at
 * its limits.
 * @throws UpstreamFailure before the first event was forwarded
 */
export async function pumpStream(answer: UpstreamAnswer, options: PumpOptions): Promise<void> {
  const { target } = options;
  const type = String(answer.headers["content-type"] ?? "");
  if (/^application\/json/i.test(type)) return sendWhole(answer, options);

  let stream: SseWriter | undefined;
  let hasRole = false;
  let hasFinished = false;
  let isDone = false;
  let isTooLarge = false;
  let images = 0;
  const meter = createAnswerMeter(options.limits);
  const counters = new Map<unknown, ReturnType<typeof createAnswerCounter>>();
  const frames = createFrameReader(options.maxEventBytes);
  const picker = options.hasOneChoice ? createChoicePicker() : undefined;
  let lastChunk: Record<string, unknown> = {};

  const pass = (data: string): Promise<void> | undefined => {
    stream ??= options.open();
    return stream.send(data);
  };
  /** Adds up what a chunk holds. Returns the part that is over its limit. */
  const measure = (choices: readonly Choice[]): AnswerPart | "images" | undefined => {
    let size = 0;
    for (const { index, delta } of choices) {
      let count = counters.get(index);
      if (count === undefined) counters.set(index, (count = createAnswerCounter()));
      const counted = count(delta);
      meter.add("text", counted.textChars);
      meter.add("aside", counted.asideChars);
      size += Math.max(0, counted.textChars) + counted.asideChars + counted.images;
      images += counted.images;
    }
    if (size === 0) meter.add("silent", 1);
    if (counters.size > maxChoices) return "silent";
    return images > maxImagesPerAnswer * counters.size ? "images" : meter.exceeded();
  };
  /** Ends the answer here. `chunk` is the one over the limit. Only the beginning of its text is sent. */
  const cut = (what: string, chunk: Record<string, unknown>, choices: readonly Choice[]) => {
    options.log.warn({ model: target.publicId, what }, "upstream answer over its limit is cut");
    isDone = true;
    hasFinished = true;
    const last: readonly Choice[] =
      choices.length > 0 ? choices : [...counters.keys()].map((index) => ({ index }));
    const { id, created } = chunk;
    const ended = last.slice(0, maxChoices).map(({ index, delta }) => {
      const content = delta?.["content"];
      const over = typeof content === "string" ? Math.min(0, meter.left("text")) : 0;
      const maxChars = typeof content === "string" ? Math.max(0, content.length + over) : 0;
      return { index: index ?? 0, delta: cutMessage(delta ?? {}, maxChars), finish_reason: "length" };
    });
    return pass(
      JSON.stringify({
        ...(typeof id === "string" ? { id } : {}),
        object: "chat.completion.chunk",
        ...(typeof created === "number" ? { created } : {}),
        model: target.publicId,
        choices: ended.length > 0 ? ended : [{ index: 0, delta: {}, finish_reason: "length" }],
      }),
    );
  };
  const handle = (frame: Frame): Promise<void> | undefined => {
    if (isDone) return undefined;
    switch (frame.kind) {
      case "done":
        isDone = true;
        return undefined;
      case "too-large":
        isTooLarge = true;
        return undefined;
      case "failed":
        throw answer.toFailure({ message: frame.text });
      case "page":
      case "junk":
        throw toBrokenFailure(target.prefix, "sent an event that is not JSON", "upstream_bad_answer");
      case "json":
        return handleChunk(frame);
    }
  };
  const handleChunk = ({ value, isEvent }: Frame & { kind: "json" }): Promise<void> | undefined => {
    const error = readError(value);
    if (error !== undefined) throw answer.toFailure(error);
    if (!isEvent || !isFields(value))
      throw toBrokenFailure(target.prefix, "sent what is no event of an answer", "upstream_bad_answer");
    lastChunk = { ...value };
    const all = toChoices(lastChunk["choices"]);
    const over = measure(picker === undefined ? all : toFirst(all));
    const choices = picker === undefined ? all : toFirst(picker.pick(all));
    if (over !== undefined) return cut(over, lastChunk, choices);
    const isHeld = all.length > 0 && choices.length === 0 && lastChunk["usage"] === undefined;
    return isHeld ? undefined : passChunk(lastChunk, choices);
  };
  const passChunk = (chunk: Record<string, unknown>, choices: Choice[]): Promise<void> | undefined => {
    if (!hasRole && choices.length > 0) {
      // Some upstreams omit the role, which some clients require.
      hasRole = true;
      for (const choice of choices) choice.delta = { role: "assistant", ...choice.delta };
    }
    if (choices.some(({ finish_reason: reason }) => typeof reason === "string")) hasFinished = true;
    // Clients that did not request the usage chunk may fail on its empty choices.
    if (isFields(chunk["usage"]) && choices.length === 0 && !options.wantsUsage) return undefined;
    return pass(JSON.stringify({ ...chunk, choices, model: target.publicId }));
  };

  try {
    for await (const bytes of answer.body as AsyncIterable<Buffer>) {
      meter.add("wire", bytes.length);
      for await (const slice of inSlices(bytes))
        for (const frame of frames.push(slice)) {
          const blocked = handle(frame);
          if (blocked !== undefined) await blocked;
        }
      if (isDone) break;
      const over = isTooLarge ? "event" : meter.exceeded();
      if (over !== undefined) {
        if (stream === undefined)
          throw toBrokenFailure(target.prefix, "sent an answer that is too large", "upstream_too_large");
        await cut(over, {}, []);
        break;
      }
    }
    if (!isDone) for (const frame of frames.end()) await handle(frame);
    const held = toFirst(picker?.end() ?? []);
    const { usage: _usage, ...around } = lastChunk;
    if (held.length > 0) await passChunk(around, held);
    if (!isDone && !hasFinished)
      throw toBrokenFailure(target.prefix, "interrupted its answer", "upstream_interrupted");
    if (stream === undefined) throw toBrokenFailure(target.prefix, "sent an empty answer", "upstream_empty");
    await pass("[DONE]");
    stream.end();
  } catch (error) {
    options.signal.throwIfAborted();
    if (stream === undefined) throw toFailure(target, error);
    // The stream has begun, so the error becomes its last event.
    sendLast(stream, JSON.stringify(toFailure(target, error).toClient.toEnvelope()));
  } finally {
    answer.body.destroy();
  }
}

/** The most answers of one stream. More than `n` can only be a mistake. */
const maxChoices = 16;

function toChoices(value: unknown): Choice[] {
  if (!Array.isArray(value)) return [];
  return value.filter((choice) => typeof choice === "object" && choice !== null) as Choice[];
}

/** Gives the choices of one answer its number. */
function toFirst(choices: readonly Choice[]): Choice[] {
  return choices.map((choice) => ({ ...choice, index: 0 }));
}

/** Sends an answer that the upstream did not stream as one chunk. */
async function sendWhole(answer: UpstreamAnswer, options: PumpOptions): Promise<void> {
  const { target } = options;
  const json = await answer.json(options.maxEventBytes);
  const { choices, usage, ...rest } = json;
  const chunks = toChoices(choices) as Record<string, unknown>[];
  if (chunks.length === 0) throw toBrokenFailure(target.prefix, "sent an empty answer", "upstream_empty");
  cutAnswer(chunks, createAnswerMeter(options.limits));
  const head = { ...rest, object: "chat.completion.chunk", model: target.publicId };
  const stream = options.open();
  await stream.send(
    JSON.stringify({
      ...head,
      choices: chunks.map(({ message, ...choice }) => ({ ...choice, delta: message })),
    }),
  );
  if (options.wantsUsage && usage !== undefined) {
    await stream.send(JSON.stringify({ ...head, choices: [], usage }));
  }
  await stream.send("[DONE]");
  stream.end();
}

function toFailure(target: Target, error: unknown): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error;
  return toBrokenFailure(target.prefix, "interrupted its answer", "upstream_interrupted", error);
}

/** The characters and images of one part of an answer. */
interface AnswerCount {
  textChars: number;
  /** The characters of reasoning, tool calls, refusals and whatever else a message has. */
  asideChars: number;
  images: number;
}

/** Shorter ones are text about data URIs. */
const minDataUriChars = 256;

/** Counts an answer's messages or deltas, in order. Data URIs in the text count as images. */
function createAnswerCounter(): (message: unknown) => AnswerCount {
  let isInDataUri = false;
  let dataChars = 0;
  /** The end of the last text, where a data URI may begin. */
  let tail = "";

  const countText = (text: string, count: AnswerCount): void => {
    let rest = isInDataUri ? text : tail + text;
    count.textChars -= isInDataUri ? 0 : tail.length;
    for (;;) {
      if (isInDataUri) {
        const found = rest.search(notInDataUri);
        const end = found === -1 ? rest.length : found;
        if (dataChars < minDataUriChars && dataChars + end >= minDataUriChars) count.images += 1;
        dataChars += end;
        tail = "";
        if (found === -1) return;
        isInDataUri = false;
        if (dataChars < minDataUriChars) count.textChars += dataChars;
        rest = rest.slice(end);
      }
      const at = rest.indexOf(pictureUriMark);
      if (at === -1) break;
      count.textChars += at;
      isInDataUri = true;
      dataChars = pictureUriMark.length;
      rest = rest.slice(at + pictureUriMark.length);
    }
    count.textChars += rest.length;
    tail = rest.slice(1 - pictureUriMark.length);
  };

  return (message) => {
    const count: AnswerCount = { textChars: 0, asideChars: 0, images: 0 };
    if (typeof message !== "object" || message === null) return count;
    for (const [name, value] of Object.entries(message as Record<string, unknown>)) {
      if (name === "role" || value === null) continue;
      if (name === "images") count.images += Array.isArray(value) ? value.length : 0;
      else if (name !== "content") count.asideChars += sizeOf(value);
      else if (typeof value === "string") countText(value, count);
      else if (Array.isArray(value)) {
        for (const part of value as unknown[]) {
          if (pictureUrlOf(part) !== undefined) count.images += 1;
          else count.textChars += sizeOf(part);
        }
      }
    }
    return count;
  };
}

function sizeOf(value: unknown): number {
  return typeof value === "string" ? value.length : (JSON.stringify(value) ?? "").length;
}

type Fields = Record<string, unknown>;

/**
 * Cuts an answer that was not streamed at its limits, in place. The text is shortened, what is beyond is
 * dropped, and the finish reason becomes `length`.
 */
function cutAnswer(choices: readonly unknown[], meter: ReturnType<typeof createAnswerMeter>): void {
  for (const choice of choices) {
    if (typeof choice !== "object" || choice === null) continue;
    const fields = choice as Fields;
    const message = fields["message"];
    if (typeof message !== "object" || message === null) continue;
    const count = createAnswerCounter();
    let counted = count(message);
    const isOver =
      counted.textChars > meter.left("text") ||
      counted.asideChars > meter.left("aside") ||
      counted.images > maxImagesPerAnswer;
    if (isOver) {
      const cut = cutMessage(message as Fields, Math.max(0, meter.left("text")));
      fields["message"] = cut;
      fields["finish_reason"] = "length";
      counted = createAnswerCounter()(cut);
    }
    meter.add("text", counted.textChars);
    meter.add("aside", counted.asideChars);
  }
}

/** Returns the role, the beginning of the text and the first images of a message over a limit. */
function cutMessage({ role, content, images }: Fields, maxChars: number): Fields {
  return {
    ...(typeof role === "string" ? { role } : {}),
    ...(typeof content === "string" ? { content: cutText(content, maxChars) } : {}),
    ...(Array.isArray(images) ? { images: images.slice(0, maxImagesPerAnswer) } : {}),
  };
}

/** Cuts a text. Surrogate pairs stay whole. */
function cutText(text: string, maxChars: number): string {
  const cut = text.slice(0, maxChars);
  return /[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut;
}
