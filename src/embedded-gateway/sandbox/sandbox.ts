import { invalidRequest, unsupportedModel } from "../api-error.ts";
import type { Exchange } from "../exchange.ts";
import type { LoadImage } from "../load-image.ts";
import type { PictureShelf } from "../picture-shelf.ts";
import type { ChatBody, ImageBody, TranscriptionFields } from "../requests.ts";
import { answerChat } from "./chat-model.ts";
import { describePicture } from "./describe-picture.ts";
import { drawPicture, type Size } from "./draw.ts";
import { answerWithPicture } from "./image-model.ts";
import { listen } from "./listen.ts";
import { sandboxHeader, sendAnswer } from "./send-answer.ts";

/** Settings of {@link createSandbox}. */
export interface SandboxOptions {
  /** Pause between two words of a streamed answer, in milliseconds. */
  readonly wordDelayMs: number;
  readonly shelf: PictureShelf;
  imageLoaderFor(exchange: Exchange): LoadImage;
}

/** The sandbox models behind the gateway's operations. Failures are ApiErrors. */
export interface Sandbox {
  chat(exchange: Exchange, body: ChatBody): Promise<void>;
  images(exchange: Exchange, body: ImageBody): Promise<void>;
  transcribe(exchange: Exchange, fields: TranscriptionFields, bytes: Buffer): Promise<void>;
}

/** Limits of a drawn picture's edges, in pixels. */
const edgePx = { min: 16, max: 2048 } as const;

/** Everything is computed in this process. Libraries are loaded with their first use. */
export function createSandbox(options: SandboxOptions): Sandbox {
  return {
    chat: async (exchange, body) => {
      const loadImage = options.imageLoaderFor(exchange);
      const answer = {
        "sandbox/chat": () => answerChat(body, (image) => loadImage(image, describePicture)),
        "sandbox/image": () => answerWithPicture(body, loadImage),
      }[body.model];
      if (answer === undefined) throw unsupportedModel(body.model, "chat");
      await sendAnswer(exchange, body, await answer(), options.wordDelayMs);
    },

    images: async (exchange, body) => {
      if (body.model !== "sandbox/image") throw unsupportedModel(body.model, "generate images");
      const size = toPixels(body.size);
      const toImage = (bytes: Buffer) =>
        body.response_format === "b64_json"
          ? { b64_json: bytes.toString("base64") }
          : { url: exchange.origin + options.shelf.put({ bytes, mediaType: "image/png", extension: "png" }) };
      const data: object[] = [];
      for (let index = 0; index < body.n; index += 1) {
        exchange.signal.throwIfAborted();
        const image = toImage(await drawPicture(body.prompt, size, index));
        data.push({ ...image, revised_prompt: `Sandbox drawing, made by rules: ${body.prompt}` });
      }
      exchange.sendJson(200, { created: Math.floor(Date.now() / 1000), data }, sandboxHeader);
    },

    transcribe: async (exchange, fields, bytes) => {
      if (fields.model !== "sandbox/transcribe") throw unsupportedModel(fields.model, "transcribe");
      const { seconds, description: text } = await listen(bytes, fields, exchange.signal);
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
