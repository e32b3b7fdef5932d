import type { ChatEvent, ChatMessage, ChatRequest, ContentPart } from "../core/gateway.ts";
import { AttemptError } from "../wire/failures.ts";
import { type GatewayContext, runCall, checkRequest } from "./call.ts";
import { type AttemptTimeouts } from "../wire/attempt.ts";
import { createChatAnswer } from "./chat-answer.ts";
import { createImageLoader, type ImageLoaderOptions } from "./images.ts";
import { estimatePromptTokens, toUsage } from "../wire/prices.ts";
import { toPicturePart } from "../wire/pictures.ts";
import { createRecent } from "../support/recent.ts";

interface ChatContext extends GatewayContext {
  readonly images: Pick<ImageLoaderOptions, "downloadImage" | "maxImageBytes" | "baseUrl">;
  readonly fallbacks: readonly string[];
  /** Whether an image that an answer's text links to as Markdown is downloaded. */
  isTrustedLink(url: string): boolean;
}

/** The request fields that one model takes. Some servers reject them although others need them. */
interface Dialect {
  readonly streamOptions: boolean;
  readonly temperature: boolean;
  readonly maxTokensName: "max_tokens" | "max_completion_tokens";
  readonly systemRole: boolean;
}

const fullDialect: Dialect = {
  streamOptions: true,
  temperature: true,
  maxTokensName: "max_tokens",
  systemRole: true,
};

/** How many models have their rejected fields remembered. */
const maxDialects = 1000;
/** An answer that is not streamed begins only when it is complete. */
const unstreamedFactor = 4;

/** Creates the chat operation of a client. It remembers which fields each model rejects. */
export function createChat(
  context: ChatContext,
): (request: ChatRequest, signal: AbortSignal) => AsyncIterable<ChatEvent> {
  const dialects = createRecent<Dialect>(maxDialects);
  const dialectOf = (model: string): Dialect => dialects.get(model) ?? fullDialect;

  /** Opens an answer. A request is repeated without delay, once for each field that the server rejects. */
  const open = async (
    request: ChatRequest,
    model: string,
    timeouts: AttemptTimeouts,
    callerSignal: AbortSignal,
  ) => {
    const isStreamed = request.stream ?? true;
    for (;;) {
      let answer: ReturnType<typeof createChatAnswer> | undefined;
      const sent = dialectOf(model);
      try {
        const response = await context.transport.send({
          operation: "chat",
          model,
          timeouts,
          callerSignal,
          path: "/chat/completions",
          ...(isStreamed && { accept: "text/event-stream, application/json" }),
          body: toBody(request, model, isStreamed, sent),
        });
        answer = createChatAnswer({
          response,
          model,
          timeouts,
          images: createImageLoader(context.images),
          maxImageBytes: context.images.maxImageBytes,
          isTrustedLink: (url) => context.isTrustedLink(url),
          maxTokens: request.maxTokens ?? 1024,
        });
        return { answer, timeouts, first: (await answer.next()) ?? [] };
      } catch (error) {
        answer?.close();
        const change = error instanceof AttemptError ? rejectedField(sent, error) : undefined;
        if (change !== undefined) {
          // Another request may have changed the dialect since this one was sent.
          dialects.set(model, { ...dialectOf(model), ...change });
          continue;
        }
        timeouts.dispose();
        if (error instanceof AttemptError && lacksImages(error, request))
          context.catalogue.learn(model, { seesImages: false });
        throw error;
      }
    }
  };

  return async function* chat(request, signal) {
    checkChat(request);
    const { value, model, notices } = await runCall(
      context,
      {
        operation: "chat",
        model: request.model,
        fallbacks: context.fallbacks,
        signal,
        firstEventFactor: request.stream === false ? unstreamedFactor : 1,
      },
      (model, timeouts) => open(request, model, timeouts, signal),
    );
    const { answer, timeouts, first } = value;
    try {
      for (const text of notices) yield { kind: "notice", text };
      let events: readonly ChatEvent[] | undefined = first;
      while (events !== undefined) {
        yield* events;
        events = await answer.next();
      }
      yield finishOf(context, request, model, answer);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw error instanceof AttemptError ? error.failure : error;
    } finally {
      answer.close();
      timeouts.dispose();
    }
  };
}

