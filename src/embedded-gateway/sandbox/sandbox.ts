import { invalidRequest, unsupportedModel } from "../api-error.ts";
import type { Exchange } from "../exchange.ts";
import type { PictureShelf } from "../picture-shelf.ts";
import type { ChatBody, ImageBody, TranscriptionFields } from "../requests.ts";
import { answerChat } from "./chat-model.ts";
import { sandboxHeader, sendChatAnswer } from "./chat-answer.ts";
import { describePicture } from "./describe-picture.ts";
import { drawPicture } from "./draw.ts";
import { answerWithPicture } from "./image-model.ts";
import { describeRecording, listen } from "./listen.ts";
import type { LoadImage } from "./load-image.ts";

export interface SandboxOptions {
  /** Pause between two words of a streamed answer, in milliseconds. */
  readonly wordDelayMs: number;
  readonly shelf: PictureShelf;
  imageLoaderFor(exchange: Exchange): LoadImage;
}

/** The models of the gateway's own, behind the specification's operations. Failures are ApiErrors. */
export interface Sandbox {
  chat(exchange: Exchange, body: ChatBody): Promise<void>;
  images(exchange: Exchange, body: ImageBody): Promise<void>;
  transcribe(exchange: Exchange, fields: TranscriptionFields, bytes: Buffer): Promise<void>;
}

/** Edges of a drawn picture, in pixels. */
const edgePx = { min: 16, max: 2048 } as const;

/** All of its work is done in this process; its libraries are loaded at the first use. */
export function createSandbox(options: SandboxOptions): Sandbox {
  return {
    chat: async (exchange, body) => {
      const loadImage = options.imageLoaderFor(exchange);
      const answer = async () => {
        switch (body.model) {
          case "sandbox/chat": {
            return answerChat(body, (image) => loadImage(image, describePicture));
          }
          case "sandbox/image": {
            return answerWithPicture(body, loadImage);
          }
          default: {
            throw unsupportedModel(body.model, "chat");
          }
        }
      };
      await sendChatAnswer(exchange, body, await answer(), options.wordDelayMs);
    },

    images: async (exchange, body) => {
      if (body.model !== "sandbox/image") throw unsupportedModel(body.model, "generate images");
      const size = toPixels(body.size);
      const data: Record<string, string>[] = [];
      for (let index = 0; index < body.n; index += 1) {
        exchange.signal.throwIfAborted();
        const png = await drawPicture(body.prompt, { ...size, index });
        data.push({
          ...(body.response_format === "b64_json"
            ? { b64_json: png.toString("base64") }
            : {
                url: `${exchange.origin}${options.shelf.put({ bytes: png, mediaType: "image/png", extension: "png" })}`,
              }),
          revised_prompt: `Sandbox drawing, made by rules: ${body.prompt}`,
        });
      }
      exchange.sendJson(200, { created: Math.floor(Date.now() / 1000), data }, sandboxHeader);
    },

    transcribe: async (exchange, fields, bytes) => {
      if (fields.model !== "sandbox/transcribe") throw unsupportedModel(fields.model, "transcribe");
      const recording = await listen(bytes, exchange.signal);
      const text = describeRecording(recording, bytes.length, fields);
      if (fields.response_format === "text") {
        return exchange.sendBytes(200, text, {
          "content-type": "text/plain; charset=utf-8",
          ...sandboxHeader,
        });
      }
      const { seconds } = recording;
      const usage = seconds === undefined ? {} : { duration: seconds, usage: { type: "duration", seconds } };
      exchange.sendJson(200, { text, ...usage }, sandboxHeader);
    },
  };
}

function toPixels(size: string | null | undefined): { widthPx: number; heightPx: number } {
  const [widthPx = 1024, heightPx = 1024] = (size ?? "1024x1024").split("x").map(Number);
  for (const edge of [widthPx, heightPx]) {
    if (edge >= edgePx.min && edge <= edgePx.max) continue;
    const limits = `${edgePx.min} and ${edgePx.max} pixels`;
    throw invalidRequest(`Invalid 'size': sandbox/image draws edges between ${limits}.`, {
      param: "size",
      code: "invalid_value",
    });
  }
  return { widthPx, heightPx };
}
