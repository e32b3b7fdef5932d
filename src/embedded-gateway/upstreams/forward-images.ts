import { sniff } from "../../media/sniff.ts";
import type { PictureShelf } from "../picture-shelf.ts";
import type { ImageBody } from "../requests.ts";
import { tokensPerGeneratedImage } from "../worst-case.ts";
import { tryTargets } from "./attempts.ts";
import { toAnswerHeaders, type Forwarding } from "./forward.ts";
import { readUsage } from "./upstream-usage.ts";
import { readAnswerJson } from "./upstream-client.ts";
import { errorIn, toBrokenFailure, toStatusFailure } from "./upstream-failure.ts";

/**
 * Forwards an image generation. Every item of the answer has a `url`: images that arrive as base64 are put on the
 * picture shelf, unless the client asked for base64.
 */
export async function forwardImages(
  forwarding: Forwarding,
  body: ImageBody,
  shelf: PictureShelf,
): Promise<void> {
  const { exchange, targets, log, charge } = forwarding;
  const { size, response_format: format, ...rest } = body;
  const { target, answer, json, pictures } = await tryTargets(
    { targets, signal: exchange.signal, log, charge, isCostly: true },
    async (target) => {
      const answer = await forwarding.clientOf(target).request({
        method: "POST",
        path: "/images/generations",
        headers: { "content-type": "application/json", accept: "application/json" },
        // Fields that the client left out are not sent, since upstreams support different ones.
        body: JSON.stringify({
          ...rest,
          ...(typeof size !== "string" ? {} : { size }),
          ...(typeof format !== "string" ? {} : { response_format: format }),
          model: target.upstreamModel,
        }),
        requestId: exchange.requestId,
        signal: exchange.signal,
      });
      const json = await readAnswerJson(target.prefix, answer, maxBytesOf(body.n));
      const error = errorIn(json);
      if (error !== undefined) throw toStatusFailure(target.prefix, 502, answer.headers, error);
      const data = json["data"];
      if (!Array.isArray(data) || data.length === 0) {
        throw toBrokenFailure(target.prefix, "sent no image", "upstream_empty");
      }
      return { target, answer, json, pictures: toItems(data).slice(0, body.n) };
    },
  );
  const data = pictures.map((item) => (format === "b64_json" ? item : withUrl(item, exchange.origin, shelf)));
  // Models without a price for an image are billed by tokens.
  const tokens =
    target.model?.prices?.perImageUsd === undefined
      ? {
          promptTokens: Math.ceil(body.prompt.length / 4),
          completionTokens: data.length * tokensPerGeneratedImage,
        }
      : {};
  charge.settle(target, { ...tokens, ...readUsage(json), images: data.length });
  exchange.sendJson(
    200,
    { created: Math.floor(Date.now() / 1000), ...json, data },
    toAnswerHeaders(target, answer.headers),
  );
}

/** Twenty megabytes an image as base64, at most three such images together. */
function maxBytesOf(count: number): number {
  return Math.min(count, 3) * 28 * 1024 * 1024 + 1024 * 1024;
}

function toItems(data: readonly unknown[]): Record<string, unknown>[] {
  return data.filter((item) => typeof item === "object" && item !== null) as Record<string, unknown>[];
}

function withUrl(
  item: Record<string, unknown>,
  origin: string,
  shelf: PictureShelf,
): Record<string, unknown> {
  const { b64_json: base64, ...rest } = item;
  if (typeof base64 !== "string" || typeof rest["url"] === "string") return item;
  const bytes = Buffer.from(base64, "base64");
  const file = sniff(bytes);
  if (file.kind !== "image") return item;
  return {
    ...rest,
    url: origin + shelf.put({ bytes, mediaType: file.mediaType, extension: file.extension }),
  };
}