function finishOf(
  context: ChatContext,
  request: ChatRequest,
  model: string,
  answer: ReturnType<typeof createChatAnswer>,
): ChatEvent {
  const totals = answer.totals();
  if (totals.images > 0) context.catalogue.learn(model, { drawsInChat: true });
  const usage = toUsage({
    reported: totals.usage,
    estimated: {
      ...(!totals.usage?.promptTokens && { promptTokens: estimatePromptTokens(request.messages) }),
      ...(!totals.usage?.completionTokens && { completionTokens: Math.ceil(totals.writtenBytes / 4) }),
    },
    ...(totals.images > 0 && { counted: { images: totals.images } }),
    price: context.catalogue.priceOf(model),
  });
  return {
    kind: "finish",
    reason: totals.reason,
    model: totals.model ?? model,
    ...(model !== request.model && { fallback: model }),
    usage,
    ...(totals.sources.length > 0 && { sources: totals.sources }),
  };
}

function toBody(request: ChatRequest, model: string, isStreamed: boolean, dialect: Dialect) {
  return {
    model,
    messages: toWireMessages(request.messages, dialect.systemRole),
    [dialect.maxTokensName]: request.maxTokens ?? 1024,
    ...(dialect.temperature && { temperature: request.temperature ?? 1 }),
    stream: isStreamed,
    ...(isStreamed && dialect.streamOptions && { stream_options: { include_usage: true } }),
  };
}

/**
 * Returns messages as strict templates take them: without empty ones, and with neighbours of one role as one
 * message. Where there is no system role, the instructions begin the first message of a person.
 */
function toWireMessages(messages: readonly ChatMessage[], hasSystemRole: boolean) {
  const merged: ChatMessage[] = [];
  for (const { role, content } of messages) {
    if (content.length === 0) continue;
    const wanted = role === "system" && !hasSystemRole ? "user" : role;
    const before = merged.at(-1);
    if (before?.role !== wanted) merged.push({ role: wanted, content });
    else merged[merged.length - 1] = { role: wanted, content: joined(before.content, content) };
  }
  return merged.map(toWireMessage);
}

function joined(before: ChatMessage["content"], after: ChatMessage["content"]): ChatMessage["content"] {
  if (typeof before === "string" && typeof after === "string") return `${before}\n\n${after}`;
  return [...toParts(before), ...toParts(after)];
}

function toParts(content: ChatMessage["content"]): readonly ContentPart[] {
  return typeof content === "string" ? [{ kind: "text", text: content }] : content;
}

function toWireMessage({ role, content }: ChatMessage) {
  if (typeof content === "string") return { role, content };
  return {
    role,
    content: content.map((part) =>
      part.kind === "text" ? { type: "text", text: part.text } : toPicturePart(part.url),
    ),
  };
}

/** Returns how later requests go round a field of this one that the server rejected, if it did. */
function rejectedField(sent: Dialect, error: AttemptError): Partial<Dialect> | undefined {
  const status = error.failure.detail["status"];
  if (status !== 400 && status !== 422) return undefined;
  const words = `${error.answer?.info?.param ?? ""} ${error.answer?.info?.message.slice(0, 2000) ?? ""}`;
  if (sent.streamOptions && /stream_options|include_usage/.test(words)) return { streamOptions: false };
  if (sent.maxTokensName === "max_tokens" && /max_completion_tokens/.test(words))
    return { maxTokensName: "max_completion_tokens" };
  if (
    sent.temperature &&
    /temperature/.test(words) &&
    /support|only the default|deprecated|not allowed/i.test(words)
  )
    return { temperature: false };
  if (sent.systemRole && /system (?:role|message|prompt)|role[^.]{0,20}system/i.test(words))
    return { systemRole: false };
  return undefined;
}

/** Whether the gateway says that the model takes no images, as the request has some. */
function lacksImages({ failure }: AttemptError, request: ChatRequest): boolean {
  return (
    failure.detail["lacks"] === "pictures" &&
    request.messages.some(
      ({ content }) => typeof content !== "string" && content.some((part) => part.kind === "image"),
    )
  );
}

function checkChat({ model, messages, temperature = 1, maxTokens = 1024 }: ChatRequest): void {
  checkRequest("chat", model, [
    [messages.length > 0, "messages", "at least one message"],
    [temperature >= 0 && temperature <= 2, "temperature", "a number from 0 to 2"],
    [Number.isInteger(maxTokens) && maxTokens >= 1, "max_tokens", "a whole number of at least 1"],
  ]);
}
