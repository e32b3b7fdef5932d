import { ParleyError } from "../core/errors.ts";
import type { GeneratedImage, ImageAnswer, ImageRequest } from "../core/gateway.ts";
import { AttemptError, isFields } from "../wire/failures.ts";
import { type GatewayContext, runCall, checkRequest } from "./call.ts";
import { type AttemptTimeouts } from "../wire/attempt.ts";
import { readUsage, type ReportedUsage } from "../wire/completion-chunk.ts";
import { badAnswer, readAnswerBody } from "../wire/transport.ts";
import { createImageLoader, imageNotice, type ImageLoaderOptions } from "./images.ts";
import { generatedPicturesOf, isDataUri, maxGenerationBytes } from "../wire/pictures.ts";
import { toUsage } from "../wire/prices.ts";
import { createRecent } from "../support/recent.ts";
import { translate } from "../words/translate.ts";

interface ImageContext extends GatewayContext {
  readonly images: Pick<ImageLoaderOptions, "downloadImage" | "maxImageBytes" | "baseUrl">;
  readonly fallbacks: readonly string[];
}

/** How many models are remembered that take no `response_format`. */
const maxPlainModels = 500;

/** Image generation takes minutes and sends nothing before its end. */
const firstEventFactor = 4;

/**
 * Creates the image operation of a client. A repeated generation is billed twice, so it is retried only when
 * there was no connection or the gateway returned 429 or 503.
 */
export function createImageGeneration(
  context: ImageContext,
): (request: ImageRequest, signal: AbortSignal) => Promise<ImageAnswer> {
  /** Models that refuse to be asked for base64. */
  const plainModels = createRecent(maxPlainModels);

  const attempt = async (
    request: ImageRequest,
    model: string,
    timeouts: AttemptTimeouts,
    signal: AbortSignal,
  ) => {
    const { count = 1, prompt, size } = request;
    const send = (asksForBytes: boolean) =>
      context.transport.send({
        operation: "image",
        model,
        timeouts,
        callerSignal: signal,
        path: "/images/generations",
        body: {
          model,
          prompt,
          n: count,
          ...(size !== undefined && { size }),
          ...(asksForBytes && { response_format: "b64_json" }),
        },
      });
    const isPlain = plainModels.has(model);
    const response = await send(!isPlain).catch(async (error: unknown) => {
      if (isPlain || !mayRefuseField(error)) throw error;
      const answer = await send(false);
      plainModels.set(model, true);
      return answer;
    });
    const body = await readAnswerBody(response, maxGenerationBytes(count, context.images.maxImageBytes));
    const value = body.kind === "json" ? body.value : undefined;
    const items = generatedPicturesOf(value);
    if (items === undefined) throw badAnswer(response, "no image list");
    const loaded = await load(items.slice(0, count), timeouts, signal);
    if (loaded.images.length === 0) throw new AttemptError(withoutPicture(model, loaded), "never");
    return {
      ...loaded,
      received: items.length,
      usage: isFields(value) ? readUsage(value["usage"]) : undefined,
    };
  };

  const load = async (
    items: NonNullable<ReturnType<typeof generatedPicturesOf>>,
    timeouts: AttemptTimeouts,
    signal: AbortSignal,
  ) => {
    const loader = createImageLoader({ ...context.images, dedupes: false });
    const images: GeneratedImage[] = [];
    const notices: string[] = [];
    let lastError: unknown;
    timeouts.pause();
    for (const item of items) {
      try {
        const image = await loader.load(sourceOf(item), timeouts.signal);
        const revisedPrompt = item.revised_prompt;
        if (image !== undefined)
          images.push({ ...image, ...(revisedPrompt !== undefined && { revisedPrompt }) });
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        lastError = error;
        notices.push(imageNotice(error));
      }
    }
    return { images, notices, lastError };
  };

  /** Draws all pictures, one by one where the model draws only one. Earlier ones survive a failure. */
  const drawAll = async (
    request: ImageRequest,
    model: string,
    timeouts: AttemptTimeouts,
    signal: AbortSignal,
  ) => {
    const { count = 1 } = request;
    const one = { ...request, count: 1 };
    const draw = async (wanted: ImageRequest) => await attempt(wanted, model, timeouts, signal);
    const first = await draw(request).catch((error: unknown) => {
      if (count === 1 || !mayRefuseField(error)) throw error;
      return draw(one);
    });
    // The timers stay paused between the requests, since the total one limits them all.
    if (count === 1 || first.received !== 1) return first;
    const all = [first];
    while (all.length < count) {
      try {
        all.push(await draw(one));
      } catch {
        if (signal.aborted) throw signal.reason;
        // The caller says that fewer came than were wanted.
        break;
      }
    }
    return {
      images: all.flatMap(({ images }) => images),
      notices: all.flatMap(({ notices }) => notices),
      usage: all.map(({ usage }) => usage).reduce(sumOf),
    };
  };

  return async (request, signal) => {
    checkImageRequest(request);
    const { value, model, notices } = await runCall(
      context,
      {
        operation: "image",
        model: request.model,
        fallbacks: context.fallbacks,
        signal,
        firstEventFactor,
      },
      (model, timeouts) =>
        drawAll(request, model, timeouts, signal)
          .catch((error: unknown) => {
            const isUnsupported =
              error instanceof AttemptError &&
              error.failure.code === "gateway-unsupported" &&
              error.answer?.info !== undefined;
            if (isUnsupported) context.catalogue.learn(model, { generatesImages: false });
            throw error;
          })
          .finally(() => timeouts.dispose()),
    );
    context.catalogue.learn(model, { generatesImages: true });
    const counted = { images: value.images.length };
    const usage = toUsage({
      reported: value.usage,
      estimated: {},
      counted,
      price: context.catalogue.priceOf(model),
    });
    return {
      images: value.images,
      model,
      ...(model !== request.model && { fallback: model }),
      usage,
      notices: [...notices, ...value.notices],
    };
  };
}

