import type { Frame } from "../../wire/frame.ts";
import { answerLimitsOf, createFrameReader, inSlices } from "../../wire/stream-frames.ts";
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
import { isDataUri, toDataUri } from "../../wire/pictures.ts";
import { createChoicePicker } from "../../wire/completion-chunk.ts";
import type { SseWriter } from "../../support/http/event-stream.ts";
import { sendLast } from "../api-error.ts";

/**
 * Forwards a chat request. Retries and fallbacks happen only before the first event. The answer's `model` is
 * the public id of the model that answered.
 */
export async function forwardChat(forwarding: Forwarding, body: ChatBody): Promise<void> {
  const { exchange } = forwarding;
  if (body.stream) return forwardStream(forwarding, body);

  const { target, answer, json } = await tryTargets(forwarding, false, async (target) => {
    const answer = await ask(forwarding, target, body);
    return { target, answer, json: await answer.json(limitsOf(body).maxWholeBytes) };
  });
  exchange.sendJson(200, { ...json, model: target.publicId }, toAnswerHeaders(target, answer.headers));
}

async function forwardStream(forwarding: Forwarding, body: ChatBody): Promise<void> {
  const { exchange } = forwarding;
  // Proxies close silent connections, so the stream is opened early. From then on errors are events.
  const early = setTimeout(() => exchange.openStream(), forwarding.pingMs);
  try {
    await tryTargets(forwarding, false, async (target) => {
      const answer = await ask(forwarding, target, body);
      await pumpStream(answer, {
        target,
        signal: exchange.signal,
        ...limitsOf(body),
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

/** The limit of all images of one answer together, as base64. */
const maxImageBytes = 48 * 1024 * 1024;

/** How large an answer may become. Whoever asked cuts one sooner that ignores its limit of tokens. */
function limitsOf(body: ChatBody): Pick<PumpOptions, "maxWholeBytes" | "maxBytes"> {
  const { textChars, asideChars, wireBytes } = answerLimitsOf((body.n ?? 1) * body.max_tokens, maxImageBytes);
  const maxWholeBytes = Math.min((textChars + asideChars) * 2 + maxImageBytes, 128 * 1024 * 1024);
  return { maxWholeBytes, maxBytes: wireBytes };
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
  /** The limit of one event, and of an answer that is not streamed. */
  readonly maxWholeBytes: number;
  /** The limit of all events. */
  readonly maxBytes: number;
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
 * event and without `[DONE]`, as does one over its limits. A finish reason is never made up.
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
  let leftBytes = options.maxBytes;
  const frames = createFrameReader(options.maxWholeBytes);
  const picker = options.hasOneChoice ? createChoicePicker() : undefined;
  let lastChunk: Record<string, unknown> = {};

  const pass = (data: string): Promise<void> | undefined => {
    stream ??= options.open();
    return stream.send(data);
  };
  const handle = (frame: Frame): Promise<void> | undefined => {
    if (isDone) return undefined;
    switch (frame.kind) {
      case "done":
        isDone = true;
        return undefined;
      case "too-large":
        throw toTooLarge(target);
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
    const choices = picker === undefined ? all : toFirst(picker.pick(all));
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
      leftBytes -= bytes.length;
      if (leftBytes < 0) throw toTooLarge(target);
      for await (const slice of inSlices(bytes))
        for (const frame of frames.push(slice)) {
          const blocked = handle(frame);
          if (blocked !== undefined) await blocked;
        }
      if (isDone) break;
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
  const json = await answer.json(options.maxWholeBytes);
  const { choices, usage, ...rest } = json;
  const chunks = toChoices(choices) as Record<string, unknown>[];
  if (chunks.length === 0) throw toBrokenFailure(target.prefix, "sent an empty answer", "upstream_empty");
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

function toTooLarge({ prefix }: Target): UpstreamFailure {
  return toBrokenFailure(prefix, "sent an answer that is too large", "upstream_too_large");
}

function toFailure(target: Target, error: unknown): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error;
  return toBrokenFailure(target.prefix, "interrupted its answer", "upstream_interrupted", error);
}
