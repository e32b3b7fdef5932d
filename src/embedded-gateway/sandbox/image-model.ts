import { imagesOf, textOf, type ChatBody } from "../requests.ts";
import type { SandboxAnswer } from "./chat-answer.ts";
import { withoutAuthor } from "./recall.ts";
import { drawPicture } from "./draw.ts";
import { asksForChange, editPicture } from "./edit-picture.ts";
import type { ImageRef, LoadImage } from "./load-image.ts";

const chatSizePx = { widthPx: 1024, heightPx: 1024 };

/**
 * The answer of `sandbox/image` in a chat: a short text and one picture. The picture given last is changed where
 * one came with the message, or where the message speaks of one; otherwise a new one is drawn.
 */
export async function answerWithPicture(body: ChatBody, loadImage: LoadImage): Promise<SandboxAnswer> {
  const index = body.messages.findLastIndex((message) => message.role === "user");
  const message = body.messages[index];
  const prompt = message === undefined ? "" : withoutAuthor(textOf(message).slice(0, 4000));
  const given = message === undefined ? [] : imagesOf(message, index);
  const earlier = body.messages.flatMap((one, at) => (at < index ? imagesOf(one, at) : []));
  const source = given.at(-1) ?? (asksForChange(prompt) ? earlier.at(-1) : undefined);
  if (source !== undefined) return change(source, prompt, loadImage);

  const png = await drawPicture(prompt === "" ? "nothing in particular" : prompt, {
    ...chatSizePx,
    index: 0,
  });
  const text = `*Parley sandbox: drawn by rules, no image model is connected.* ${quote(prompt)}`;
  return { text, images: [toDataUri(png)] };
}

async function change(source: ImageRef, prompt: string, loadImage: LoadImage): Promise<SandboxAnswer> {
  const { png, done } = await loadImage(source, (bytes) => editPicture(bytes, prompt));
  const text = `*Parley sandbox: changed by rules, no image model is connected.* Your picture was ${done.join(", ")}.`;
  return { text, images: [toDataUri(png)] };
}

function toDataUri(png: Buffer): string {
  return `data:image/png;base64,${png.toString("base64")}`;
}

function quote(prompt: string): string {
  const line = prompt.replaceAll(/\s+/g, " ").replaceAll(/[“”]/g, '"');
  return line === "" ? "" : `“${line.length > 200 ? `${line.slice(0, 200)}…` : line}”`;
}