type Drawn = NonNullable<ReturnType<typeof generatedPicturesOf>>[number];

/** Bytes come before addresses, which may be the server's alone. */
function sourceOf({ b64_json: base64, url = "" }: Drawn): string {
  if (base64 === undefined) return url;
  return isDataUri(base64) ? base64 : `data:;base64,${base64}`;
}

/** The pictures were paid for and cannot be had, or there are none. */
function withoutPicture(
  model: string,
  { notices, lastError }: { readonly notices: readonly string[]; readonly lastError: unknown },
): ParleyError {
  const named = translate("error.model-named", { model });
  return notices.length === 0
    ? new ParleyError("gateway-empty-answer", "image failed: no image in the answer", {
        detail: { model, problem: translate("error.no-picture", { model: named }) },
      })
    : new ParleyError("gateway-bad-answer", "image failed: the images cannot be loaded", {
        cause: lastError,
        detail: { model, problem: [...new Set(notices)].join(" ") },
      });
}

/** Whether a server may have refused a field that others take. It says so in any words, or in none. */
function mayRefuseField(error: unknown): boolean {
  if (!(error instanceof AttemptError)) return false;
  const { code, detail } = error.failure;
  const isAboutRequest = code === "gateway-bad-request" || code === "gateway-unsupported";
  return isAboutRequest && (detail["status"] === 400 || detail["status"] === 422);
}

function sumOf(one: ReportedUsage | undefined, other: ReportedUsage | undefined): ReportedUsage | undefined {
  if (one === undefined || other === undefined) return undefined;
  const names = ["promptTokens", "completionTokens", "costUsd"] as const;
  const known = names.filter((name) => one[name] !== undefined && other[name] !== undefined);
  return Object.fromEntries(known.map((name) => [name, (one[name] ?? 0) + (other[name] ?? 0)]));
}

function checkImageRequest({ model, prompt, count = 1, size }: ImageRequest): void {
  checkRequest("image", model, [
    [prompt.trim() !== "", "prompt", "a description of the image"],
    [Number.isInteger(count) && count >= 1, "n", "a whole number of at least 1"],
    [size === undefined || /^[1-9]\d{0,4}x[1-9]\d{0,4}$/.test(size), "size", "<width>x<height> in pixels"],
  ]);
}
