import { textOf, type ChatBody } from "../requests.ts";
import type { Target } from "../router.ts";
import { tryTargets } from "./attempts.ts";
import { maxAnswerBytes, toAnswerHeaders, type Forwarding } from "./forward.ts";
import { pumpStream } from "./pump-stream.ts";
import { readUsage } from "./upstream-usage.ts";
import { readAnswerJson, type UpstreamAnswer } from "./upstream-client.ts";
import { errorIn, toStatusFailure } from "./upstream-failure.ts";

/**
 * Forwards a chat request. Retries and fallbacks happen before the first event only; the answer's `model` is the public
 * id of the model that answered.
 */
export async function forwardChat(forwarding: Forwarding, body: ChatBody): Promise<void> {
  const { exchange, targets, log } = forwarding;
  const options = { targets, signal: exchange.signal, log, isCostly: false };
  if (body.stream) return forwardStream(forwarding, body);

  const { target, answer, json } = await tryTargets(options, async (target) => {
    const answer = await ask(forwarding, target, body);
    const json = await readAnswerJson(target.prefix, answer, maxAnswerBytes);
    const error = errorIn(json);
    if (error !== undefined) throw toStatusFailure(target.prefix, 502, answer.headers, error);
    return { target, answer, json };
  });
  forwarding.onUsage(target, readUsage(json) ?? {});
  exchange.sendJson(200, { ...json, model: target.publicId }, toAnswerHeaders(target, answer.headers));
}

async function forwardStream(forwarding: Forwarding, body: ChatBody): Promise<void> {
  const { exchange, targets, log } = forwarding;
  // Proxies close connections that stay silent, so the stream is opened early; from then on errors are events.
  const early = setTimeout(() => exchange.openStream(), forwarding.pingMs);
  try {
    await tryTargets({ targets, signal: exchange.signal, log, isCostly: false }, async (target) => {
      const answer = await ask(forwarding, target, body);
      await pumpStream(answer, {
        target,
        signal: exchange.signal,
        open: () => {
          clearTimeout(early);
          return exchange.openStream(toAnswerHeaders(target, answer.headers));
        },
        wantsUsage: body.stream_options?.include_usage === true,
        estimatedPromptTokens: estimateTokens(body),
        onUsage: (usage) => forwarding.onUsage(target, usage),
      });
    });
  } finally {
    clearTimeout(early);
  }
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

/** Estimated at four characters a token; images are not counted. */
function estimateTokens(body: ChatBody): number {
  return Math.ceil(body.messages.reduce((sum, message) => sum + textOf(message).length, 0) / 4);
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
