import { answerLimitsOf, createAnswerMeter, type AnswerLimits } from "../../support/answer-limits.ts";
import type { ChatBody } from "../requests.ts";
import type { Target } from "../router.ts";
import { estimatePromptTokens } from "../worst-case.ts";
import { tryTargets } from "./attempts.ts";
import { cutAnswer } from "./cut-answer.ts";
import { toAnswerHeaders, type Forwarding } from "./forward.ts";
import { pumpStream } from "./pump-stream.ts";
import { readUsage } from "./upstream-usage.ts";
import { readAnswerJson, type UpstreamAnswer } from "./upstream-client.ts";
import { errorIn, toStatusFailure } from "./upstream-failure.ts";

/**
 * Forwards a chat request. Retries and fallbacks happen before the first event only; the answer's `model` is the public
 * id of the model that answered.
 */
export async function forwardChat(forwarding: Forwarding, body: ChatBody): Promise<void> {
  const { exchange, targets, log, charge } = forwarding;
  const options = { targets, signal: exchange.signal, log, charge, isCostly: false };
  if (body.stream) return forwardStream(forwarding, body);

  const limits = limitsOf(body);
  const { target, answer, json } = await tryTargets(options, async (target) => {
    const answer = await ask(forwarding, target, body);
    const json = await readAnswerJson(target.prefix, answer, maxWholeBytes(limits));
    const error = errorIn(json);
    if (error !== undefined) throw toStatusFailure(target.prefix, 502, answer.headers, error);
    return { target, answer, json };
  });
  const choices: unknown = json["choices"];
  const counted = cutAnswer(Array.isArray(choices) ? choices : [], createAnswerMeter(limits));
  charge.settle(target, {
    promptTokens: estimatePromptTokens(body),
    completionTokens: Math.ceil((counted.textChars + counted.asideChars) / 4),
    ...(counted.images > 0 ? { images: counted.images } : {}),
    ...readUsage(json),
  });
  exchange.sendJson(200, { ...json, model: target.publicId }, toAnswerHeaders(target, answer.headers));
}

async function forwardStream(forwarding: Forwarding, body: ChatBody): Promise<void> {
  const { exchange, targets, log, charge } = forwarding;
  // Proxies close connections that stay silent, so the stream is opened early; from then on errors are events.
  const early = setTimeout(() => exchange.openStream(), forwarding.pingMs);
  const limits = limitsOf(body);
  try {
    await tryTargets({ targets, signal: exchange.signal, log, charge, isCostly: false }, async (target) => {
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
        estimatedPromptTokens: estimatePromptTokens(body),
        onUsage: (usage) => charge.settle(target, usage),
      });
    });
  } finally {
    clearTimeout(early);
  }
}

/** Of all images of one answer together, as base64. */
const maxImageBytes = 48 * 1024 * 1024;

function limitsOf(body: ChatBody): AnswerLimits {
  return answerLimitsOf((body.n ?? 1) * body.max_tokens, maxImageBytes);
}

/** An answer in one piece. */
function maxWholeBytes({ textChars, asideChars }: AnswerLimits): number {
  return Math.min((textChars + asideChars) * 2 + maxImageBytes, 128 * 1024 * 1024);
}

async function ask(forwarding: Forwarding, target: Target, body: ChatBody): Promise<UpstreamAnswer> {
  const { exchange } = forwarding;
  const options = body.stream && target.upstream.streamUsage ? withUsage(body) : {};
  const { max_tokens: limit, ...rest } = body;
  // Newer models reject the older name of the limit, so the name that the client used is kept.
  const limits =
    typeof body["max_completion_tokens"] === "number"
      ? { max_completion_tokens: limit }
      : { max_tokens: limit };
  const messages = await withImages(forwarding, target, body.messages);
  return forwarding.clientOf(target).request({
    method: "POST",
    path: "/chat/completions",
    headers: {
      "content-type": "application/json",
      accept: body.stream ? "text/event-stream" : "application/json",
    },
    body: JSON.stringify({ ...rest, ...limits, ...options, messages, model: target.upstreamModel }),
    requestId: exchange.requestId,
    signal: exchange.signal,
  });
}

function withUsage(body: ChatBody): object {
  return { stream_options: { ...body.stream_options, include_usage: true } };
}

/** Replaces images that the upstream cannot download itself by data URIs. */
async function withImages(
  forwarding: Forwarding,
  target: Target,
  messages: ChatBody["messages"],
): Promise<ChatBody["messages"]> {
  const mustInline = (url: string): boolean =>
    !url.startsWith("data:") && (target.upstream.inlineImages || forwarding.isOwnPicture(url));
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
      const url = await forwarding.loadImage(image, toDataUri);
      content.push({ ...part, image_url: { ...part.image_url, url } });
    }
    inlined.push({ ...message, content });
  }
  return inlined;
}

async function toDataUri(bytes: Buffer): Promise<string> {
  const { sniff } = await import("../../media/sniff.ts");
  const file = sniff(bytes);
  const mediaType = file.kind === "empty" ? "application/octet-stream" : file.mediaType;
  return `data:${mediaType};base64,${bytes.toString("base64")}`;
}
